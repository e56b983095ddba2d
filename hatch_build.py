"""Puts the one-line start-up file beside the package, in wheels and in editable installs."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StartupFileHook(BuildHookInterface):  # type: ignore[type-arg,misc,unused-ignore]
    """See ``npu_fallback_exporter/instrument/autoload.py`` for why the file is needed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to what is built."""
        kind = "force_include_editable" if version == "editable" else "force_include"
        name = "npu_fallback_exporter.pth"
        build_data.setdefault(kind, {})[f"{self.root}/{name}"] = name
