"""Mutated pages: decoded or refused, and nothing else, in bounded memory."""

from __future__ import annotations

import random
import tracemalloc

import psutil
import pytest

from npu_fallback_exporter.errors import PageError
from npu_fallback_exporter.pages import layout
from npu_fallback_exporter.pages.decode import decode
from npu_fallback_exporter.pages.notes import decode_notes
from npu_fallback_exporter.pages.page import REASONS
from npu_fallback_exporter.rises import rise

from .support.page_factory import PageFactory

_WORDS = (0, 1, 0x7F, 0x80, 0xFF, 1 << 31, 1 << 32, (1 << 62) - 1, 1 << 62, 1 << 63, (1 << 64) - 1)
_AT = layout.PAGE.offsets


def _seeds() -> list[bytes]:
    empty = PageFactory()
    busy = PageFactory(davinci_devices=(3, 0, 0, 0), visible_devices_set=1, visible_devices=b"1,0")
    for number in range(12):
        busy.events(f"aten::op{number}", number + 1, npu=number % 3)
    busy.events("__other__", 1, npu=5, kind="explicit_kernel").sync("aten::nonzero", 5, npu=1)
    busy.transfer("d2h", "user", 4096, 2, npu=127).shard(15, 100, 10)
    return [bytes(empty.data), bytes(busy.data)]


class _Mutator:
    """Damages pages, mostly where they are in use."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._seeds = _seeds()
        self._regions = (
            (0, layout.HEADER.size),
            (_AT["shards"], 2048),
            (_AT["transfers"], 1024),
            (_AT["syncs"], 256),
            (_AT["ops"], 3000),
            (_AT["slots"], 3000),
            (_AT["slots"] + layout.GENERAL_SLOTS * layout.SLOT.size, 2048),
            (_AT["notes"], 256),
            (0, layout.PAGE_BYTES),
        )

    def page(self) -> bytearray:
        """Return one page with up to eight damages, perhaps cut."""
        pick = self._random
        data = bytearray(pick.choice(self._seeds))
        for _ in range(pick.randint(1, 8)):
            start, size = pick.choice(self._regions)
            at = start + pick.randrange(size)
            kind = pick.randrange(5)
            if kind == 0:
                data[at] ^= 1 << pick.randrange(8)
            elif kind == 1:
                at &= ~7
                data[at : at + 8] = pick.choice(_WORDS).to_bytes(8, "little")
            elif kind == 2:
                at &= ~3
                data[at : at + 4] = pick.choice(_WORDS[:7]).to_bytes(8, "little")[:4]
            elif kind == 3:
                data[at : at + 16] = pick.randbytes(16)
            else:  # a row in the place of another
                source = start + pick.randrange(size)
                data[at : at + 192] = data[source : source + 192]
        if pick.random() < 0.05:
            del data[pick.randrange(len(data)) :]
        else:
            del data[layout.PAGE_BYTES :]
        return data


def _check(data: bytearray) -> str:
    """Read all of a page as a reader does; gives why it was refused."""
    view = memoryview(data)

    def read(offset: int, size: int) -> bytes:
        part = bytes(view[offset : offset + size])
        if len(part) < size:
            raise PageError("truncated", "cut", "none")
        return part

    outcome = "decoded"
    for use in (lambda: rise(None, decode(read, len(data))), lambda: decode_notes(read, len(data))):
        try:
            use()
        except PageError as error:
            assert error.reason in REASONS  # noqa: PT017
            outcome = error.reason
    return outcome


def _fuzz(pages: int, seed: int) -> dict[str, int]:
    mutator = _Mutator(seed)
    outcomes: dict[str, int] = {}
    process = psutil.Process()
    for _ in range(min(pages, 2000)):  # fills what is remembered
        _check(mutator.page())
    before = process.memory_info().rss
    for _ in range(pages):
        outcome = _check(mutator.page())
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    grown = process.memory_info().rss - before
    print(f"{pages} pages: {outcomes}; memory {grown / (1 << 20):+.1f} MiB")
    assert grown < 32 << 20
    return outcomes


def test_thousands_of_mutated_pages_are_decoded_or_refused() -> None:
    outcomes = _fuzz(2000, seed=1)
    assert {"decoded", "corrupt", "truncated", "magic"} <= outcomes.keys()


def test_the_largest_page_takes_bounded_memory() -> None:
    page = PageFactory(max_ops=511)
    for number in range(511):
        page.events(f"aten::{'x' * 150}{number}", 1)
    tracemalloc.start()
    try:
        _check(page.data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * layout.PAGE_BYTES


@pytest.mark.heavy
@pytest.mark.timeout(7200)
def test_a_million_mutated_pages_are_decoded_or_refused() -> None:
    _fuzz(1_000_000, seed=2)
