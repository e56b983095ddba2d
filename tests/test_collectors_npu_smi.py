"""What a scrape shows of a sample of npu-smi."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import generate_latest

from npu_fallback_exporter.collectors.composite import CompositeCollector
from npu_fallback_exporter.collectors.npu_mapping import NpuMappingCollector
from npu_fallback_exporter.collectors.npu_smi import NpuSmiCollector
from npu_fallback_exporter.metrics import device
from npu_fallback_exporter.npu_smi.command import CallResult
from npu_fallback_exporter.npu_smi.sampler import NpuSmiSampler
from npu_fallback_exporter.pages.model import Page
from npu_fallback_exporter.pages.page import read_page
from tests.support import npu_smi_samples as samples
from tests.support.page_factory import PageFactory

Values = dict[tuple[str, ...], float]


class Replay:
    """A command that answers from samples; what it has no sample for is not supported."""

    def __init__(self, info: str, **others: str) -> None:
        self.texts = {"info": info, **{key.replace("_", " "): text for key, text in others.items()}}

    def run(self, *arguments: str) -> CallResult:
        missing = "This device does not support querying this.\n"
        text = self.texts.get(" ".join(arguments), missing)
        return CallResult(stdout=text, exit_status=0, complete=True, duration_seconds=1.25)

    def cancel(self) -> None:
        return


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def sampler_of(command: Replay, clock: Clock | None = None, seconds: float = 1.0) -> NpuSmiSampler:
    clock = clock or Clock()
    sampler = NpuSmiSampler(
        command, monotonic=clock, wall_clock=lambda: 1.7e9, nodes=lambda: frozenset[int]()
    )
    until = clock.now + seconds
    while clock.now < until:
        clock.now = min(until, clock.now + sampler.step())
    return sampler


def values_of(metrics: Iterable[Metric]) -> dict[str, Values]:
    """Samples by name and label values, in the order of the catalogue's labels."""
    labels = {spec.name: spec.labels for spec in device.DEVICE_METRICS}
    found: dict[str, Values] = {}
    for metric in metrics:
        for sample in metric.samples:
            key = tuple(sample.labels[label] for label in labels[sample.name])
            assert key not in found.setdefault(sample.name, {}), "a series stands twice"
            found[sample.name][key] = sample.value
    return found


def scrape(sample: str, *, seconds: float = 1.0, **others: str) -> dict[str, Values]:
    command = Replay(samples.text_of(sample), **others)
    return values_of(NpuSmiCollector(sampler_of(command, seconds=seconds)).collect())


def test_a_busy_chip_shows_ratios_bytes_and_watts() -> None:
    found = scrape("info/910b2c_25.0.rc1.1_busy18_partial.txt")
    assert found["npu_aicore_utilization_ratio"] == {("0",): 0.18}
    assert found["npu_memory_used_bytes"] == {("0", "hbm"): 61317 * 1024**2}
    assert found["npu_memory_total_bytes"] == {("0", "hbm"): 64 * 1024**3}
    assert found["npu_power_watts"] == {("0",): 143.6}
    assert found["npu_temperature_celsius"] == {("0",): 58.0}
    assert found["npu_info"] == {("0", "0", "0", "910B2C"): 1}


def test_a_chip_of_two_memories_shows_both_and_its_huge_pages() -> None:
    found = scrape("info/910a_24.1.RC2_doc_warning_4procs.txt")["npu_memory_used_bytes"]
    assert found["3", "ddr"] == 3616 * 1024**2
    assert found["3", "hbm"] == 0
    assert found["3", "hugepages"] == 1232 * 2 * 1024**2


def test_health_has_all_five_states() -> None:
    found = scrape("info/910a_23.0.rc3_warning_modelarts.txt")["npu_health"]
    states = ("OK", "Warning", "Alarm", "Critical", "UNKNOWN")
    assert found == {("1", state): float(state == "Warning") for state in states}


def test_what_is_not_given_is_absent() -> None:
    found = scrape("info/910_93_25.2.0_A3_mixed-procs.txt")
    assert set(found["npu_power_watts"]) == {("0",), ("2",)}
    assert {memory for _, memory in found["npu_memory_total_bytes"]} == {"hbm"}
    assert "npu_aicpu_utilization_ratio" not in found
    assert "npu_power_watts" not in scrape("info/310b4_23.0.0_alarm_58C.txt")


def test_processes_of_one_name_are_added_up_per_chip() -> None:
    found = scrape("info/910a_24.1.RC2_doc_warning_4procs.txt")["npu_process_memory_bytes"]
    assert found["5", "hlt_host_devmm_"] == 4 * 686 * 1024**2
    assert len(found) == 8


def test_a_process_without_a_name_is_unknown() -> None:
    text = samples.text_of("info/910b3_25.5.1_2of8_one-proc.txt").replace("VLLMEngineCore", "")
    found = values_of(NpuSmiCollector(sampler_of(Replay(text))).collect())
    assert found["npu_process_memory_bytes"] == {("5", "unknown"): 56630 * 1024**2}


def test_the_950_shows_its_utilization_in_the_same_family() -> None:
    text = samples.text_of("info/950pr_25.7.rc1.6_one-card.txt").replace(
        "| 0           0 ", "| 31          0 "
    )
    found = values_of(NpuSmiCollector(sampler_of(Replay(text))).collect())
    assert found["npu_aicore_utilization_ratio"] == {("0",): 0.31}
    assert found["npu_info"] == {("0", "0", "", "Ascend950PR"): 1}


def test_finer_figures_stand_beside_those_of_the_table() -> None:
    usages = samples.text_of("type/usages_910b_25.5.1.txt")
    found = scrape(
        "info/910b2c_25.0.rc1.1_busy18_partial.txt",
        seconds=6.0,
        **{
            "info_-t_usages_-i_0": usages.replace(
                "HBM Bandwidth Usage Rate(%)    : 0", "HBM Bandwidth Usage Rate(%) : 37"
            )
        },
    )
    assert found["npu_ctrlcpu_utilization_ratio"] == {("0",): 0.06}
    assert found["npu_aicpu_utilization_ratio"] == {("0",): 0.0}
    assert found["npu_memory_bandwidth_utilization_ratio"] == {("0", "hbm"): 0.37}


def test_a_sample_that_is_too_old_leaves_only_its_age() -> None:
    clock = Clock()
    sampler = sampler_of(Replay(samples.text_of("info/910b4_25.5.2_npu5_container.txt")), clock)
    clock.now += 31
    found = values_of(NpuSmiCollector(sampler).collect())
    assert set(found) == {
        "npu_smi_up",
        "npu_smi_sample_duration_seconds",
        "npu_smi_sample_failures_total",
        "npu_smi_last_success_timestamp_seconds",
    }
    assert found["npu_smi_up"] == {(): 0}
    assert found["npu_smi_last_success_timestamp_seconds"] == {(): 1.7e9}


def test_failures_are_there_from_0_for_every_reason() -> None:
    found = scrape("error/8020_then_9005.txt")
    assert found["npu_smi_sample_failures_total"] == {
        (reason,): float(reason == "busy")
        for reason in ("missing", "timeout", "driver", "busy", "unparsable", "permission")
    }
    assert "npu_smi_last_success_timestamp_seconds" not in found


@pytest.mark.parametrize("name", [name for name in samples.names() if name.startswith("info/")])
def test_every_table_gives_a_valid_exposition(name: str) -> None:
    registry = CollectorRegistry()
    registry.register(NpuSmiCollector(sampler_of(Replay(samples.text_of(name)))))
    text = generate_latest(registry).decode()
    chips = samples.expected()[name]["chips"]
    assert text.count("\nnpu_info{") == len(chips)
    assert "NaN" not in text


def page(tmp_path_factory: pytest.TempPathFactory, **header: object) -> Page:
    factory = PageFactory(**header).events("aten::fmax.out", 3)
    return read_page(str(factory.write(tmp_path_factory.mktemp("pages")))).page


@pytest.mark.parametrize(("node", "agrees"), [(5, True), (0, True), (7, False)])
def test_a_page_that_npu_smi_contradicts_fails_the_mapping_alone(
    tmp_path_factory: pytest.TempPathFactory,
    caplog: pytest.LogCaptureFixture,
    node: int,
    agrees: bool,
) -> None:
    sampler = sampler_of(Replay(samples.text_of("info/910b3_25.5.1_2of8_one-proc.txt")))
    pages = [page(tmp_path_factory, davinci_devices=(1 << node, 0, 0, 0))]
    composite = CompositeCollector(
        [NpuSmiCollector(sampler), NpuMappingCollector(sampler, lambda: pages)]
    )
    snapshot = composite.snapshot()
    success = next(m for m in snapshot.metrics if m.name.endswith("collector_success"))
    by_name = {sample.labels["collector"]: sample.value for sample in success.samples}
    assert by_name == {"npu_smi": True, "npu_mapping": agrees}
    assert any(metric.name == "npu" for metric in snapshot.metrics)
    composite.snapshot()
    lines = [r.message for r in caplog.records if "npu-smi lists only 0, 5" in r.message]
    assert len(lines) == (0 if agrees else 1)


def test_a_page_whose_chip_is_undecided_contradicts_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    sampler = sampler_of(Replay(samples.text_of("info/910b3_25.5.1_2of8_one-proc.txt")))
    pages = [page(tmp_path_factory)]
    assert list(NpuMappingCollector(sampler, lambda: pages).collect()) == []
