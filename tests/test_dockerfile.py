"""What can be said of the images without building them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement

from npu_fallback_exporter import __version__
from tests.support.tools import tool

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "Dockerfile"
REQUIREMENTS = ROOT / "deploy" / "image" / "requirements.txt"


def instructions(name: str) -> list[str]:
    """The arguments of every such instruction, continued lines joined."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(rf"^{name} (.*)$", text, re.MULTILINE)


def pins(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Version and hashes by name."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {
        name: (version, [option.partition("=")[2] for option in options])
        for (name, _, version), options in ((line[0].partition("=="), line[1:]) for line in lines)
    }


def test_hadolint_finds_nothing() -> None:
    done = subprocess.run(
        [tool("hadolint"), "--no-color", str(DOCKERFILE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_there_is_one_base_image_by_version_and_digest() -> None:
    (base,) = (one for one in instructions("ARG") if one.startswith("PYTHON_IMAGE="))
    assert re.fullmatch(
        r"PYTHON_IMAGE=docker\.io/library/python:[\d.]+-\S+@sha256:[0-9a-f]{64}", base
    )
    stages = [re.fullmatch(r"(\S+) AS (\S+)", one) for one in instructions("FROM")]
    names = {stage[2] for stage in stages if stage}
    assert all(stage and stage[1] in {"${PYTHON_IMAGE}", *names} for stage in stages)


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-build.txt"])
def test_every_python_package_is_pinned_with_its_hashes(file: str) -> None:
    for version, hashes in pins(REQUIREMENTS.with_name(file)).values():
        assert re.fullmatch(r"[\d.]+", version)
        assert hashes
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes)


def test_the_pinned_packages_are_those_that_the_package_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned = pins(REQUIREMENTS)
    for text in project["project"]["dependencies"]:
        wanted = Requirement(text)
        version, _ = pinned[wanted.name.replace("_", "-").lower()]
        assert version in wanted.specifier
    (builder,) = project["build-system"]["requires"]
    version, _ = pins(REQUIREMENTS.with_name("requirements-build.txt"))[Requirement(builder).name]
    assert version in Requirement(builder).specifier


def test_the_image_bears_the_version_of_the_package() -> None:
    assert f"VERSION={__version__}" in instructions("ARG")


def test_the_default_image_is_the_exporter_and_its_user_is_a_number() -> None:
    assert instructions("FROM")[-1] == "${PYTHON_IMAGE} AS exporter"
    assert set(instructions("USER")) == {"65532:65532", "0:0"}
    assert instructions("USER")[-1] == "65532:65532"


def test_what_is_copied_into_the_images_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_through = [line[1:] for line in ignored if line.startswith("!")]
    for arguments in instructions("COPY"):
        *sources, _ = arguments.split()
        if not arguments.startswith("--from"):
            for source in sources:
                assert (ROOT / source).exists()
                assert any(source == one or source.startswith(f"{one}/") for one in let_through)
