"""For any cut, noise or odd name: no exception, and no number that the tool did not print."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npu_fallback_exporter.npu_smi import parser
from npu_fallback_exporter.npu_smi.figures import (
    ChipFigures,
    ChipKey,
    Health,
    ProcessFigures,
    Usage,
)
from tests.support import npu_smi_samples as samples
from tests.support.npu_smi_tables import LAYOUTS, Table

READERS = (
    parser.parse_info,
    parser.parse_usages,
    parser.parse_common,
    parser.parse_card_list,
    parser.parse_id_map,
    parser.parse_watch,
    parser.parse_processes,
    parser.parse_virtual_npus,
    parser.parse_fields,
    parser.parse_version,
)
SETTINGS = settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow], database=None
)

# No bar: where a name with bars stands in a process row is tested on whole tables.
WORDS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=15)
usages = st.one_of(st.none(), st.builds(Usage, st.integers(0, 131072), st.integers(1, 131072)))
percents = st.integers(0, 100).map(float)


def _optional(strategy: st.SearchStrategy[float]) -> st.SearchStrategy[float | None]:
    return st.one_of(st.none(), strategy)


@st.composite
def tables(draw: st.DrawFn, names: st.SearchStrategy[str] = WORDS) -> Table:
    layout = draw(st.sampled_from(LAYOUTS))
    if layout == "950":
        keys = [
            ChipKey(card, None)
            for card in draw(st.sets(st.integers(0, 99999), min_size=1, max_size=64))
        ]
    else:
        pairs = st.tuples(st.integers(0, 99999), st.integers(0, 3))
        keys = [ChipKey(*pair) for pair in draw(st.sets(pairs, min_size=1, max_size=64))]
    chips = tuple(_chip(draw, layout, key, number) for number, key in enumerate(keys))
    processes = []
    for pid in draw(st.sets(st.integers(1, 4194304), max_size=12)):
        processes.append(
            ProcessFigures(
                key=draw(st.sampled_from(keys)),
                pid=pid,
                name=draw(names).strip(),
                memory_mib=draw(st.integers(0, 131072)),
                container_pid=draw(st.none() | st.integers(1, 4194304)) if layout == "26" else None,
            )
        )
    return Table(layout, chips, tuple(processes))


def _chip(draw: st.DrawFn, layout: str, key: ChipKey, number: int) -> ChipFigures:
    power = draw(_optional(st.integers(1, 9999).map(lambda tenths: tenths / 10)))
    temperature = draw(_optional(st.integers(-40, 120).map(float)))
    util = draw(_optional(percents))
    if power is None and temperature == 0 and util == 0:
        temperature = 1.0
    return ChipFigures(
        key=key,
        name=draw(st.sampled_from(["310P3", "910B4-1", "Ascend910", "xxx"])),
        health=draw(st.sampled_from(Health)),
        physical_id=number if layout in ("a3", "26") else None,
        logic_id=number if layout == "310" else None,
        bus_id=draw(st.sampled_from([None, "0000:9D:00.0", "0000:00:07.0"])),
        power_watts=power,
        temperature_celsius=temperature,
        aicore_percent=None if layout == "950" else util,
        npu_percent=util if layout == "950" else None,
        ddr_mib=draw(usages),
        hbm_mib=None if layout == "310" else draw(usages),
        hugepages=draw(usages),
    )


def assert_only_truth(found: Any, table: Table) -> None:
    """Every figure read is one that the table was made from; figures may be missing."""
    chips = {chip.key: chip for chip in table.chips}
    for chip in found.chips:
        truth = chips[chip.key]
        for field in dataclasses.fields(chip):
            value = getattr(chip, field.name)
            assert value is None or value == getattr(truth, field.name), field.name
    processes = {(process.key, process.pid): process for process in table.processes}
    for process in found.processes:
        assert process == processes[(process.key, process.pid)]


@given(tables())
@SETTINGS
def test_a_whole_table_is_read_exactly(table: Table) -> None:
    found = parser.parse_info(table.text)
    assert found.chips == table.chips
    assert found.processes == table.processes
    assert found.tool_version == found.driver_version == table.version


@given(tables(st.text(st.sampled_from("|ab 1OK界"), max_size=15)))
@SETTINGS
def test_bars_and_wide_characters_in_process_names_are_kept(table: Table) -> None:
    assert parser.parse_info(table.text).processes == table.processes


@given(tables(), st.data(), st.booleans())
@SETTINGS
def test_a_table_cut_at_both_ends_gives_no_wrong_number(
    table: Table, data: st.DataObject, ended: bool
) -> None:
    start = data.draw(st.integers(0, len(table.text)))
    end = data.draw(st.integers(start, len(table.text)))
    assert_only_truth(parser.parse_info(table.text[start:end], ended=ended), table)


@given(tables(), st.data())
@SETTINGS
def test_lost_rows_and_noise_lines_give_no_wrong_number(table: Table, data: st.DataObject) -> None:
    noise = st.sampled_from(
        [
            "DrvMngGetConsoleLogLevel failed. (ret=4)",
            "[WARNING]The driver package may not be completely installed",
            "dcmi module initialize failed. ret is -8005",
            "| OK |",
            "|||",
            "",
            "\x00\x1b[0m",
        ]
    )
    lines: list[str] = []
    for line in table.lines:
        # Rules between rows stay: they are what tells that a row is lost.
        if line.startswith("+") or not data.draw(st.booleans()):
            lines.append(line)
        if data.draw(st.booleans()):
            lines.append(data.draw(noise))
    assert_only_truth(parser.parse_info("\n".join(lines)), table)


@given(tables(), st.sampled_from(["\n", "\r\n", "\r\r\n", "\r"]), st.integers(1, 3))
@SETTINGS
def test_repeated_tables_and_any_line_end_change_nothing(
    table: Table, line_end: str, times: int
) -> None:
    found = parser.parse_info((table.text * times).replace("\n", line_end))
    assert found.chips == table.chips
    assert found.processes == table.processes


@given(st.sampled_from(samples.names()), st.data())
@SETTINGS
def test_a_cut_sample_gives_no_figure_that_the_whole_does_not_have(
    name: str, data: st.DataObject
) -> None:
    text = samples.text_of(name)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    for reader in READERS[:7]:
        whole, part = reader(text), reader(text[start:end], ended=False)
        for name_of_list in ("chips", "rows", "cards", "processes"):
            for item in getattr(part, name_of_list, ()):
                assert _is_part_of_one(item, getattr(whole, name_of_list)), item


@given(
    st.text(max_size=2000) | st.text("|+-= OK019/NPUChip:\n", max_size=2000), st.integers(0, 255)
)
@SETTINGS
def test_any_text_is_read_without_an_exception(text: str, status: int) -> None:
    for reader in READERS:
        reader(text)
        reader(text, ended=False)
    parser.diagnose(text, status)


def _is_part_of_one(item: Any, whole: tuple[Any, ...]) -> bool:
    def agrees(other: Any) -> bool:
        for field in dataclasses.fields(item):
            ours, theirs = getattr(item, field.name), getattr(other, field.name)
            if ours is None or ours == theirs:
                continue
            # The card of ``proc-mem`` may be cut off: then it is not named, never wrong.
            if isinstance(ours, ChipKey) and ours.card == -1 and ours.chip == theirs.chip:
                continue
            return False
        return True

    return any(agrees(other) for other in whole)
