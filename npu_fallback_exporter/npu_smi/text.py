"""Lines, cells and numbers of npu-smi's output: the parts that all its layouts share."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npu_fallback_exporter.npu_smi.figures import Usage

#: What the tool prints for a value that it does not have.
_ABSENT = frozenset({"", "-", "--", "NA", "N/A"})
#: Digits of ASCII only: ``int()`` would also take full-width ones. Longer than
#: twelve digits is no figure of this tool.
_INTEGER = re.compile(r"[0-9]{1,12}")
_DECIMAL = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]{1,6})?")
#: A pair keeps its blank only up to four digits: ``3397 / 65536`` but ``20701/ 65536``.
_TOKEN = re.compile(
    r"(?<!\S)(?P<used>-?[0-9]+|NA|-)\s*/\s*(?P<total>-?[0-9]+|NA|-)(?!\S)|(?P<scalar>\S+)"
)
_BORDER = re.compile(r"[+|][-=+|]{4,}[+|]")

_LINE_END = re.compile(r"\r*\n|\r")
#: The widest table has 116 columns. What is longer is no line of this tool, and
#: would make matching slow.
_LONGEST_LINE = 512

#: The driver's "not read" for 16-bit sensors (0x7ffd to 0x7fff), printed as a number.
_SENSOR_NOT_READ = 32765


def lines_of(text: str, *, ended: bool) -> Iterator[str]:
    """Yield the lines of ``text`` without their ends; one that is too long comes out empty.

    Args:
        text: output of the tool, with any kind of line end.
        ended: the text ends where the tool ended. If not, a last line without
            its end may be cut inside a number, and is left out.
    """
    # Not splitlines(): a process name may hold any of its exotic separators.
    lines = _LINE_END.split(text) if "\r" in text else text.split("\n")
    if not ended:
        lines.pop()
    for line in lines:
        yield line if len(line) <= _LONGEST_LINE else ""


def is_border(line: str) -> bool:
    """Whether the line is a rule between rows."""
    return _BORDER.fullmatch(line.strip()) is not None


def cells_of(line: str) -> list[str] | None:
    """Split a table row at its bars; None if the line is no row that is closed at both ends."""
    line = line.strip()
    if len(line) < 2 or line[0] != "|" or line[-1] != "|":
        return None
    return line[1:-1].split("|")


def is_absent(word: str) -> bool:
    """Whether the tool prints this for "no value"."""
    return word.strip() in _ABSENT


def integer(word: str) -> int | None:
    """Read a plain non-negative integer, or None."""
    word = word.strip()
    return int(word) if _INTEGER.fullmatch(word) else None


def decimal(word: str) -> float | None:
    """Read a decimal number, or None."""
    word = word.strip()
    return float(word) if _DECIMAL.fullmatch(word) else None


def percent(word: str) -> float | None:
    """Read a percentage from 0 to 100; all else (the driver's "not read" too) is None."""
    value = decimal(word)
    return value if value is not None and 0 <= value <= 100 else None


def celsius(word: str) -> float | None:
    """Read a temperature in degrees Celsius; the sensor's "not read" is None."""
    value = decimal(word)
    return value if value is not None and -273.15 <= value < 1000 else None


def watts(word: str) -> float | None:
    """Read a power in watts; None if it is not above zero.

    A chip that answers draws power: 0.0 is what the tool prints when its query
    failed, and just below 3276.8 what it prints for a sensor that was not read.
    """
    value = decimal(word)
    return value if value is not None and 0 < value < _SENSOR_NOT_READ / 10 else None


def tokens_of(cell: str) -> list[tuple[int, str, Usage | str | None]]:
    """Split a cell into figures: (offset, kind, value).

    A ``pair`` has a Usage as value, or None where its total is missing or 0
    (the tool prints ``0 / 0`` for a memory that the chip does not have).
    A ``scalar`` has the word.
    """
    found: list[tuple[int, str, Usage | str | None]] = []
    for match in _TOKEN.finditer(cell):
        if match["scalar"] is not None:
            found.append((match.start(), "scalar", match["scalar"]))
            continue
        total = integer(match["total"])
        usage = Usage(integer(match["used"]), total) if total else None
        found.append((match.start(), "pair", usage))
    return found
