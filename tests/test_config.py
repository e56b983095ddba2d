"""The environment of a server process, as read."""

from __future__ import annotations

import pytest

from npu_fallback_exporter.config import (
    Mode,
    ModeSource,
    ServerSettings,
    Track,
    allow_patterns,
)


def read(**environ: str) -> ServerSettings:
    return ServerSettings.from_environ(environ)


def complaints(**environ: str) -> list[str]:
    return [str(error) for error in read(**environ).complaints]


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("observe", Mode.OBSERVE),
        ("auto", Mode.OBSERVE),
        ("warn", Mode.WARN),
        ("strict", Mode.STRICT),
        ("error", Mode.STRICT),
        (" Strict ", Mode.STRICT),
    ],
)
def test_every_name_of_a_mode_is_accepted(text: str, mode: Mode) -> None:
    settings = read(NPU_FALLBACK_MODE=text)
    assert (settings.mode, settings.mode_source) == (mode, ModeSource.NPU_FALLBACK_MODE)


def test_without_any_variable_the_mode_is_warn_and_nothing_is_armed() -> None:
    settings = read()
    assert (settings.mode, settings.mode_source) == (Mode.WARN, ModeSource.DEFAULT)
    assert not settings.wanted


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TORCH_NPU_FALLBACK_CPU_DISABLE", "1"),
        ("TORCH_NPU_CPU_FALLBACK", "0"),
        ("ASCEND_OPP_DISABLE_FALLBACK", "1"),
    ],
)
def test_each_variable_of_others_can_say_strict(variable: str, value: str) -> None:
    settings = read(**{variable: value})
    assert (settings.mode, settings.mode_source.name) == (Mode.STRICT, variable)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TORCH_NPU_FALLBACK_CPU_DISABLE", "0"),
        ("TORCH_NPU_CPU_FALLBACK", "1"),
        ("ASCEND_OPP_DISABLE_FALLBACK", "0"),
    ],
)
def test_the_other_value_of_such_a_variable_leaves_the_default(variable: str, value: str) -> None:
    settings = read(**{variable: value})
    assert (settings.mode, settings.complaints) == (Mode.WARN, ())


def test_our_own_variable_comes_before_those_of_others() -> None:
    settings = read(NPU_FALLBACK_MODE="observe", ASCEND_OPP_DISABLE_FALLBACK="1")
    assert (settings.mode, settings.complaints) == (Mode.OBSERVE, ())


def test_an_unknown_mode_is_no_mode_and_the_error_names_what_is_accepted() -> None:
    settings = read(NPU_FALLBACK_MODE="strct")
    assert settings.mode is None
    assert str(settings.mode_error) == (
        "NPU_FALLBACK_MODE='strct' is not a mode: "
        "set it to one of observe, auto, warn, strict, error"
    )


@pytest.mark.parametrize(
    ("hook", "mode", "wanted"),
    [
        ("1", "", True),
        ("0", "", False),
        ("", "", False),
        ("", "warn", True),
        ("0", "warn", False),
        ("", "strct", True),
    ],
)
def test_the_hook_is_wanted_as_the_two_variables_say(hook: str, mode: str, wanted: bool) -> None:
    assert read(NPU_FALLBACK_HOOK=hook, NPU_FALLBACK_MODE=mode).wanted is wanted


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("NPU_FALLBACK_HOOK", "yes", "NPU_FALLBACK_HOOK='yes' is ignored: set it to 0 or 1"),
        ("NPU_FALLBACK_MAX_OPS", "0", "set it to a whole number from 1 to 511"),
        ("NPU_FALLBACK_MAX_OPS", "٣", "set it to a whole number from 1 to 511"),
        ("NPU_FALLBACK_GROUP", "staff", "NPU_FALLBACK_GROUP='staff' is ignored"),
        ("NPU_FALLBACK_DIR", "here", "NPU_FALLBACK_DIR='here' is ignored: set it to an absolute"),
        ("NPU_FALLBACK_HOOK_PATH", "./x", "NPU_FALLBACK_HOOK_PATH='./x' is ignored"),
        ("NPU_FALLBACK_TRACK", "some", "NPU_FALLBACK_TRACK='some' is ignored: set it to all or"),
        ("NPU_FALLBACK_CALL_SITES", "no", "NPU_FALLBACK_CALL_SITES='no' is ignored: set it to 1"),
        ("TORCH_NPU_CPU_FALLBACK", "no", "TORCH_NPU_CPU_FALLBACK='no' is ignored: set it to 0"),
    ],
)
def test_a_wrong_value_is_told_in_one_line(variable: str, value: str, says: str) -> None:
    (line,) = complaints(**{variable: value})
    assert says in line
    assert "\n" not in line


def test_a_wrong_number_leaves_the_default() -> None:
    assert read(NPU_FALLBACK_MAX_OPS="many").max_ops == 256


@pytest.mark.parametrize(
    ("value", "track"), [("", Track.ALL), ("all", Track.ALL), ("fallbacks", Track.FALLBACKS)]
)
def test_how_much_is_watched_is_read(value: str, track: Track) -> None:
    assert read(NPU_FALLBACK_TRACK=value).track is track


def test_variables_that_contradict_each_other_are_told() -> None:
    (line,) = complaints(TORCH_NPU_FALLBACK_CPU_DISABLE="1", TORCH_NPU_CPU_FALLBACK="1")
    assert line.startswith("TORCH_NPU_FALLBACK_CPU_DISABLE=1 says strict but TORCH_NPU_CPU_FALLB")


def test_a_mode_that_torch_npus_switch_overrides_is_told() -> None:
    (line,) = complaints(NPU_FALLBACK_MODE="warn", TORCH_NPU_FALLBACK_CPU_DISABLE="1")
    assert "does not keep torch_npu from refusing fallbacks" in line


def test_strict_without_a_hook_is_told() -> None:
    (line,) = complaints(NPU_FALLBACK_MODE="strict", NPU_FALLBACK_HOOK="0")
    assert "guards nothing" in line


@pytest.mark.parametrize(
    ("value", "refuses"),
    [("1", True), ("2", True), (" +1x", True), ("0", False), ("", False), ("true", False)],
)
def test_torch_npus_switch_is_read_as_torch_npu_reads_it(value: str, refuses: bool) -> None:
    assert read(TORCH_NPU_FALLBACK_CPU_DISABLE=value).vendor_refuses is refuses


def test_an_allow_list_takes_operators_globs_and_python_names() -> None:
    assert allow_patterns("torchvision::nms, aten::isin*,,torch.isin,torch.linalg.inv") == (
        "torchvision::nms",
        "torchvision::nms.*",
        "aten::isin*",
        "aten::isin",
        "aten::isin.*",
        "aten::linalg_inv_ex",
        "aten::linalg_inv_ex.*",
    )


@pytest.mark.parametrize("name", ["torch.nn.functional.huber_loss", "torch.Tensor.huber_loss"])
def test_modules_that_are_no_part_of_an_operators_name_are_dropped(name: str) -> None:
    assert allow_patterns(name) == ("aten::huber_loss", "aten::huber_loss.*")
