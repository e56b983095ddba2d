"""The manifests under ``deploy/kubernetes``, as ``kubectl kustomize`` renders them."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.tools import tool

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"

#: Every folder that a user applies.
APPLIED = tuple(
    sorted(
        str(path.parent.relative_to(KUBERNETES))
        for path in KUBERNETES.rglob("kustomization.yaml")
        if "components" not in path.parts
    )
)
EXAMPLES = tuple(name for name in APPLIED if name.startswith("examples/"))

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Template:
    """A pod template inside a manifest; ``path`` says where."""

    path: str
    body: Manifest

    @property
    def spec(self) -> Manifest:
        spec: Manifest = self.body["spec"]
        return spec

    def init_container(self, name: str) -> Manifest:
        return _named(self.spec.get("initContainers", ()), name)

    def volume(self, name: str) -> Manifest:
        return _named(self.spec["volumes"], name)


@functools.cache
def rendered(folder: Path) -> str:
    """What ``kubectl apply -k`` would send."""
    done = subprocess.run(
        [tool("kubectl"), "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def manifests(name: str) -> list[Manifest]:
    """The manifests of a folder under ``deploy/kubernetes``."""
    return list(yaml.safe_load_all(rendered(KUBERNETES / name)))


def templates(documents: list[Manifest]) -> Iterator[Template]:
    """Every pod template in them."""
    for document in documents:
        yield from _templates(document, f"{document['kind']}")


def _templates(node: object, path: str) -> Iterator[Template]:
    if isinstance(node, dict):
        if "containers" in node.get("spec", {}):
            yield Template(path, node)
            return
        for key, value in node.items():
            yield from _templates(value, f"{path}.{key}")


def _named(items: list[Manifest], name: str) -> Manifest:
    return next(item for item in items if item["name"] == name)
