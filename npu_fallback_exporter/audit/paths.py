"""Whether the files of a question are there."""

from __future__ import annotations

from pathlib import Path

from .errors import AuditError, unknown


def check_script(path: Path) -> None:
    """Check that there is such a program.

    Raises:
        AuditError: there is none.
    """
    if not path.is_file():
        beside = [str(path.parent / other.name) for other in path.parent.glob("*.py")]
        raise unknown(
            "script", str(path), beside, "give the path of a Python file, or module:factory"
        )


def check_config(folder: Path) -> None:
    """Check that a folder has a configuration of transformers.

    Raises:
        AuditError: it has none.
    """
    if (folder / "config.json").is_file():
        return
    if not folder.is_dir():
        beside = [str(other) for other in folder.parent.glob("*") if other.is_dir()]
        raise unknown("folder", str(folder), beside, "give a folder with a config.json")
    raise AuditError(f"{folder} has no config.json", "give the folder of a transformers model")
