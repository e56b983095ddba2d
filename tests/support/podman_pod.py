"""A pod of the examples, as podman can run it.

Podman 4 knows neither native sidecars nor fsGroup, and gives an emptyDir to the first container's
user. So what the kubelet does is done here: the sidecar becomes a container beside the server, its
group a supplementary one, and each emptyDir a folder with the owner and the mode that it has there.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path

import yaml

from tests.support.kubernetes import Manifest, Template

_EMPTY_DIR_MODE = 0o2777  # of a pod with fsGroup


def pod_for_podman(
    template: Template, name: str, images: dict[str, str], folders: Path
) -> Manifest:
    """Return the template as a Pod on the host's network.

    Args:
        template: what the Deployment has.
        name: of the pod.
        images: by container, what to run in the place of its image.
        folders: where to make the emptyDirs; on a tmpfs.
    """
    spec = copy.deepcopy(template.spec)
    group = spec.pop("securityContext")["fsGroup"]
    started = spec.pop("initContainers")
    sidecars = [one for one in started if one.pop("restartPolicy", None) == "Always"]
    init = [one for one in started if one not in sidecars]
    for container in [*init, *sidecars, *spec["containers"]]:
        container["image"] = images[container["name"]]
        container["imagePullPolicy"] = "Never"
        container["resources"].get("limits", {}).pop("huawei.com/Ascend910", None)
        # Podman refuses ports on the host's network, and makes of a probe a call of curl.
        for key in ("ports", "livenessProbe"):
            container.pop(key, None)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            **spec,
            "hostNetwork": True,
            "restartPolicy": "Never",
            "securityContext": {"supplementalGroups": [group]},
            "initContainers": init,
            "containers": [*spec["containers"], *sidecars],
            "volumes": [_as_folder(one, group, folders) for one in spec["volumes"]],
        },
    }


def write(pod: Manifest, path: Path) -> Path:
    """Write the pod where podman reads it."""
    path.write_text(yaml.safe_dump(pod), encoding="utf-8")
    return path


def _as_folder(volume: Manifest, group: int, folders: Path) -> Manifest:
    assert "emptyDir" in volume
    folder = folders / volume["name"]
    folder.mkdir()
    os.chown(folder, 0, group)
    folder.chmod(_EMPTY_DIR_MODE)
    return {"name": volume["name"], "hostPath": {"path": str(folder), "type": "Directory"}}
