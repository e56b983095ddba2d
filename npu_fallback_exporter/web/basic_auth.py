"""Names and passwords of clients, compared with bcrypt hashes."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import bcrypt

# More of one client wait for nothing: each takes tens of milliseconds of a core.
_MAX_WAITING_PER_CLIENT = 2
# bcrypt looks at no more than this, and its library refuses more.
_MAX_PASSWORD_BYTES = 72
_COST_FIELD = slice(4, 6)


class Verdict(Enum):
    """What a client is told."""

    ADMITTED = 200
    UNKNOWN = 401
    TOO_MANY = 429


class BasicAuth:
    """Tells whether a request has a right name and password. To be used by one event loop.

    A bcrypt hash is slow to compute by design. Hence a password that was right is known again,
    by a keyed digest of it; the others are compared in one thread, one at a time, and a client
    that sends many at once is turned away. An unknown name takes as long as a wrong password.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, bytes] = {}
        self._thread = ThreadPoolExecutor(1, "bcrypt")
        self._turn = asyncio.Lock()
        self._waiting: Counter[str] = Counter()

    async def verdict(
        self, authorization: bytes | None, users: Mapping[bytes, bytes], client: str
    ) -> Verdict:
        """Compare the value of the header Authorization.

        Args:
            authorization: its value; ``None``: there is none.
            users: bcrypt hash by name.
            client: address that the request came from.
        """
        credentials = _credentials(authorization)
        if credentials is None:
            return Verdict.UNKNOWN
        name, password = credentials
        stored = users.get(name) or _hash_of_nobody(users)
        digest = self._digest(name, password, stored)
        if hmac.compare_digest(digest, self._known.get(name, b"")):
            return Verdict.ADMITTED
        if self._waiting[client] >= _MAX_WAITING_PER_CLIENT:
            return Verdict.TOO_MANY
        self._waiting[client] += 1
        try:
            async with self._turn:
                loop = asyncio.get_running_loop()
                right = await loop.run_in_executor(self._thread, _is_right, password, stored)
        finally:
            self._waiting[client] -= 1
            self._waiting += Counter()  # forgets clients of which nobody waits
        if not right or name not in users:
            return Verdict.UNKNOWN
        self._known = {known: self._known[known] for known in users if known in self._known}
        self._known[name] = digest
        return Verdict.ADMITTED

    def _digest(self, name: bytes, password: bytes, stored: bytes) -> bytes:
        message = b"".join(len(part).to_bytes(4, "big") + part for part in (name, password, stored))
        return hmac.digest(self._key, message, hashlib.sha256)


def _credentials(authorization: bytes | None) -> tuple[bytes, bytes] | None:
    scheme, _, encoded = (authorization or b"").partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except binascii.Error:
        return None
    return (name, password) if colon else None


def _hash_of_nobody(users: Mapping[bytes, bytes]) -> bytes:
    """Return a hash that no password has, as costly as the costliest of the users."""
    cost = max((stored[_COST_FIELD] for stored in users.values()), default=b"10")
    return b"$2b$" + cost + b"$" + b"." * 53


def _is_right(password: bytes, stored: bytes) -> bool:
    try:
        return bcrypt.checkpw(password[:_MAX_PASSWORD_BYTES], stored)
    except ValueError:
        return False
