"""What every part of the decoder needs: refusing, text, and plausible numbers."""

from __future__ import annotations

from typing import NoReturn

from ..errors import PageError

REMOVE = "remove it from the pages folder"

# A counter that adds nanoseconds or bytes needs centuries to get here; random bytes do not.
_TOO_LARGE = 1 << 62


def corrupt(what: str) -> NoReturn:
    """Raise the error of a page that its writer cannot have written."""
    raise PageError("corrupt", f"page {what}", f"{REMOVE}; its writer is not this product")


def check_numbers(numbers: tuple[int, ...], what: str) -> None:
    """Raise PageError unless all of `numbers` can be counts, sizes or times."""
    if max(numbers, default=0) >= _TOO_LARGE:
        corrupt(f"has an impossible {what}")


def check_words(table: bytes, what: str) -> None:
    """Raise PageError unless all 64-bit words of `table` can be counts, sizes or times."""
    # The top byte of each word decides, and slicing looks at all of them at once.
    check_top_bytes(table[7::8], what)


def check_top_bytes(top_bytes: bytes | bytearray, what: str) -> None:
    """Raise PageError unless 64-bit words with these top bytes can be counts, sizes or times."""
    if max(top_bytes, default=0) >= _TOO_LARGE >> 56:
        corrupt(f"has an impossible {what}")


def unicode(text: bytes) -> str:
    """Decode UTF-8; other bytes stay visible and distinct, and cannot break the exposition."""
    return text.decode("utf-8", "backslashreplace")
