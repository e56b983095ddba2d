"""Whether clusters accept what is under ``deploy/kubernetes``: the schemas of every version."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from cloudcoil.models.prometheus_operator import v1 as prometheus_operator

from tests.support.kubernetes import APPLIED, KUBERNETES, Manifest, manifests, rendered, templates

VERSIONS = tuple(f"1.{minor}" for minor in range(29, 38))
OPERATOR_API = "monitoring.coreos.com/v1"

#: The fields of a LeaderWorkerSet outside of its pod templates, after its API, version 1.
LEADER_WORKER_SET: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "leaderworkerset.x-k8s.io/v1"},
        "kind": {"const": "LeaderWorkerSet"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["leaderWorkerTemplate"],
            "properties": {
                "replicas": {"type": "integer", "minimum": 0},
                "startupPolicy": {"enum": ["LeaderCreated", "LeaderReady"]},
                "leaderWorkerTemplate": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["workerTemplate"],
                    "properties": {
                        "size": {"type": "integer", "minimum": 1},
                        "restartPolicy": {"enum": ["RecreateGroupOnPodRestart", "None"]},
                        "leaderTemplate": {"type": "object"},
                        "workerTemplate": {"type": "object"},
                    },
                },
            },
        },
    },
}


def validate(document: Manifest, version: str) -> None:
    """Raise if a cluster of that version would refuse the manifest, or ignore a field of it."""
    group = document["apiVersion"].rpartition("/")[0]
    if group == "leaderworkerset.x-k8s.io":
        jsonschema.validate(document, LEADER_WORKER_SET)
        for template in templates([document]):
            validate(as_pod_template(template.body), version)
    elif document["apiVersion"] == OPERATOR_API:
        jsonschema.validate(document, operator_schema(document["kind"]))
    else:
        kubernetes_validate.validate(document, version, strict=True)


def as_pod_template(template: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "any"},
        "template": template,
    }


def operator_schema(kind: str) -> dict[str, Any]:
    """The schema of the operator's CRD, refusing what it does not know, as a strict apply does."""
    schema: dict[str, Any] = getattr(prometheus_operator, kind).model_json_schema(by_alias=True)
    for part in (schema, *schema["$defs"].values()):
        if "properties" in part:
            part["additionalProperties"] = False
    schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
    return schema


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", APPLIED)
def test_every_manifest_is_strictly_valid_for_every_version(name: str, version: str) -> None:
    for document in manifests(name):
        validate(document, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_component_adds_is_strictly_valid_for_every_version(version: str) -> None:
    source = (KUBERNETES / "components" / "sidecar" / "pod.yaml").read_text(encoding="utf-8")
    validate(yaml.safe_load(source), version)


@pytest.mark.parametrize(
    ("name", "kind", "inside"),
    [
        ("examples/torch", "Deployment", ("template", "spec", "containers", 0)),
        ("examples/torch", "Deployment", ("template", "spec", "initContainers", 1)),
        ("examples/sglang-multinode", "LeaderWorkerSet", ()),
        (
            "examples/sglang-multinode",
            "LeaderWorkerSet",
            ("leaderWorkerTemplate", "workerTemplate", "spec", "initContainers", 1),
        ),
        ("base", "PodMonitor", ("podMetricsEndpoints", 0, "relabelings", 0)),
        ("devices/npu-smi", "ServiceMonitor", ("endpoints", 0)),
        ("devices/npu-smi", "DaemonSet", ()),
    ],
)
def test_a_field_that_no_cluster_knows_is_refused(
    name: str, kind: str, inside: tuple[str | int, ...]
) -> None:
    document = copy.deepcopy(next(one for one in manifests(name) if one["kind"] == kind))
    validate(document, VERSIONS[-1])
    node: Any = document["spec"]
    for step in inside:
        node = node[step]
    node["misspelt"] = "x"
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        validate(document, VERSIONS[-1])


def test_the_pod_template_of_the_component_is_not_applied() -> None:
    assert all("kind: PodTemplate" not in rendered(KUBERNETES / name) for name in APPLIED)
