"""Which part of the package may import which, read from the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import npu_fallback_exporter

ROOT = Path(npu_fallback_exporter.__file__).parent
NAME = ROOT.name

#: From the bottom up: a part imports from parts before its own, or from its own.
LAYERS = (
    {"errors", "__init__", "op_names", "spelling"},
    {"metrics", "config", "cgroup", "scrapes", "routing"},
    {"pages", "npu_smi", "host", "gate", "audit"},
    {"rises", "op_labels", "totals"},
    {"carried"},
    {"aggregator", "instrument"},
    {"collectors", "launch"},
    {"history"},
    {"report", "doctor"},
    {"web"},
    {"cli", "demo", "__main__"},
)
LAYER_OF = {part: number for number, parts in enumerate(LAYERS) for part in parts}


def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, also inside functions."""
    package = (NAME, *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def outside(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)} - {NAME}


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    own = LAYER_OF[part_of(path)]
    parts = {name.split(".")[1] for name in imports(path) if name.startswith(f"{NAME}.")}
    above = {part for part in parts if LAYER_OF.get(part, 0) > own}
    if path.name == "__init__.py" and path.parent == ROOT:
        above = set()  # the public API: lazy, and only named for type checkers
    assert not above


@pytest.mark.parametrize(
    "part",
    [
        "pages",
        "carried",
        "npu_smi",
        "collectors",
        "history",
        "web",
        "metrics",
        "report",
        "gate",
    ],
)
def test_nothing_on_the_exporters_side_imports_torch(part: str) -> None:
    files = [path for path in sources() if part_of(path) == part]
    assert files
    assert not any({"torch", "torch_npu"} & outside(path) for path in files)


def test_nothing_in_the_server_process_imports_the_metrics_library() -> None:
    files = [path for path in sources() if part_of(path) == "instrument"]
    assert files
    assert not any("prometheus_client" in outside(path) for path in files)


def test_of_the_routing_tables_only_the_dump_imports_torch() -> None:
    files = [path for path in sources() if part_of(path) == "routing"]
    assert files
    assert {path.name for path in files if {"torch", "torch_npu"} & outside(path)} == {"dump.py"}


def test_doctor_leaves_torch_to_a_process_of_its_own() -> None:
    files = [path for path in sources() if part_of(path) == "doctor"]
    assert [path.name for path in files if {"torch", "torch_npu"} & outside(path)] == [
        "torch_probe.py"
    ]
    imported = {name for path in files for name in imports(path)}
    assert not any(name.endswith("torch_probe") for name in imported)
