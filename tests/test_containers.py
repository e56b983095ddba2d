"""The images, built and run for real, and the pod of an example on the simulated device.

Building takes ten minutes. NPU_FALLBACK_TEST_STORE=FOLDER keeps the layers for the next run.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from npu_fallback_exporter import __version__
from tests.support.containers import BASE, Containers, needs_containers
from tests.support.exporter_process import values_of, wait_until
from tests.support.kubernetes import manifests, templates
from tests.support.podman_pod import pod_for_podman, write

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(3600), needs_containers()]

MOST_BYTES = 120_000_000
USER = 65532
HARDENED = (
    *("--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--network=host"),
    "--security-opt=no-new-privileges",
)

EVENTS = 500
SERVER = f"""
import signal, torch, torch_npu
x = torch.ones(6, device="npu")
for _ in range({EVENTS}):
    torch.fmax(x, x)
torch.npu.synchronize()
print("served", flush=True)
signal.sigwait([signal.SIGTERM])
"""
#: The image has CANN's libraries in a place that its own environment does not name.
ON_THE_SIMULATED_DEVICE = 'eval "$(python3 -m tests.cann_sim env)"; exec python3 -c "$0"'


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    kept = os.environ.get("NPU_FALLBACK_TEST_STORE")
    made = Containers(Path(kept) if kept else tmp_path_factory.mktemp("containers"))
    made.import_base()
    yield made
    made.end(keep_images=bool(kept))


@pytest.fixture(scope="module")
def image(containers: Containers) -> str:
    return containers.build("exporter")


@pytest.fixture
def address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


def get(address: str, path: str) -> str | None:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            text: str = answer.read().decode()
            return text
    except (urllib.error.URLError, ConnectionError):
        return None


def test_the_exporter_adds_less_than_120_mb_to_its_base(containers: Containers, image: str) -> None:
    added = containers.inspect("image", image)["Size"] - containers.inspect("image", BASE)["Size"]
    print(f"added: {added / 1e6:.1f} MB")
    assert 0 < added < MOST_BYTES


def test_the_exporters_image_has_no_torch(containers: Containers, image: str) -> None:
    find = containers.done(
        "run", "--rm", "--user=0", "--entrypoint=find", image, "/", "-xdev", "-name", "libtorch*"
    )
    assert find == ""


def test_the_image_says_what_it_is(containers: Containers, image: str) -> None:
    labels = containers.inspect("image", image)["Labels"]
    assert labels["org.opencontainers.image.title"] == "npu-fallback-exporter"
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_it_serves_without_rights_or_a_root_to_write_to_and_ends_with_0_at_sigterm(
    containers: Containers, image: str, address: str, tmp_path: Path
) -> None:
    folder = f"{tmp_path}:/run/npu-fallback"
    name = "exporter"
    arguments = ("serve", "--no-npu-smi", "--web.listen-address", address)
    containers.done(
        "run", "--detach", f"--name={name}", *HARDENED, f"--volume={folder}", image, *arguments
    )
    wait_until(
        lambda: get(address, "/readyz") == "ready\n", why=containers.podman("logs", name).stderr
    )
    status = containers.done("exec", name, "cat", "/proc/1/status").splitlines()
    fields = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    assert fields["Uid"].split() == [str(USER)] * 4
    assert fields["Gid"].split() == [str(USER)] * 4
    assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    assert containers.podman("exec", name, "touch", "/tmp/x").returncode != 0
    started = time.monotonic()
    containers.done("stop", "--time", "30", name)
    print(f"ended after {time.monotonic() - started:.2f} s, with {fields['VmHWM']} resident")
    assert containers.inspect("container", name)["State"]["ExitCode"] == 0
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(("serves", "health"), [(True, 0), (False, 1)])
def test_the_healthcheck_tells_whether_it_answers(
    containers: Containers, image: str, serves: bool, health: int
) -> None:
    name = f"healthy-{serves}"
    address = "127.0.0.1:10837"
    command = ("serve", "--no-npu-smi", "--web.listen-address", address)
    idle = ("--entrypoint=sleep", image, "60")
    what = (image, *command) if serves else idle
    containers.done("run", "--detach", f"--name={name}", *HARDENED, *what)
    wait_until(lambda: (get(address, "/healthz") is not None) is serves)
    assert containers.podman("healthcheck", "run", name).returncode == health
    containers.done("rm", "--force", "--time", "0", name)


@dataclass
class RunningPod:
    """The pod of ``examples/torch``; ``pages`` is the folder that its containers share."""

    containers: Containers
    address: str
    pages: Path

    def container(self, name: str) -> str:
        return f"torch-{name}"

    def scrape(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        text = get(self.address, "/metrics")
        assert text is not None
        return values_of(text)


@pytest.fixture(scope="module")
def pod(containers: Containers, image: str) -> Iterator[RunningPod]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    shared = Path(tempfile.mkdtemp(prefix="npu-fallback-pod-", dir="/dev/shm"))
    shared.chmod(0o755)
    images = {
        "torch-server": containers.build("simulated-npu"),
        "npu-fallback-hook": containers.build("injector"),
        "npu-fallback-exporter": image,
    }
    (template,) = templates(manifests("examples/torch"))
    manifest = pod_for_podman(template, "torch", images, shared)
    server, exporter = manifest["spec"]["containers"]
    server["args"] = ["bash", "-c", ON_THE_SIMULATED_DEVICE, SERVER]
    exporter["args"] += ["--web.listen-address", address]
    containers.done(
        *("kube", "play", "--network", "host"), str(write(manifest, shared / "pod.yaml"))
    )
    running = RunningPod(containers, address, shared / "npu-fallback-pages")
    try:
        log = ("logs", running.container("torch-server"))
        wait_until(lambda: "served" in containers.podman(*log).stdout, seconds=120)
        wait_until(lambda: get(address, "/readyz") == "ready\n")
        yield running
    finally:
        for name in ("torch-server", "npu-fallback-exporter"):
            done = containers.podman("logs", running.container(name))
            print(done.stdout, done.stderr)
        containers.podman("pod", "rm", "--force", "--time", "0", "torch")
        shutil.rmtree(shared)


def test_a_server_that_knows_nothing_of_the_hook_is_counted_exactly(pod: RunningPod) -> None:
    labels = (("kind", "dispatcher"), ("npu", "logical-0"), ("op", "aten::fmax.out"))
    assert pod.scrape()["npu_fallback_events_total", labels] == EVENTS


def test_sidecar_and_server_have_different_users_and_the_pages_are_of_their_group(
    pod: RunningPod,
) -> None:
    (page,) = pod.pages.glob("*.page")
    status = page.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1000, USER, 0o640)
    sidecar = pod.containers.done("exec", pod.container("npu-fallback-exporter"), "id", "-u")
    assert int(sidecar) == USER


def test_the_sidecar_has_no_rights_and_no_root_to_write_to(pod: RunningPod) -> None:
    name = pod.container("npu-fallback-exporter")
    status = pod.containers.done("exec", name, "cat", "/proc/1/status").splitlines()
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    assert pod.containers.podman("exec", name, "touch", "/tmp/x").returncode != 0


def test_the_server_cannot_change_the_hook_that_it_was_given(pod: RunningPod) -> None:
    name = pod.container("torch-server")
    assert pod.containers.podman("exec", name, "touch", "/opt/npu-fallback/x").returncode != 0


def test_counts_outlive_the_server_and_the_sidecar_ends_with_0(pod: RunningPod) -> None:
    pod.containers.done("kill", "--signal", "KILL", pod.container("torch-server"))
    labels = (("kind", "dispatcher"), ("npu", "logical-0"))
    finished = ("npu_fallback_processes_finished_total", ())
    wait_until(lambda: pod.scrape().get(finished) == 1)
    assert pod.scrape()["npu_fallback_kind_events_total", labels] == EVENTS
    name = pod.container("npu-fallback-exporter")
    pod.containers.done("stop", "--time", "30", name)
    assert pod.containers.inspect("container", name)["State"]["ExitCode"] == 0
