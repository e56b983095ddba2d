"""Building the boundary library, and the environment that preloads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_fallback_exporter.errors import BuildError
from npu_fallback_exporter.instrument import hook_path
from npu_fallback_exporter.instrument.build import build_boundary
from npu_fallback_exporter.launch.boundary_preload import with_boundary


def prebuilt(folder: Path) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / hook_path.boundary_file_name()).touch()
    return {"NPU_FALLBACK_HOOK_PATH": str(folder)}


def test_it_is_appended_to_what_the_user_preloads(tmp_path: Path) -> None:
    environ = prebuilt(tmp_path)
    own = str(tmp_path / hook_path.boundary_file_name())
    assert with_boundary(environ) == {**environ, "LD_PRELOAD": own}
    for theirs in ("liba.so", "liba.so libb.so", "liba.so:libb.so"):
        once = with_boundary({**environ, "LD_PRELOAD": theirs})
        assert once["LD_PRELOAD"] == f"{theirs}:{own}"
        assert with_boundary(once) == once


@pytest.mark.parametrize("name", ["with space", "with:colon"])
def test_a_path_that_the_loader_would_split_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(BuildError, match="LD_PRELOAD cannot hold the path"):
        with_boundary(prebuilt(tmp_path / name))


def test_without_a_library_the_environment_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(hook_path, "PACKAGED", tmp_path)
    assert with_boundary({"PATH": "/bin"}) == {"PATH": "/bin"}


def test_without_a_compiler_the_next_step_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match=r"no C compiler found \(no-such-compiler\)"):
        build_boundary(tmp_path)


def test_it_is_compiled_once_per_state_of_its_sources(tmp_path: Path) -> None:
    path = build_boundary(tmp_path)
    first = path.stat()
    assert build_boundary(tmp_path) == path
    assert path.stat().st_mtime_ns == first.st_mtime_ns
    build_boundary(tmp_path, force=True)
    assert path.stat().st_ino != first.st_ino
