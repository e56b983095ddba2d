"""The routing tables that the package carries."""

from __future__ import annotations

from importlib.resources import files

import pytest

from npu_fallback_exporter.routing import table as tables
from npu_fallback_exporter.routing.conditions import conditions
from npu_fallback_exporter.routing.difference import difference
from npu_fallback_exporter.routing.errors import TableError, UnknownNameError
from npu_fallback_exporter.routing.table import Route

VERSIONS = [
    "2.9.0.post9",
    "2.10.0.post4",
    "2.10.0.post7",
    "2.11.0",
    "2.12.0",
    "2.13.0",
    "2.14.0",
]


def text_of(version: str) -> str:
    folder = files("npu_fallback_exporter.routing").joinpath("tables")
    return folder.joinpath(f"torch_npu-{version}.tsv").read_text()


def test_there_are_tables_of_seven_versions_in_order_of_number() -> None:
    assert tables.versions() == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_is_written_as_it_was_read(version: str) -> None:
    assert tables.render(tables.load(version)) == text_of(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_knows_its_versions(version: str) -> None:
    table = tables.load(version)
    assert table.version == version
    assert table.torch_version == version.partition(".post")[0]
    assert table.soc == "Ascend910B3"


# Of 2.12.0 and 2.13.0 these are also the counts of the armed hook.
@pytest.mark.parametrize(
    ("version", "fallback", "explicit", "unsupported"),
    [
        ("2.9.0.post9", 311, 59, 320),
        ("2.10.0.post4", 323, 54, 332),
        ("2.10.0.post7", 314, 59, 326),
        ("2.11.0", 323, 54, 344),
        ("2.12.0", 327, 54, 357),
        ("2.13.0", 312, 59, 349),
        ("2.14.0", 317, 59, 352),
    ],
)
def test_so_many_operators_take_each_route(
    version: str, fallback: int, explicit: int, unsupported: int
) -> None:
    counts = tables.load(version).counts()
    found = counts[Route.FALLBACK], counts[Route.EXPLICIT], counts[Route.UNSUPPORTED]
    assert found == (fallback, explicit, unsupported)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_explicit_operator_has_its_condition(version: str) -> None:
    entries = tables.load(version).entries.values()
    explicit = [entry for entry in entries if entry.route is Route.EXPLICIT]
    assert all(entry.condition == conditions()[entry.op] for entry in explicit)


def test_conditions_are_given_of_the_operators_that_the_hook_knows() -> None:
    text = files("npu_fallback_exporter.instrument").joinpath("explicit_ops.txt").read_text()
    listed = {line for line in text.splitlines() if line and not line.startswith("#")}
    assert set(conditions()) == listed


def test_all_tables_together_are_small() -> None:
    assert sum(len(text_of(version)) for version in VERSIONS) < 1_500_000


def test_operators_of_torchvision_are_known_without_it() -> None:
    assert tables.load("2.13.0").route_of("torchvision::nms") is Route.FALLBACK


def test_an_operator_that_nobody_defines_has_no_route() -> None:
    assert tables.load("2.13.0").route_of("aten::no_such_operator") is None


def test_a_mistyped_version_gets_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"'2\.10\.0'.*2\.10\.0\.post"):
        tables.load("2.10.0")


@pytest.mark.parametrize(
    "text", ["", "# torch_npu: 2.13.0\naten::add.Tensor\n", "# torch_npu: 2\naten::a\tnowhere\n"]
)
def test_a_file_that_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(TableError):
        tables.parse(text, "some.tsv")


def test_the_older_release_line_lacks_kernels_that_the_newer_one_has() -> None:
    found = difference(tables.load("2.12.0"), tables.load("2.13.0"))
    assert {change.op for change in found.no_longer_fall_back} == {
        "aten::_fused_adam_",
        "aten::_fused_adam_.tensor_lr",
        "aten::_fused_sgd_",
        "aten::_fused_sgd_.tensor_lr",
        "aten::bitwise_left_shift.Tensor_out",
        "aten::bitwise_right_shift.Tensor_out",
        "aten::repeat_interleave.Tensor",
        "aten::scatter_reduce.two_out",
    }
    assert not found.newly_fall_back


def test_the_reverse_difference_has_the_same_operators() -> None:
    old, new = tables.load("2.12.0"), tables.load("2.13.0")
    there, back = difference(old, new), difference(new, old)
    assert [c.op for c in there.no_longer_fall_back] == [c.op for c in back.newly_fall_back]
    assert [c.op for c in there.new] == [c.op for c in back.gone]


def test_a_version_does_not_differ_from_itself() -> None:
    table = tables.load("2.14.0")
    assert not any(changes for _, changes in difference(table, table).groups())
