"""``deploy/compose.yaml`` against the Compose specification, and against the files it names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from npu_fallback_exporter import __version__
from npu_fallback_exporter.cli import serve

ROOT = Path(__file__).parents[1]
COMPOSE = ROOT / "deploy" / "compose.yaml"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = load(COMPOSE)["services"]
    return found


def load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def check(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    return subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)


def test_it_follows_the_compose_specification(tmp_path: Path) -> None:
    done = check(COMPOSE)
    assert done.returncode == 0, done.stdout
    broken = tmp_path / "compose.yaml"
    broken.write_text(COMPOSE.read_text().replace("read_only:", "read-only:"), encoding="utf-8")
    assert check(broken).returncode != 0


def test_every_file_that_it_mounts_is_there(services: dict[str, Any]) -> None:
    mounted = [
        volume.split(":")[0] for service in services.values() for volume in service["volumes"]
    ]
    paths = [COMPOSE.parent / one for one in mounted if one.startswith(".")]
    assert len(paths) == 3
    assert all(path.is_dir() for path in paths)


def test_what_it_builds_are_stages_of_the_dockerfile(services: dict[str, Any]) -> None:
    stages = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    built = {name: one["build"] for name, one in services.items() if "build" in one}
    assert set(built) == {"server", "exporter"}
    for name, build in built.items():
        assert (COMPOSE.parent / build["context"]).resolve() == ROOT
        assert f" AS {build['target']}\n" in stages
        assert services[name]["image"].endswith(f":{__version__}")


def test_server_and_exporter_are_hardened_and_share_one_folder(services: dict[str, Any]) -> None:
    for name in ("server", "exporter"):
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
        assert "pages:/run/npu-fallback" in services[name]["volumes"]


def test_ports_are_published_on_loopback_only(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", ())]
    exporter = serve.DEFAULT_ADDRESS.rpartition(":")[2]
    assert f"127.0.0.1:{exporter}:{exporter}" in ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_images_of_others_are_of_a_fixed_version(services: dict[str, Any]) -> None:
    for service in services.values():
        assert service["image"].rpartition(":")[2] not in {"", "latest"}


def test_grafana_finds_prometheus_and_the_dashboards(services: dict[str, Any]) -> None:
    provisioning = COMPOSE.parent / "compose" / "grafana"
    (source,) = load(provisioning / "datasources" / "prometheus.yaml")["datasources"]
    (provider,) = load(provisioning / "dashboards" / "npu-fallback.yaml")["providers"]
    folders = {
        target: COMPOSE.parent / source
        for source, target, *_ in (one.split(":") for one in services["grafana"]["volumes"])
    }
    # They share one network namespace.
    assert services["grafana"]["network_mode"] == services["prometheus"]["network_mode"]
    assert source["url"] == "http://127.0.0.1:9090"
    assert list(folders[provider["options"]["path"]].glob("*.json"))
