"""A real Chromium without a window, driven through its DevTools protocol over two pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

DEADLINE_SECONDS = 30.0
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--no-first-run",
    "--no-proxy-server",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def executable() -> str:
    """Path of Chromium; skips the test where there is none."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium: apt-get install chromium fonts-dejavu-core")
    return found


class Chromium:
    """The browser. Commands are sent one at a time; events are kept by the tab they are of."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._unread = b""
        self._number = 0
        self.tabs: dict[str, Tab] = {}

    def call(self, method: str, session: str = "", **parameters: object) -> dict[str, Any]:
        """Send a command and wait for its result."""
        number = self.send(method, session, **parameters)
        until = time.monotonic() + DEADLINE_SECONDS
        while True:
            message = self._read(until)
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                result: dict[str, Any] = message["result"]
                return result

    def send(self, method: str, session: str = "", **parameters: object) -> int:
        """Send a command without waiting; return its number."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        return self._number

    def open(self, **options: Any) -> Tab:
        """Open an empty tab of its own profile: no cookies, no storage of others."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        tab = Tab(self, attached["sessionId"], **options)
        self.tabs[attached["sessionId"]] = tab
        for domain in ("Page", "Runtime", "Log"):
            tab.call(f"{domain}.enable")
        return tab

    def _read(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            assert ready, "Chromium does not answer"
            data = os.read(self._from, 1 << 16)
            assert data, "Chromium has ended"
            self._unread += data
        text, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        tab = self.tabs.get(message.get("sessionId", ""))
        if tab is not None and "method" in message:
            tab.note(message["method"], message["params"])
        return message


@dataclass
class Tab:
    """One tab.

    Attributes:
        user: name and password for a server that asks for them.
        complaints: what the browser and the page wrote to the console, and uncaught errors.
    """

    browser: Chromium
    session: str
    user: tuple[str, str] | None = None
    complaints: list[str] = field(default_factory=list)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def note(self, method: str, content: dict[str, Any]) -> None:
        """Take in an event."""
        if method == "Log.entryAdded":
            entry = content["entry"]
            self.complaints.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(content["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"{content['type']}: {content['args']}")
        elif method == "Fetch.requestPaused":
            request = content["requestId"]
            self.browser.send("Fetch.continueRequest", self.session, requestId=request)
        elif method == "Fetch.authRequired":
            assert self.user is not None
            name, password = self.user
            answer = {"response": "ProvideCredentials", "username": name, "password": password}
            self.browser.send(
                "Fetch.continueWithAuth",
                self.session,
                requestId=content["requestId"],
                authChallengeResponse=answer,
            )

    def look(
        self, width: int = 1280, height: int = 900, *, dark: bool = False, languages: str = "en-US"
    ) -> Tab:
        """Set size, colours and languages for what is opened next."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        agent = self.browser.call("Browser.getVersion")["userAgent"]
        self.call("Network.setUserAgentOverride", userAgent=agent, acceptLanguage=languages)
        return self

    def go(self, url: str, until: str = "document.readyState === 'complete'") -> Tab:
        """Open an address, and wait until a condition in JavaScript holds."""
        if self.user is not None:
            self.call("Fetch.enable", handleAuthRequests=True)
        failed = self.call("Page.navigate", url=url).get("errorText")
        assert not failed, failed
        self.wait(f"location.href !== 'about:blank' && ({until})")
        return self

    def run(self, expression: str) -> Any:
        """Return the value of an expression in the page; promises are waited for."""
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, condition: str, seconds: float = DEADLINE_SECONDS) -> None:
        """Ask until a condition in JavaScript holds; fails after so many seconds."""
        until = time.monotonic() + seconds
        while not self.run(condition):
            assert time.monotonic() < until, f"{condition} does not hold: {self.text()[:2000]}"
            time.sleep(0.02)

    def text(self) -> str:
        """All that a reader sees."""
        return str(self.run("document.body.innerText"))

    def press(self, key: str) -> None:
        """Press and release a key, such as ``Tab``."""
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Escape": 27}
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes[key],
                **({"text": "\r"} if key == "Enter" and kind == "rawKeyDown" else {}),
            )

    def picture(self, path: Path) -> None:
        """Save all of the page as a PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "scale": 1, "width": size["width"], "height": size["height"]}
        data = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        path.write_bytes(base64.b64decode(data["data"]))


@contextmanager
def chromium(profile: Path) -> Iterator[Chromium]:
    """Run Chromium until the block ends.

    Args:
        profile: an empty folder for what it keeps.
    """
    program = executable()
    pipes = [_high(end) for pair in (os.pipe(), os.pipe()) for end in pair]
    its_input, to_browser, from_browser, its_output = pipes
    pid = os.posix_spawn(
        program,
        [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
        {**os.environ, "HOME": str(profile), "LC_ALL": "C.UTF-8"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(profile / "log"), os.O_WRONLY | os.O_CREAT, 0o600),
            (os.POSIX_SPAWN_DUP2, its_input, 3),
            (os.POSIX_SPAWN_DUP2, its_output, 4),
        ],
        setpgroup=0,
    )
    os.close(its_input)
    os.close(its_output)
    try:
        yield Chromium(to_browser, from_browser)
    finally:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(to_browser)
        os.close(from_browser)


def _high(descriptor: int) -> int:
    """Move a descriptor out of the way of 3 and 4, which the browser uses."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved
