"""Every error that this package raises on purpose.

An error says what is wrong, with the value, and the next step, in one line:
``str(error)`` is that line, and the command line prints it as it is.
"""

from __future__ import annotations


class NpuFallbackError(Exception):
    """Base of all errors of this package.

    Args:
        what: what is wrong, with the value that is wrong.
        next_step: what the reader can do about it.
    """

    def __init__(self, what: str, next_step: str) -> None:
        super().__init__(f"{what}: {next_step}")
        self.what = what
        self.next_step = next_step


class ConfigError(NpuFallbackError):
    """An environment variable or a flag has a value that is not accepted."""


class ArmError(NpuFallbackError, RuntimeError):
    """The hook cannot be armed in this process.

    A RuntimeError, because in strict mode it is what the first use of the NPU raises.

    Args:
        reason: the label of ``npu_fallback_arm_failures_total``.
    """

    def __init__(self, reason: str, what: str, next_step: str) -> None:
        super().__init__(what, next_step)
        self.reason = reason


class BuildError(NpuFallbackError):
    """The native hook cannot be compiled here."""


class PageError(NpuFallbackError):
    """A file in the pages folder is not a page that this version can read.

    Args:
        reason: the label of ``npu_fallback_pages_skipped_total``.
    """

    def __init__(self, reason: str, what: str, next_step: str) -> None:
        super().__init__(what, next_step)
        self.reason = reason


class SourceError(NpuFallbackError):
    """A place that should give data, such as Prometheus or a saved scrape, gives none."""


class QuestionError(NpuFallbackError):
    """The user asked for something that cannot be: a usage error."""
