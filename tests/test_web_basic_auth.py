"""Names and passwords."""

from __future__ import annotations

import asyncio
import threading

import pytest

from npu_fallback_exporter.web import basic_auth
from npu_fallback_exporter.web.basic_auth import BasicAuth, Verdict

from .support.asgi import DEADLINE_SECONDS, run
from .support.web import authorization, hash_of

USERS = {b"prometheus": hash_of("right").encode()}


def header(name: str, password: str) -> bytes:
    return authorization(name, password)["Authorization"].encode()


def verdict(value: bytes | None, auth: BasicAuth | None = None) -> Verdict:
    return run((auth or BasicAuth()).verdict(value, USERS, "client"))


def test_the_right_name_and_password_are_admitted() -> None:
    assert verdict(header("prometheus", "right")) is Verdict.ADMITTED


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"Basic",
        b"Basic !!!",
        b"Basic cHJvbWV0aGV1cw==",  # a name without a colon
        b"Bearer right",
        header("prometheus", "wrong"),
        header("prometheus", ""),
        header("prometheus", "right\0"),
        header("prometheus", "right" * 100),
        header("nobody", "right"),
        header("", ""),
        header("PROMETHEUS", "right"),
    ],
)
def test_everything_else_is_not(value: bytes | None) -> None:
    assert verdict(value) is Verdict.UNKNOWN


@pytest.mark.parametrize("prefix", ["$2a$", "$2b$", "$2y$"])
def test_hashes_of_every_tool_are_understood(prefix: str) -> None:
    users = {b"a": (prefix + hash_of("right")[4:]).encode()}
    assert run(BasicAuth().verdict(header("a", "right"), users, "c")) is Verdict.ADMITTED


def test_a_long_password_is_compared_as_far_as_bcrypt_looks() -> None:
    users = {b"a": hash_of("x" * 72).encode()}
    assert run(BasicAuth().verdict(header("a", "x" * 100), users, "c")) is Verdict.ADMITTED


def test_a_password_may_have_colons_and_any_letters() -> None:
    users = {"müller".encode(): hash_of("pä:ss").encode()}
    assert run(BasicAuth().verdict(header("müller", "pä:ss"), users, "c")) is Verdict.ADMITTED


class _Gate:
    """Stands in for the comparison: counts, and waits until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.entered = threading.Semaphore(0)
        self.calls = 0

    def __call__(self, password: bytes, _stored: bytes) -> bool:
        self.calls += 1
        self.entered.release()
        assert self.opened.wait(DEADLINE_SECONDS)
        return password == b"right"


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> _Gate:
    """Return what compares instead of bcrypt."""
    made = _Gate()
    monkeypatch.setattr(basic_auth, "_is_right", made)
    return made


def test_a_password_that_was_right_is_hashed_once(gate: _Gate) -> None:
    gate.opened.set()
    auth = BasicAuth()
    for _ in range(3):
        assert verdict(header("prometheus", "right"), auth) is Verdict.ADMITTED
    assert gate.calls == 1


def test_a_wrong_password_is_hashed_each_time(gate: _Gate) -> None:
    gate.opened.set()
    auth = BasicAuth()
    for _ in range(3):
        verdict(header("prometheus", "wrong"), auth)
    assert gate.calls == 3


def test_a_password_is_no_longer_right_when_the_hash_has_changed(gate: _Gate) -> None:
    gate.opened.set()
    auth = BasicAuth()
    verdict(header("prometheus", "right"), auth)
    other = {b"prometheus": hash_of("other").encode()}
    run(auth.verdict(header("prometheus", "right"), other, "client"))
    assert gate.calls == 2


def test_a_known_password_waits_for_no_comparison(gate: _Gate) -> None:
    async def ask() -> Verdict:
        auth = BasicAuth()
        gate.opened.set()
        await auth.verdict(header("prometheus", "right"), USERS, "good")
        gate.opened.clear()
        wrong = asyncio.create_task(auth.verdict(header("prometheus", "no"), USERS, "bad"))
        await asyncio.sleep(0)
        good = await auth.verdict(header("prometheus", "right"), USERS, "good")
        gate.opened.set()
        await wrong
        return good

    assert run(ask()) is Verdict.ADMITTED


def test_a_client_that_sends_many_passwords_at_once_is_turned_away(gate: _Gate) -> None:
    async def flood() -> list[Verdict]:
        auth = BasicAuth()
        tasks = [
            asyncio.create_task(auth.verdict(header("prometheus", str(n)), USERS, "bad"))
            for n in range(20)
        ]
        tasks.append(
            asyncio.create_task(auth.verdict(header("prometheus", "right"), USERS, "good"))
        )
        await asyncio.to_thread(gate.entered.acquire, timeout=DEADLINE_SECONDS)
        gate.opened.set()
        return await asyncio.gather(*tasks)

    *bad, good = run(flood())
    assert (bad.count(Verdict.UNKNOWN), bad.count(Verdict.TOO_MANY)) == (2, 18)
    assert good is Verdict.ADMITTED
    assert gate.calls == 3


def test_an_unknown_name_is_compared_at_the_cost_of_the_costliest_hash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = {b"a": hash_of("x", 5).encode(), b"b": hash_of("x", 4).encode()}
    compared: list[bytes] = []

    def compare(_password: bytes, stored: bytes) -> bool:
        compared.append(stored)
        return True

    monkeypatch.setattr(basic_auth, "_is_right", compare)
    answer = run(BasicAuth().verdict(header("nobody", "x"), users, "client"))
    assert answer is Verdict.UNKNOWN
    assert [stored[4:6] for stored in compared] == [b"05"]
