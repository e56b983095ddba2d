"""Every recorded output of npu-smi is read as it was checked by eye."""

from __future__ import annotations

import pytest

from tests.support import npu_smi_samples as samples

NOISE = (
    "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)",
    "[WARNING]The driver package may not be completely installed, which may cause function "
    "abnormal. Please reinstall it.",
)
TABLES = [name for name in samples.names() if name.startswith(("info/", "vnpu/"))]


def test_all_92_samples_have_an_expected_reading() -> None:
    assert len(samples.names()) == 92
    assert list(samples.expected()) == samples.names()


@pytest.mark.parametrize("name", samples.names())
def test_a_sample_reads_as_expected(name: str) -> None:
    assert samples.read(name) == samples.expected()[name]


@pytest.mark.parametrize("name", samples.names())
@pytest.mark.parametrize("line_end", ["\r\n", "\r\r\n", "\r"])
def test_line_ends_of_other_systems_change_nothing(name: str, line_end: str) -> None:
    text = samples.text_of(name).replace("\n", line_end)
    assert samples.read(name, text) == samples.expected()[name]


@pytest.mark.parametrize("name", TABLES)
def test_noise_between_the_lines_of_a_table_changes_nothing(name: str) -> None:
    lines = samples.text_of(name).split("\n")
    noisy = [part for number, line in enumerate(lines) for part in (line, NOISE[number % 2])]
    assert samples.read(name, "\n".join(noisy)) == samples.expected()[name]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_printed_twice_counts_once(name: str) -> None:
    text = samples.text_of(name)
    expected = samples.expected()[name]
    twice = samples.read(name, text + text)
    assert twice.get("chips") == expected.get("chips")
    assert twice.get("processes") == expected.get("processes")
