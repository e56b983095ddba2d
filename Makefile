# Only calls the tools; everything they need is in scripts/.
.PHONY: demo test setup format clean

demo:
	./scripts/demo

test:
	./scripts/test

setup:
	./scripts/setup

format: setup
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache
