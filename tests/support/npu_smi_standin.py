"""An executable that stands in for npu-smi: it replays outputs, and misbehaves on request.

It is a program of its own, because the environment that npu-smi gets carries no
setting of a test: what it does stands in a file beside it, which a test may
change while an exporter runs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Reply:
    """What one call does, in this order.

    Attributes:
        text: printed to stdout.
        error_text: printed to stderr.
        exit_status: how the call ends.
        delay_seconds: before it prints.
        child_holds_pipe: leave a child behind that keeps stdout open.
        flood_bytes: print so many bytes more.
        hang: never end.
        ignore_term: ignore SIGTERM, as a process in the driver does.
    """

    text: str = ""
    error_text: str = ""
    exit_status: int = 0
    delay_seconds: float = 0.0
    child_holds_pipe: bool = False
    flood_bytes: int = 0
    hang: bool = False
    ignore_term: bool = False


class StandIn:
    """A stand-in in ``folder``; ``path`` is what an exporter is given."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "npu-smi"
        self._replies = folder / "npu-smi.json"
        self._calls = folder / "npu-smi.calls"
        # No site packages and no user settings: a call should cost little.
        self.path.write_text(
            f"#!{sys.executable} -IS\n"
            "import sys\n"
            f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
            "from tests.support.npu_smi_standin import play\n"
            "play(__file__)\n",
            encoding="utf-8",
        )
        self.path.chmod(0o755)
        self.reply({})

    def reply(self, replies: dict[str, Reply], default: Reply | None = None) -> None:
        """Set the replies by arguments, such as ``info -t usages -i 0``."""
        default = default or Reply("dcmi module initialize failed. ret is -8005\n", "", 187)
        settings = {arguments: asdict(reply) for arguments, reply in replies.items()}
        # Replaced in one step: a call that is under way reads the old or the new one.
        draft = self._replies.with_suffix(".draft")
        draft.write_text(json.dumps({**settings, "": asdict(default)}), encoding="utf-8")
        draft.replace(self._replies)

    def calls(self) -> list[tuple[int, str]]:
        """All calls so far, as (pid, arguments)."""
        if not self._calls.exists():
            return []
        lines = self._calls.read_text(encoding="utf-8").splitlines()
        return [(int(pid), arguments) for pid, arguments in (line.split(" ", 1) for line in lines)]


def play(path: str) -> None:
    """Be npu-smi for one call."""
    arguments = " ".join(sys.argv[1:])
    with Path(path + ".calls").open("a", encoding="utf-8") as log:
        log.write(f"{os.getpid()} {arguments}\n")
    replies = json.loads(Path(path + ".json").read_text(encoding="utf-8"))
    reply = Reply(**replies.get(arguments, replies[""]))
    if reply.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(reply.delay_seconds)
    sys.stderr.write(reply.error_text)
    sys.stderr.flush()
    sys.stdout.write(reply.text)
    sys.stdout.flush()
    if reply.child_holds_pipe and os.fork() == 0:
        if reply.ignore_term:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
        os._exit(0)
    left = reply.flood_bytes
    while left > 0:
        left -= os.write(1, b"x" * min(left, 65536))
    while reply.hang:
        time.sleep(600)
    os._exit(reply.exit_status)
