"""What the audit predicts of models that fall back is what the armed hook then counts."""

from __future__ import annotations

import pytest

from tests.support.audit_inputs import INPUTS
from tests.support.audited import MODELS, audit_json, counted, predicted

pytest.importorskip("torch_npu")

Counts = dict[str, dict[str, list[int]]]


@pytest.fixture(scope="module")
def on_the_device(request: pytest.FixtureRequest) -> Counts:
    """What the hook counts in one forward of each model."""
    request.getfixturevalue("hook_is_built")
    return counted(INPUTS)


@pytest.mark.slow
@pytest.mark.parametrize("model", INPUTS)
def test_operators_counts_and_bytes_are_those_that_the_hook_counts(
    on_the_device: Counts, model: str
) -> None:
    inputs = [part for spec in INPUTS[model] for part in ("--input", spec)]
    foreseen = predicted(audit_json(f"{MODELS}:{model}", *inputs), "forward")
    seen = {name.removesuffix(" dispatcher"): n for name, n in on_the_device[model].items()}
    assert foreseen == seen
    assert foreseen  # every one of them falls back
