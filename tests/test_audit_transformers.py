"""Models of the transformers library: the audit foresees what the armed hook then counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.audit_configs import CONFIGS, GENERATE
from tests.support.audited import audit, audit_json, predicted
from tests.support.child import child_environment

pytest.importorskip("torch_npu")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

_STEPS = 3
Answers = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a configuration per architecture."""
    root = tmp_path_factory.mktemp("configs")
    for name, (architecture, kind, values) in CONFIGS.items():
        (root / name).mkdir()
        content = {**values, "architectures": [architecture], "model_type": kind}
        (root / name / "config.json").write_text(json.dumps(content))
    return root


def steps_of(name: str) -> int:
    return _STEPS if name in GENERATE else 0


@pytest.fixture(scope="module")
def on_the_device(request: pytest.FixtureRequest, folders: Path) -> Answers:
    """What the hook counts of each model, forward and generating, in one process."""
    request.getfixturevalue("hook_is_built")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.support.transformers_on_npu",
            *(f"{folders / name}:{steps_of(name)}" for name in CONFIGS),
        ],
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {Path(answer["folder"]).name: answer for answer in answers}


def dispatcher_events(counts: dict[str, list[int]]) -> dict[str, list[int]]:
    return {
        name.removesuffix(" dispatcher"): numbers
        for name, numbers in counts.items()
        if name.endswith(" dispatcher")
    }


@pytest.mark.parametrize("name", CONFIGS)
def test_forward_and_generating_cause_what_was_foreseen(
    on_the_device: Answers, folders: Path, name: str
) -> None:
    seen = on_the_device[name]
    assert "error" not in seen
    flags = ("--generate", str(_STEPS)) if name in GENERATE else ()
    answer = audit_json("--hf", str(folders / name), *flags)
    assert predicted(answer, "forward") == dispatcher_events(seen["forward"])
    if name in GENERATE:
        assert seen["calls"] == _STEPS + 1  # the random weights did not end the text early
        assert predicted(answer, "prefill", "step") == dispatcher_events(seen["generate"])


#: It computes a scale on the host, with operators that the profiler cannot tell from the NPU's.
_ON_THE_HOST = {"deberta-v2"}


@pytest.mark.parametrize("name", [name for name in CONFIGS if name not in _ON_THE_HOST])
def test_the_operators_that_reach_the_device_are_those_that_were_foreseen(
    on_the_device: Answers, folders: Path, name: str
) -> None:
    from tests.support.dispatched import without_host_and_views

    answer = audit_json("--hf", str(folders / name))
    foreseen = without_host_and_views(answer["operators"]["forward"])
    assert foreseen == without_host_and_views(on_the_device[name]["operators"])
    assert foreseen.total() > 15


SEVEN_BILLION = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "max_position_embeddings": 4096,
    "dtype": "float16",
}


def test_seven_billion_parameters_take_less_than_30_seconds_and_3_gb(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SEVEN_BILLION))
    done = subprocess.run(
        [
            "/usr/bin/time",
            "-f",
            "%e %M",
            sys.executable,
            "-m",
            "npu_fallback_exporter",
            "audit",
            "--hf",
            str(tmp_path),
            "--generate",
            "4",
        ],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    seconds, kilobytes = map(float, done.stderr.split()[-2:])
    assert seconds < 30
    assert kilobytes < 3e6


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("{", "is no JSON"),
        ("[]", "holds no object"),
        ('{"model_type": "lama"}', "no model_type 'lama': did you mean llama"),
        (
            '{"model_type": "llama", "architectures": ["LlamaForCasualLM"]}',
            "no architecture 'LlamaForCasualLM': did you mean LlamaForCausalLM",
        ),
    ],
)
def test_a_wrong_configuration_is_answered_in_one_line(
    tmp_path: Path, content: str, part: str
) -> None:
    (tmp_path / "config.json").write_text(content)
    done = audit("--hf", str(tmp_path))
    assert done.returncode == 2
    assert part in done.stderr
    assert done.stderr.count("\n") == 1
