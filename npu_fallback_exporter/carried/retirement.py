"""Taking the pages of processes that have ended out of their folder, without losing a count.

All exporters of a folder may do it, one at a time, under a lock on the folder itself. The counts
are in ``totals.json``, with the names of who was merged, before a page is removed: who reads both
the file and the page knows that they are one. An exporter that may not write in the folder only
reads.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import PageError
from ..pages.arm_failure import ArmFailures
from ..pages.discovery import CARRIED_FILES, SUFFIX, FoundFolder, FoundPage, Scan, scan
from ..pages.layout import PAGE_BYTES
from ..pages.page import read_notes
from ..pages.small_file import read_small_file
from . import armed, record, recordings
from .reader import seen_armed
from .tally import Tally, tally_of_failures, tally_of_page

_log = logging.getLogger(__name__)

# So that a scrape that finds thousands of pages is not kept waiting: the rest comes at the next.
_MOST_AT_ONCE = 256
# A file that is being made is locked and named within milliseconds.
_UNFINISHED_NS = 60_000_000_000


def tidy(folder: Path, most: int = 64) -> None:
    """Retire the pages of one folder if there are more than `most`; never raises.

    For processes that make pages where perhaps no exporter runs, or none that may write.
    """
    try:
        if sum(1 for _ in folder.glob(f"*{SUFFIX}")) > most:
            found = scan([folder], ArmFailures())
            Retirement().run(found, seen_armed(found.folders), time.monotonic_ns())
    except Exception as error:
        _log.debug("cannot tidy %s: %s: %s", folder, type(error).__name__, error)


class Retirement:
    """Retires what each scan finds. Never raises for what is in a folder.

    Not safe for use by several threads at once.
    """

    def __init__(self) -> None:
        self._unfinished: dict[tuple[str, str, int], int] = {}
        self._said: dict[str, str] = {}

    def run(self, scan: Scan, armed_ns: Mapping[str, int], now_ns: int) -> None:
        """Merge and remove pages that have ended, and arm failures.

        Args:
            scan: what the folders hold.
            armed_ns: how long each process was seen armed by any exporter, by its digest.
            now_ns: CLOCK_MONOTONIC.
        """
        live = {found.digest for found in scan.pages if found.reading.live}
        for folder in scan.folders:
            pages = [found for found in scan.pages if Path(found.path).parent == folder.path]
            try:
                with _locked(folder.path) as descriptor:
                    if descriptor is None:
                        continue
                    self._settle(folder, descriptor, pages, live, armed_ns)
                    self._remove_unfinished(folder, descriptor, now_ns)
                self._said.pop(str(folder.path), None)
            except (OSError, PageError) as error:
                self._say(folder.path, error)

    def _settle(
        self,
        folder: FoundFolder,
        descriptor: int,
        pages: list[FoundPage],
        live: set[str],
        armed_ns: Mapping[str, int],
    ) -> None:
        ended = [found for found in pages if found.digest not in live]
        if not ended and not folder.failures:
            _keep_armed(descriptor, folder, pages, armed_ns)
            return
        carried = _carried(folder.path, descriptor)
        merged = set(carried.merged)
        # Those first whom an exporter has merged and not removed: names stay on the list for a
        # limited number of merges only.
        _unlink(descriptor, (_name(found) for found in ended if found.digest in merged))
        _unlink(descriptor, (one.name for one in folder.failures if one.digest in merged))
        # Another exporter may have taken them away since the scan.
        new = [found for found in ended if _exists(descriptor, _name(found))][:_MOST_AT_ONCE]
        failures = [one for one in folder.failures if _exists(descriptor, one.name)]
        rest = [found for found in pages if found.digest not in merged]
        _keep_armed(descriptor, folder, rest, armed_ns)
        if not new and not failures:
            return
        distinct = {found.digest: found for found in new}  # a copy has the digest of its original
        tallies: list[Tally] = [
            tally_of_page(
                found.reading.page,
                max(found.reading.page.armed.until_last_seen_ns, armed_ns.get(digest, 0)),
                finished=True,
            )
            for digest, found in distinct.items()
        ]
        tallies.append(tally_of_failures(one.reason for one in failures))
        names = [*distinct, *(one.digest for one in failures)]
        _keep_recordings(descriptor, distinct.values())
        after = carried.with_merged(names, tallies)
        _replace(descriptor, record.NAME, record.encode(after))
        _unlink(descriptor, (_name(found) for found in new))
        _unlink(descriptor, (one.name for one in failures))

    def _remove_unfinished(self, folder: FoundFolder, descriptor: int, now_ns: int) -> None:
        """Remove files of processes that ended while they made their page.

        Seen twice by one exporter, a minute apart on a clock that nobody sets.
        """
        with os.scandir(descriptor) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(".tmp")]
        present: dict[tuple[str, str, int], int] = {}
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                key = (str(folder.path), name, status.st_ino)
                present[key] = self._unfinished.get(key, now_ns)
                if now_ns - present[key] >= _UNFINISHED_NS and status.st_size <= PAGE_BYTES:
                    _unlink(descriptor, [name])
        others = {
            key: since for key, since in self._unfinished.items() if key[0] != str(folder.path)
        }
        self._unfinished = {**others, **present}

    def _say(self, folder: Path, error: OSError | PageError) -> None:
        if isinstance(error, PageError):
            line = str(error)
        else:
            line = (
                f"cannot carry over the counts of ended processes in {folder} ({error.strerror}): "
                "their pages stay there; free space, or run the exporter as the server's user"
            )
        if self._said.get(str(folder)) != line:
            self._said[str(folder)] = line
            _log.warning("%s", line)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int | None]:
    """Descriptor of the folder, locked; None: another exporter is at it, or it is read-only."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not _may_remove_files_in(descriptor):
            yield None
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield descriptor
    finally:
        os.close(descriptor)


def _may_remove_files_in(descriptor: int) -> bool:
    if not os.access(f"/proc/self/fd/{descriptor}", os.W_OK | os.X_OK, effective_ids=True):
        return False
    status = os.fstat(descriptor)
    restricted = status.st_mode & stat.S_ISVTX  # each user only his own files
    return not restricted or os.geteuid() in {0, status.st_uid}


def _carried(folder: Path, descriptor: int) -> record.Carried:
    try:
        return record.decode(read_small_file(record.NAME, descriptor, CARRIED_FILES[record.NAME]))
    except FileNotFoundError:
        return record.Carried()
    except PageError as error:
        if error.reason != "corrupt":
            raise
        aside = f"{record.NAME}.corrupt"
        os.rename(record.NAME, aside, src_dir_fd=descriptor, dst_dir_fd=descriptor)
        _log.error("%s: moved aside as %s/%s", error, folder, aside)
        return record.Carried()


def _keep_armed(
    descriptor: int,
    folder: FoundFolder,
    pages: Iterable[FoundPage],
    armed_ns: Mapping[str, int],
) -> None:
    data = folder.carried.get(armed.NAME, b"")
    before = armed.decode(data)
    now = {
        found.digest: max(armed_ns.get(found.digest, 0), before.get(found.digest, 0))
        for found in pages
    }
    if now != before:
        _replace(descriptor, armed.NAME, armed.encode(now))


def _keep_recordings(descriptor: int, pages: Iterable[FoundPage]) -> None:
    """Keep how operators were called first. Of interest, but no reason to keep a page."""
    kept = _recordings(descriptor)
    before = len(kept)
    for found in pages:
        page = found.reading.page
        if all(key.op in kept for key in page.slots):
            continue
        with contextlib.suppress(PageError):
            notes = read_notes(_name(found), descriptor)
            kept = {**recordings.recordings_in(notes, page.versions), **kept}
    if len(kept) > before:
        _replace(descriptor, recordings.NAME, recordings.encode(kept))


def recordings_of(folder: Path) -> dict[str, recordings.Recording]:
    """Return how operators were called first, by processes of this folder that have ended."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        return _recordings(descriptor)
    finally:
        os.close(descriptor)


def _recordings(descriptor: int) -> dict[str, recordings.Recording]:
    try:
        data = read_small_file(recordings.NAME, descriptor, recordings.MAX_BYTES)
    except OSError:
        return {}
    return recordings.decode(data)


def _replace(descriptor: int, name: str, data: bytes) -> None:
    """Write a file so that readers see the old or the new contents. The folder is locked."""
    unfinished = f"{name}.tmp"
    _unlink(descriptor, [unfinished])
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(unfinished, flags, 0o600, dir_fd=descriptor), "wb") as file:
            if os.fstat(descriptor).st_mode & stat.S_ISGID:  # shared with a group
                os.fchmod(file.fileno(), 0o640)
            file.write(data)
        os.rename(unfinished, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
    except OSError:
        _unlink(descriptor, [unfinished])
        raise


def _unlink(descriptor: int, names: Iterable[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=descriptor)


def _exists(descriptor: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return False
    return True


def _name(found: FoundPage) -> str:
    return Path(found.path).name
