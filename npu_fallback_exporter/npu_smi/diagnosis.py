"""Why a call gave no figures, from what the tool printed and how it exited.

The tool writes its errors to stdout, and its exit status is the low byte of the
DCMI code (-8005 is 187). Several texts of "not supported" exit with 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from npu_fallback_exporter.npu_smi.text import lines_of


class FailureReason(str, Enum):
    """Label ``reason`` of ``npu_smi_sample_failures_total``."""

    MISSING = "missing"
    TIMEOUT = "timeout"
    DRIVER = "driver"
    BUSY = "busy"
    UNPARSABLE = "unparsable"
    PERMISSION = "permission"


@dataclass(frozen=True)
class Diagnosis:
    """A failure: its reason, the DCMI code if one is known, and the tool's own words."""

    reason: FailureReason
    words: str
    dcmi_code: int | None = None
    #: The tool answered that this chip or version has no such figures.
    unsupported: bool = False

    def __str__(self) -> str:
        code = "" if self.dcmi_code is None else f" (DCMI code {self.dcmi_code})"
        return f"{self.reason.value}{code}: {self.words}"


#: DCMI codes with a reason of their own; every other code is the driver's.
_REASON_OF_CODE = {
    -8002: FailureReason.PERMISSION,
    -8020: FailureReason.BUSY,
}
#: Codes that the tool is known to exit with. The low byte alone names them.
_KNOWN_CODES = (*range(-8001, -8021, -1), -8255, *range(-9001, -9010, -1))
_CODE_OF_STATUS = {code & 0xFF: code for code in reversed(_KNOWN_CODES)}

_CODE = re.compile(
    r"(?:ret(?:urn)?(?: is|=| =|:)?|error code(?: is)?:?|err(?: is)?:?)\s*(-[89]\d{3})\b"
)
_NOT_SUPPORTED = re.compile(r"does not support|not supported|There is no NPU card", re.I)
_PERMISSION = re.compile(r"permission denied|operation not permitted|permission verif", re.I)
_NO_LIBRARY = re.compile(r"error while loading shared libraries|cannot open shared object", re.I)
_NO_COMMAND = re.compile(r"command not found|No such file or directory", re.I)
_WORDS = 200


def diagnose(text: str, exit_status: int | None) -> Diagnosis:
    """Tell why ``text`` has no figures. Call it only when nothing could be read.

    Args:
        text: stdout and stderr of the tool.
        exit_status: its exit status; negative for a signal; None if unknown.
    """
    text = "\n".join(lines_of(text, ended=True))
    codes = [(int(match[1]), match.start()) for match in _CODE.finditer(text)]
    for code, start in codes:
        # "in use" is told first and followed by errors that only result from it.
        if code in _REASON_OF_CODE:
            return Diagnosis(_REASON_OF_CODE[code], _line_at(text, start), code)
    if codes:
        code, start = codes[0]
        return Diagnosis(FailureReason.DRIVER, _line_at(text, start), code)
    for pattern, reason in (
        (_NO_LIBRARY, FailureReason.MISSING),
        (_PERMISSION, FailureReason.PERMISSION),
        (_NO_COMMAND, FailureReason.MISSING),
        (_NOT_SUPPORTED, FailureReason.UNPARSABLE),
    ):
        match = pattern.search(text)
        if match is not None:
            words = _line_at(text, match.start())
            return Diagnosis(reason, words, unsupported=pattern is _NOT_SUPPORTED)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    words = first[:_WORDS] or "no output"
    if exit_status == 127:
        return Diagnosis(FailureReason.MISSING, words)
    if exit_status == 126:
        return Diagnosis(FailureReason.PERMISSION, words)
    code_of_status = _CODE_OF_STATUS.get(exit_status) if exit_status else None
    if code_of_status is not None:
        reason = _REASON_OF_CODE.get(code_of_status, FailureReason.DRIVER)
        return Diagnosis(reason, words, code_of_status)
    return Diagnosis(FailureReason.UNPARSABLE, f"exit status {exit_status}: {words}")


def _line_at(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[start : len(text) if end < 0 else end].strip()[:_WORDS]
