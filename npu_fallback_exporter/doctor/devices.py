"""npu-smi, the device nodes, and which of them a server sees."""

from __future__ import annotations

from ..npu_smi.command import NpuSmiCommand
from ..npu_smi.figures import InfoTable
from ..npu_smi.mapping import device_nodes, needs_id_map, npu_labels
from ..npu_smi.parser import FailureReason, diagnose, parse_id_map, parse_info
from ..pages.model import ChipEvidence
from ..pages.npu_identity import NpuLabels
from .finding import Finding, ok, problem, warning
from .machine import Machine

_VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"

_NEXT_STEP = {
    FailureReason.MISSING: "mount npu-smi and the driver's libraries (docs/npu-smi.md), or name it "
    "with --npu-smi; without it only the device metrics are absent",
    FailureReason.TIMEOUT: "see whether the driver hangs: dmesg",
    FailureReason.DRIVER: "see whether the driver is loaded and the devices are given to this "
    "container",
    FailureReason.BUSY: "end the other user of the management interface, and try again",
    FailureReason.UNPARSABLE: "report what npu-smi info prints",
    FailureReason.PERMISSION: "run it as a user who may use the devices",
}


def check(machine: Machine) -> tuple[Finding, ...]:
    """Judge what is seen of the NPUs."""
    nodes = device_nodes(machine.devices)
    command = NpuSmiCommand(
        machine.npu_smi, deadline_seconds=machine.npu_smi_seconds, environ=machine.environ
    )
    table, finding = _npu_smi(command)
    mapping = _chips(command, table, nodes) if table.chips else ()
    return (
        _nodes(machine, nodes),
        finding,
        *mapping,
        _visible(machine.environ.get(_VISIBLE), nodes),
    )


def _nodes(machine: Machine, nodes: frozenset[int]) -> Finding:
    if nodes:
        numbers = ", ".join(map(str, sorted(nodes)))
        return ok("device nodes", f"{machine.devices}/davinci: {numbers}")
    return warning(
        "device nodes",
        f"no {machine.devices}/davinciN",
        "on a machine with an NPU: load the driver; in a container: give it the devices",
    )


def _npu_smi(command: NpuSmiCommand) -> tuple[InfoTable, Finding]:
    result = command.run("info")
    table = parse_info(result.stdout, ended=result.complete)
    if table.chips:
        driver = f", driver {table.driver_version}" if table.driver_version else ""
        seconds = f"{result.duration_seconds:.1f} s"
        return table, ok("npu-smi", f"{len(table.chips)} chips{driver}, answered in {seconds}")
    text = f"{result.stdout}\n{result.stderr}"
    failure = result.failure or diagnose(text, result.exit_status)
    return table, warning("npu-smi", str(failure), _NEXT_STEP[failure.reason])


def _chips(command: NpuSmiCommand, table: InfoTable, nodes: frozenset[int]) -> tuple[Finding, ...]:
    id_map = None
    if needs_id_map(table.chips):
        result = command.run("info", "-m")
        id_map = parse_id_map(result.stdout, ended=result.complete)
    labels = npu_labels(table.chips, id_map if id_map and id_map.rows else None, nodes)
    undecided = sorted(label for label in labels.values() if not label.isdecimal())
    if undecided:
        return (
            warning(
                "chips",
                f"physical number not known of {', '.join(undecided)}",
                "their series join with no page: give the exporter every device node, or a newer "
                "npu-smi",
            ),
        )
    return (ok("chips", "npu " + ", ".join(sorted(labels.values(), key=int))),)


def _visible(listed: str | None, nodes: frozenset[int]) -> Finding:
    if listed is None:
        return ok("visible devices", f"{_VISIBLE} is not set: all of them")
    if not nodes:
        return warning(
            "visible devices",
            f"{_VISIBLE}={listed}, and no device node to compare it with",
            "run doctor where the devices are",
        )
    evidence = ChipEvidence(tuple(sorted(nodes)), listed, visible_devices_lost=False)
    chips = [chip for chip in NpuLabels(evidence).to_create(()) if chip.isdecimal()]
    if chips:
        return ok("visible devices", f"{_VISIBLE}={listed}: npu {', '.join(chips)}")
    return problem(
        "visible devices",
        f"{_VISIBLE}={listed!r} does not name devices of 0 to {len(nodes) - 1}",
        "write indexes of the device nodes without blanks, each once, as in 0,1",
    )
