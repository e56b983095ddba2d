"""What becomes of a server's pod when the sidecar component is added to it."""

from __future__ import annotations

import argparse
import copy
from typing import Any

import pytest
import yaml

from npu_fallback_exporter import __version__
from npu_fallback_exporter.cli import serve
from npu_fallback_exporter.pages.layout import PAGE_BYTES
from tests.support.kubernetes import (
    APPLIED,
    EXAMPLES,
    KUBERNETES,
    Manifest,
    Template,
    manifests,
    templates,
)

HOOK, EXPORTER, PAGES = "npu-fallback-hook", "npu-fallback-exporter", "npu-fallback-pages"
ADDED_ENVIRONMENT = {"NPU_FALLBACK_HOOK", "NPU_FALLBACK_DIR", "NPU_FALLBACK_GROUP", "PYTHONPATH"}
GROUP = 65532

PODS = [
    pytest.param(template, id=f"{name}:{template.path}")
    for name in EXAMPLES
    for template in templates(manifests(name))
]


def environment(container: Manifest) -> dict[str, Any]:
    return {one["name"]: one.get("value") for one in container["env"]}


def mounts(container: Manifest) -> dict[str, Manifest]:
    return {one["name"]: one for one in container["volumeMounts"]}


@pytest.mark.parametrize("pod", PODS)
def test_the_hook_is_there_before_the_sidecar_and_the_sidecar_before_the_server(
    pod: Template,
) -> None:
    names = [one["name"] for one in pod.spec["initContainers"]]
    assert names[-2:] == [HOOK, EXPORTER]
    assert "restartPolicy" not in pod.init_container(HOOK)
    assert pod.init_container(EXPORTER)["restartPolicy"] == "Always"


@pytest.mark.parametrize("pod", PODS)
def test_every_container_of_the_pod_gets_the_hook_and_the_folder_of_pages(pod: Template) -> None:
    pages = mounts(pod.init_container(EXPORTER))[PAGES]["mountPath"]
    hook = mounts(pod.init_container(HOOK))[HOOK]["mountPath"]
    for container in pod.spec["containers"]:
        own = environment(container)
        assert own["NPU_FALLBACK_HOOK"] == "1"
        assert own["NPU_FALLBACK_DIR"] == pages == mounts(container)[PAGES]["mountPath"]
        assert own["PYTHONPATH"].split(":")[0] == hook == mounts(container)[HOOK]["mountPath"]
        assert mounts(container)[HOOK]["readOnly"] is True


@pytest.mark.parametrize("pod", PODS)
def test_the_sidecar_is_in_the_group_that_may_read_the_pages(pod: Template) -> None:
    assert pod.spec["securityContext"]["fsGroup"] == GROUP
    for container in pod.spec["containers"]:
        assert environment(container)["NPU_FALLBACK_GROUP"] == str(GROUP)
        user = container.get("securityContext", {}).get("runAsUser", 0)
        assert user != pod.init_container(EXPORTER)["securityContext"]["runAsUser"]


@pytest.mark.parametrize("name", [HOOK, EXPORTER])
@pytest.mark.parametrize("pod", PODS)
def test_what_is_added_meets_the_restricted_pod_security_standard(pod: Template, name: str) -> None:
    container = pod.init_container(name)
    security = container["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] > 0
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {"cpu", "memory"} <= set(container["resources"]["limits"])
    assert not pod.spec.get("hostPID", False)
    added = [pod.volume(HOOK), pod.volume(PAGES)]
    assert all(set(one) == {"name", "emptyDir"} for one in added)


@pytest.mark.parametrize("pod", PODS)
def test_a_server_never_waits_for_its_exporter(pod: Template) -> None:
    sidecar = pod.init_container(EXPORTER)
    assert not {"startupProbe", "readinessProbe", "lifecycle"} & set(sidecar)


@pytest.mark.parametrize("pod", PODS)
def test_every_pod_is_scraped(pod: Template) -> None:
    (monitor,) = manifests("base")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= pod.body["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    ports = {one["name"]: one["containerPort"] for one in pod.init_container(EXPORTER)["ports"]}
    assert ports[endpoint["port"]] == int(serve.DEFAULT_ADDRESS.rpartition(":")[2])


@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_else_of_the_servers_manifest_changes(name: str) -> None:
    source = (KUBERNETES / name / "server.yaml").read_text(encoding="utf-8")
    before = {one["kind"]: one for one in yaml.safe_load_all(source)}
    after = {one["kind"]: without_what_is_added(one) for one in manifests(name)}
    assert after == before


def without_what_is_added(document: Manifest) -> Manifest:
    document = copy.deepcopy(document)
    for template in templates([document]):
        del template.body["metadata"]["labels"]["npu-fallback-exporter"]
        spec = template.spec
        del spec["securityContext"]["fsGroup"]
        spec["initContainers"] = [
            one for one in spec["initContainers"] if one["name"] not in {HOOK, EXPORTER}
        ]
        spec["volumes"] = [one for one in spec["volumes"] if one["name"] not in {HOOK, PAGES}]
        for container in spec["containers"]:
            container["env"] = [
                one for one in container["env"] if one["name"] not in ADDED_ENVIRONMENT
            ]
            container["volumeMounts"] = [
                one for one in container["volumeMounts"] if one["name"] not in {HOOK, PAGES}
            ]
            drop_empty(container, "env", "volumeMounts")
        drop_empty(spec, "initContainers", "volumes", "securityContext")
    return document


def drop_empty(node: Manifest, *keys: str) -> None:
    for key in keys:
        if not node[key]:
            del node[key]


@pytest.mark.parametrize("pod", PODS)
def test_the_folder_of_pages_is_shared_memory_with_room_for_148_processes(pod: Template) -> None:
    folder = pod.volume(PAGES)["emptyDir"]
    assert folder["medium"] == "Memory"
    mebibytes = int(folder["sizeLimit"].removesuffix("Mi"))
    assert (mebibytes << 20) // PAGE_BYTES == 148


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_pod_of_a_server_calls_npu_smi(name: str) -> None:
    for template in templates(manifests(name)):
        assert "--no-npu-smi" in template.init_container(EXPORTER)["args"]


def test_the_pod_that_calls_npu_smi_is_privileged_and_keeps_away_from_the_npu_exporter() -> None:
    (pod,) = templates(manifests("devices/npu-smi"))
    (container,) = pod.spec["containers"]
    assert "--no-npu-smi" not in container["args"]
    assert container["securityContext"]["privileged"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    affinity = pod.spec["affinity"]["podAntiAffinity"]
    (apart,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    (theirs,) = manifests("devices/npu-exporter")
    assert apart["labelSelector"] == theirs["spec"]["selector"]
    assert apart["namespaceSelector"] == {}
    assert apart["topologyKey"] == "kubernetes.io/hostname"


@pytest.mark.parametrize("name", APPLIED)
def test_the_arguments_of_the_exporter_are_those_that_it_knows(name: str) -> None:
    for template in templates(manifests(name)):
        for container in [*template.spec.get("initContainers", ()), *template.spec["containers"]]:
            if "npu-fallback-exporter:" in container["image"]:
                verb, *arguments = container["args"]
                assert verb == "serve"
                parser = argparse.ArgumentParser(exit_on_error=False)
                serve.add_arguments(parser)
                parser.parse_args(arguments)


@pytest.mark.parametrize("name", APPLIED)
def test_the_images_are_of_this_version(name: str) -> None:
    for template in templates(manifests(name)):
        for container in [*template.spec.get("initContainers", ()), *template.spec["containers"]]:
            image = container["image"]
            if "npu-fallback" in image:
                assert image.startswith("registry.example.com/npu-fallback-")
                assert image.endswith(f":{__version__}")
