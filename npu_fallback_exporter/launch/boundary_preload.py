"""Having the driver boundary watched in a command and in all that it starts."""

from __future__ import annotations

from collections.abc import Mapping

from npu_fallback_exporter.errors import BuildError
from npu_fallback_exporter.instrument.hook_path import find_boundary
from npu_fallback_exporter.launch.hook_ready import preferred_folder

#: The dynamic loader splits LD_PRELOAD at these, and knows no way to quote them.
_SEPARATORS = ": "


def with_boundary(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the boundary library in ``LD_PRELOAD``, behind the user's own.

    Where there is none, the environment is returned as it is.

    Raises:
        BuildError: the library lies at a path that ``LD_PRELOAD`` cannot hold.
    """
    path = find_boundary(preferred_folder(environ))
    if path is None:
        return dict(environ)
    name = str(path.absolute())
    if any(separator in name for separator in _SEPARATORS):
        raise BuildError(
            f"copies at the driver are not watched: LD_PRELOAD cannot hold the path {name!r}",
            "build the hook in a folder whose path has no space or colon, and name that folder in "
            "NPU_FALLBACK_HOOK_PATH",
        )
    present = environ.get("LD_PRELOAD", "")
    if name in present.replace(" ", ":").split(":"):
        return dict(environ)
    return {**environ, "LD_PRELOAD": ":".join(filter(None, [present, name]))}
