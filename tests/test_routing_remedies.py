"""The table of remedies."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest

from npu_fallback_exporter.routing import table as tables
from npu_fallback_exporter.routing.remedies import Kind, Remedy, remedies, remedy_for
from npu_fallback_exporter.routing.table import Route

ON_HOST = (Route.FALLBACK, Route.EXPLICIT)
# Made for tests and tools of PyTorch, or without any tensor on the NPU.
NO_REMEDY_NEEDED = re.compile(
    r"aten::_(test|foobar|make_dep|philox|efficientzero|empty_.*quantized|add_relu|dyn_quant"
    r"|convert_weight_to)|aten::(dequantize\.self|from_file|hash_tensor)|c10d::|fsdp::|_inductor_test"
)
_GOOD = (Route.NPU_KERNEL, Route.COMPOSITE)
IDS = [remedy.ops for remedy in remedies()]


@pytest.mark.parametrize("remedy", remedies(), ids=IDS)
def test_what_a_remedy_offers_does_not_compute_on_the_host(remedy: Remedy) -> None:
    newest = tables.newest()
    routes = {op: newest.route_of(op) for op in remedy.uses}
    wrong = {op: route for op, route in routes.items() if route not in _GOOD}
    assert not wrong


@pytest.mark.parametrize("remedy", remedies(), ids=IDS)
def test_a_remedy_is_a_sentence_in_both_languages(remedy: Remedy) -> None:
    assert remedy.en.endswith(".")
    assert remedy.zh.endswith("。")
    assert re.search("[一-鿿]", remedy.zh)


def test_every_remedy_is_for_an_operator_that_exists() -> None:
    known = {op for version in tables.versions() for op in tables.load(version).entries}
    known |= set(tables.packages())
    assert not [r.ops for r in remedies() if not any(fnmatchcase(op, r.ops) for op in known)]


@pytest.mark.parametrize("version", tables.versions())
def test_every_operator_that_computes_on_the_host_has_a_remedy(version: str) -> None:
    entries = tables.load(version).entries.values()
    without = {
        entry.op
        for entry in entries
        if entry.route in ON_HOST
        and not NO_REMEDY_NEEDED.match(entry.op)
        and remedy_for(entry.op) is None
    }
    assert not without


def test_versions_that_a_remedy_names_have_the_kernel() -> None:
    for op in ("aten::_fused_adam_", "aten::repeat_interleave.Tensor"):
        remedy = remedy_for(op)
        assert remedy is not None
        named = re.findall(r"\d+\.\d+\.\d+(?:\.post\d+)?", remedy.en)
        assert named
        assert {tables.load(version).route_of(op) for version in named} == {Route.NPU_KERNEL}


def test_the_fast_path_of_the_encoder_is_switched_off_by_a_flag() -> None:
    remedy = remedy_for("aten::_transformer_encoder_layer_fwd")
    assert remedy is not None
    assert remedy.kind is Kind.FLAG
    assert "torch.backends.mha.set_fastpath_enabled(False)" in remedy.en


def test_an_operator_with_a_kernel_has_no_remedy() -> None:
    assert remedy_for("aten::add.Tensor") is None
