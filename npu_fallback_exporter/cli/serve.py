"""``serve``: the sidecar."""

from __future__ import annotations

import argparse
import logging
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ..aggregator import DEFAULT_MAX_OPS
from ..errors import ConfigError
from . import npu_smi_flags

if TYPE_CHECKING:
    from ..collectors.base import Collector
    from ..collectors.fallback import FallbackCollector
    from ..npu_smi.sampler import NpuSmiSampler
    from ..web.listen_address import ListenAddress
    from ..web.watched_config import WatchedConfig

HELP = "read the pages of all server processes and answer Prometheus"
EXAMPLE = "npu-fallback-exporter serve --web.listen-address 127.0.0.1:10837"

DEFAULT_ADDRESS = ":10837"
_LOG_LEVELS = ("debug", "info", "warning", "error")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    parser.add_argument(
        "--web.listen-address",
        dest="listen_address",
        type=listen_address,
        default=DEFAULT_ADDRESS,
        metavar="[HOST]:PORT",
        help="where to answer; port 0 takes one that is free (default: %(default)s)",
    )
    parser.add_argument(
        "--web.config.file",
        dest="config_file",
        type=Path,
        metavar="FILE",
        help="TLS, client certificates and passwords, in the format of the Prometheus exporters; "
        "read again when it changes (default: none of them)",
    )
    parser.add_argument(
        "--web.show-call-sites",
        dest="show_call_sites",
        action=argparse.BooleanOptionalAction,
        help="name paths and call sites in answers other than /metrics, which never does (default: "
        "when only this host can connect, or every client is authenticated)",
    )
    parser.add_argument(
        "--web.created-lines",
        dest="created_lines",
        action="store_true",
        help="also give the time since when each counter of the hooks counts (_created)",
    )
    parser.add_argument(
        "--pages",
        action="append",
        type=Path,
        metavar="DIR",
        help="folder of pages, may be given several times (default: NPU_FALLBACK_DIR, or else "
        "every readable default folder)",
    )
    parser.add_argument(
        "--max-ops",
        type=_positive,
        default=DEFAULT_MAX_OPS,
        metavar="N",
        help="distinct ops with series of their own; the rest is __other__ (default: %(default)s)",
    )
    parser.add_argument(
        "--fold-npu", action="store_true", help='give the series of ops the label npu="all"'
    )
    npu_smi_flags.add_arguments(parser)
    parser.add_argument(
        "--log.level",
        dest="log_level",
        choices=_LOG_LEVELS,
        default="info",
        help="least level of what is logged to stderr (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    # Imported here, so that the other verbs need neither prometheus_client nor uvicorn.
    from ..aggregator import Aggregator
    from ..collectors.composite import CompositeCollector
    from ..collectors.fallback import FallbackCollector
    from ..collectors.housekeeping import Housekeeping
    from ..history.sampler import HistorySampler
    from ..report.call_sites import CallSites
    from ..report.live import LiveReports
    from ..web import server, standby
    from ..web.app import ExporterApp
    from ..web.watched_config import WatchedConfig

    server.end_on_signals()
    _log_to_stderr(args.log_level)
    with ExitStack() as stack:
        watched = stack.enter_context(WatchedConfig(args.config_file))
        listener = stack.enter_context(_listen(args.listen_address))
        stack.enter_context(standby.mark(listener.getsockname()[1]))
        aggregator = Aggregator(args.max_ops, args.fold_npu, _boot_id())
        folders = _folders(args.pages)
        sampler = npu_smi_flags.sampler_of(args)
        fallback = FallbackCollector(folders, aggregator, args.created_lines)
        history = HistorySampler(fallback, sampler)
        web_config = watched.current.config
        shows_details = server.may_show_details(args.show_call_sites, listener, web_config)
        call_sites = CallSites(folders) if shows_details else None
        app = ExporterApp(
            CompositeCollector(_collectors(fallback, sampler)),
            needed=("fallback",),
            config=lambda: watched.current.config,
            shows_details=shows_details,
            details_by_local_name=args.show_call_sites is None and not web_config.authenticates,
            report=LiveReports(fallback, history, sampler, call_sites).report,
        )
        _name_folders(tuple(folders()))
        _tell_address(listener, watched)
        if sampler is not None:
            stack.enter_context(sampler)
        stack.enter_context(Housekeeping(fallback))
        stack.enter_context(history)
        # Until SIGTERM or SIGINT; answers under way are finished.
        server.ExporterServer(app, listener, watched).run()
    return 0


def _listen(address: ListenAddress) -> socket.socket:
    from ..web import server, standby

    return standby.listen_in_turn(
        lambda: server.listen(address),
        address.port,
        lambda: _log.info(
            "another exporter listens on %s: standing by to take over when it ends. It shows the "
            "same servers if it reads the same folder",
            address,
        ),
    )


def _tell_address(listener: socket.socket, watched: WatchedConfig) -> None:
    from ..web import server

    config = watched.current.config
    _log.info("listening on %s", server.url(listener, config.tls is not None))
    if config.users and config.tls is None and not server.is_loopback(listener):
        _log.warning("passwords cross the network unencrypted: add tls_server_config")


def _collectors(fallback: FallbackCollector, sampler: NpuSmiSampler | None) -> list[Collector]:
    """Everything that is asked at a scrape, in the order of the answer."""
    from ..collectors.build_info import BuildInfoCollector
    from ..collectors.host import HostCollector, identities_of
    from ..collectors.npu_mapping import NpuMappingCollector
    from ..collectors.npu_smi import NpuSmiCollector
    from ..collectors.process import OwnProcessCollector

    devices: list[Collector] = []
    if sampler is not None:
        devices = [
            NpuSmiCollector(sampler),
            NpuMappingCollector(sampler, lambda: fallback.live_pages),
        ]
    return [
        fallback,
        *devices,
        HostCollector(lambda: identities_of(fallback.live_pages)),
        BuildInfoCollector(),
        OwnProcessCollector(),
    ]


def _folders(given: list[Path] | None) -> Callable[[], Iterable[Path]]:
    from ..pages.discovery import readable_default_folders

    named = given or [Path(text) for text in (os.environ.get("NPU_FALLBACK_DIR"),) if text]
    if not named:
        return readable_default_folders
    fixed = tuple(dict.fromkeys(folder.absolute() for folder in named))
    return lambda: fixed


def _name_folders(folders: tuple[Path, ...]) -> None:
    for folder in folders:
        if folder.is_dir():
            _log.info("reading pages in %s", folder)
        else:
            _log.warning("no pages folder %s yet: it is read as soon as it is there", folder)
    if not folders:
        _log.warning("no pages folder yet: it is read as soon as a server has made one")


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=level.upper())
    # It warns of every request that is none: whoever sends them could fill the log.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def listen_address(text: str) -> ListenAddress:
    """Read the value of ``--web.listen-address``."""
    from ..web.listen_address import ListenAddress

    try:
        return ListenAddress.parse(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
