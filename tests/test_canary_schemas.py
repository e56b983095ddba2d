"""Files in deploy/canary against the schemas of the tools that read them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.canary_tools import CANARY, documents

NPM_PACKAGES = Path(__file__).parent / "schemas" / "package.json"
_TYPES = "@kubernetes-models/argo-rollouts/argoproj.io/v1alpha1"

needs_npm = pytest.mark.skipif(
    shutil.which("npm") is None, reason="no npm: apt-get install nodejs npm"
)
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus"
)

#: Fields of Flagger's MetricTemplate that are used here, as its documentation names them.
_TEXT = str
METRIC_TEMPLATE = {
    "apiVersion": "flagger.app/v1beta1",
    "kind": "MetricTemplate",
    "metadata": {"name": _TEXT},
    "spec": {"provider": {"type": "prometheus", "address": _TEXT}, "query": _TEXT},
}


@pytest.fixture(scope="module")
def argo_types(request: pytest.FixtureRequest) -> Path:
    """A folder with the types of Argo Rollouts and the compiler that checks them."""
    assert request.config.cache is not None
    folder = Path(request.config.cache.mkdir("argo-types"))
    wanted = NPM_PACKAGES.read_text(encoding="utf-8")
    stamp = folder / "installed.json"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        (folder / "package.json").write_text(wanted, encoding="utf-8")
        done = subprocess.run(
            ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"npm cannot install {NPM_PACKAGES.name}: {done.stderr[-200:]}")
        stamp.write_text(wanted, encoding="utf-8")
    return folder


def complaints(folder: Path, kind: str, *found: dict[str, Any]) -> str:
    """What the compiler says of documents of a kind; a field that is not known is an error."""
    source = folder / "documents.ts"
    lines = [f'import type {{ I{kind} }} from "{_TYPES}/{kind}";']
    lines += [
        f"export const d{number}: I{kind} = {json.dumps(document)};"
        for number, document in enumerate(found)
    ]
    source.write_text("\n".join(lines), encoding="utf-8")
    flags = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext"]
    done = subprocess.run(
        ["node", "node_modules/typescript/bin/tsc", *flags, source.name],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout


@needs_npm
@pytest.mark.slow
def test_the_templates_are_what_argo_rollouts_reads(argo_types: Path) -> None:
    names = ("argo/analysis-queries.yaml", "argo/analysis-job.yaml")
    templates = [document for name in names for document in documents(name)]
    assert complaints(argo_types, "AnalysisTemplate", *templates) == ""


@needs_npm
@pytest.mark.slow
def test_the_rollout_is_what_argo_rollouts_reads(argo_types: Path) -> None:
    assert complaints(argo_types, "Rollout", *documents("argo/rollout.yaml")) == ""


@needs_npm
@pytest.mark.slow
def test_a_field_that_argo_rollouts_does_not_know_is_seen(argo_types: Path) -> None:
    (template,) = documents("argo/analysis-job.yaml")
    template["spec"]["metrics"][0]["provider"]["job"]["spec"]["backoffLimt"] = 1
    assert "'\"backoffLimt\"' does not exist" in complaints(
        argo_types, "AnalysisTemplate", template
    )


def fits(shape: Any, value: Any) -> bool:
    """Whether a value has the fields of a shape, and no others."""
    if isinstance(shape, dict):
        return (
            isinstance(value, dict)
            and shape.keys() == value.keys()
            and all(fits(shape[name], value[name]) for name in shape)
        )
    return isinstance(value, shape) if isinstance(shape, type) else bool(value == shape)


def test_the_metric_templates_have_the_fields_that_flagger_reads() -> None:
    assert all(fits(METRIC_TEMPLATE, found) for found in documents("flagger/metric-templates.yaml"))


@needs_promtool
def test_promtool_accepts_the_recording_rules() -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", "--lint-fatal", CANARY / "recording-rules.yaml"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "SUCCESS: 11 rules found" in done.stdout


def test_every_file_is_used_by_a_test() -> None:
    tests = "".join(
        path.read_text(encoding="utf-8")
        for path in Path(__file__).parent.rglob("*.py")
        if "canar" in path.name or path == Path(__file__)
    )
    files = [path for path in CANARY.rglob("*") if path.is_file()]
    assert [path for path in files if path.name not in tests] == []
