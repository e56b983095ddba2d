"""The ways into a server process that need no change of its code.

``activate`` is called by PyTorch at the end of ``import torch`` (entry point ``torch.backends``).
``on_startup`` is called by a line in ``npu_fallback_exporter.pth`` when Python starts: torch_npu
switches PyTorch's entry points off while it is imported itself, so a server that imports torch_npu
before torch never runs ``activate``. Neither raises: ``import torch`` never fails because of us.
"""

from __future__ import annotations

import os

from npu_fallback_exporter.config import ServerSettings


def activate() -> None:
    """Arm this process if its environment asks for it."""
    try:
        settings = ServerSettings.from_environ(os.environ)
        if settings.wanted:
            from npu_fallback_exporter.instrument.arming import install
            from npu_fallback_exporter.instrument.boundary import load_early

            load_early(settings.hook_path)
            install()
    except Exception as error:
        _say_unexpected(error)


def on_startup() -> None:
    """Arrange for this process to be armed when it imports torch_npu, if its environment asks."""
    try:
        settings = ServerSettings.from_environ(os.environ)
        if settings.wanted:
            from npu_fallback_exporter.instrument.boundary import load_early
            from npu_fallback_exporter.instrument.import_watch import when_imported

            load_early(settings.hook_path)
            when_imported("torch_npu", activate)
    except Exception as error:
        _say_unexpected(error)


def _say_unexpected(error: Exception) -> None:
    import logging

    logging.getLogger("npu_fallback_exporter").error(
        "npu-fallback-exporter: not armed, nothing is counted: %s: %s: report it with this line",
        type(error).__name__,
        error,
    )
