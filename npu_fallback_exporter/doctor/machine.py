"""Where the checks look; another machine can be put in its place."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_ASCEND = Path("/usr/local/Ascend")


@dataclass(frozen=True)
class Machine:
    """What is looked at.

    Attributes:
        environ: the environment that a server would be started with.
        pages: folders named by the user; empty: the folder that a server of this user would use.
        npu_smi: path of npu-smi; None: the one in PATH.
        npu_smi_seconds: deadline of one call of it.
        torch_seconds: deadline of the process that imports torch and torch_npu.
        host, port: where an exporter would listen.
        devices: folder of the device nodes.
        driver_info: version file of the driver.
        cann_folders: where CANN is looked for if ASCEND_HOME_PATH does not say.
        site_folders: where Python looks for start-up files.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    pages: tuple[Path, ...] = ()
    npu_smi: str | None = None
    npu_smi_seconds: float = 10.0
    torch_seconds: float = 60.0
    host: str = ""
    port: int = 10837
    devices: Path = Path("/dev")
    driver_info: Path = _ASCEND / "driver" / "version.info"
    cann_folders: tuple[Path, ...] = (_ASCEND / "cann", _ASCEND / "ascend-toolkit" / "latest")
    site_folders: tuple[Path, ...] = field(
        default_factory=lambda: tuple(
            Path(path)
            for path in dict.fromkeys(
                (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
            )
        )
    )
