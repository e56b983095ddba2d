"""Puts the whole test run on the simulated device, once, before torch is imported.

torch_npu looks for the CANN libraries when it is loaded, and the loader reads its search path
when the process starts: so the run starts itself again in the simulation's environment. Nothing
happens where there is a real NPU, where torch_npu is not installed, or with ``CANN_SIM=off``.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.cann_sim import Ledger, build, environment, has_real_npu, is_active

if TYPE_CHECKING:
    from tests.support.canary_scenarios import Canaries

#: Of torch and torch_npu about their own code, said once per process by whichever test is first.
_THEIR_OWN_WARNINGS = (
    "ignore:Cannot create tensor with internal format:UserWarning",
    "ignore:TypedStorage is deprecated:UserWarning",
    "ignore:torch_npu.npu_gru is deprecated:UserWarning",
    "ignore:dynamo_pgo force disabled:UserWarning",
    "ignore:triton-ascend is not installed:UserWarning",
    "ignore:`torch.jit.:DeprecationWarning",
    "ignore:`isinstance.treespec, LeafSpec:FutureWarning",
)

collect_ignore_glob = (
    []
    if importlib.util.find_spec("torch_npu") is not None
    else ["test_cann_sim_*.py", "test_hook_*.py", "test_tracker_*.py", "test_boundary_in_*.py"]
)


def pytest_configure(config: pytest.Config) -> None:
    # A shell ignores SIGINT for what it runs in the background, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for warning in _THEIR_OWN_WARNINGS:
        config.addinivalue_line("filterwarnings", warning)
    if not _wants_simulation():
        return
    libraries = build()
    if not is_active(libraries):
        # Output capturing has replaced stdout and stderr; the new process needs the real ones.
        capture = config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.stop_global_capturing()
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, sys.orig_argv, environment(libraries))


def _wants_simulation() -> bool:
    return (
        os.environ.get("CANN_SIM") != "off"
        and importlib.util.find_spec("torch_npu") is not None
        and not has_real_npu()
    )


@pytest.fixture
def ledger() -> Ledger:
    """The simulated device's own count of what crossed its boundary; skips without it."""
    if not _wants_simulation():
        pytest.skip("needs torch_npu on the simulated device")
    return Ledger()


@pytest.fixture(scope="session")
def hook_is_built() -> None:
    """Compile the hook, so that processes which a test starts find it."""
    from npu_fallback_exporter.instrument.build import build as build_hook

    build_hook()


@pytest.fixture(scope="session")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canaries]:
    """A Prometheus that has seen every row of the canary's truth table."""
    from tests.support.canary_scenarios import observed

    with observed(tmp_path_factory.mktemp("canaries")) as found:
        yield found
