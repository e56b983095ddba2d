"""The recorded outputs of npu-smi under ``tests/data/npu_smi``, and how each is read.

``python -m tests.support.npu_smi_samples`` prints the readings as JSON. They become
``expected.json`` only after each changed figure was compared with its sample by eye.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from npu_fallback_exporter.npu_smi import figures, parser

FOLDER = Path(__file__).parent.parent / "data" / "npu_smi"
EXPECTED = FOLDER / "expected.json"


def names() -> list[str]:
    """All samples as ``kind/file.txt``."""
    return sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*.txt"))


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def expected() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(EXPECTED.read_text(encoding="utf-8"))
    return found


def read(name: str, text: str | None = None) -> Any:
    """Read a sample as its kind is read, in the form that ``expected.json`` holds."""
    return plain(_reader(name)(text_of(name) if text is None else text))


def plain(value: Any) -> Any:
    """Turn figures into JSON: absent fields left out, keys as ``card/chip``."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, figures.ChipKey):
        return str(value.card) if value.chip is None else f"{value.card}/{value.chip}"
    if isinstance(value, figures.Usage):
        return f"{'NA' if value.used is None else value.used}/{value.total}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {name: field for name, field in fields.items() if field not in (None, [], {})}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _reader(name: str) -> Callable[[str], Any]:
    kind, file = name.split("/")
    by_prefix: dict[str, Callable[[str], Any]] = {
        "map/m_": parser.parse_id_map,
        "map/l_": parser.parse_card_list,
        "type/usages_": parser.parse_usages,
        "type/common_": parser.parse_common,
        "type/proc-mem_": parser.parse_processes,
        "watch/": parser.parse_watch,
        "version/": parser.parse_version,
        "error/": lambda text: parser.diagnose(text, 0),
        "info/": parser.parse_info,
    }
    for prefix, reader in by_prefix.items():
        if f"{kind}/{file}".startswith(prefix):
            return reader
    if kind == "vnpu":
        return parser.parse_virtual_npus if "info-vnpu" in file else parser.parse_info
    return parser.parse_fields


if __name__ == "__main__":
    json.dump({name: read(name) for name in names()}, sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")
