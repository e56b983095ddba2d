"""``--hf CONFIG_DIR``: a model of the transformers library, from its configuration alone."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

from . import factory
from .errors import AuditError, unknown
from .input_spec import DTYPES, InputSpec
from .program_error import program_error
from .session import to_npu

if TYPE_CHECKING:
    from .session import Session

_TOKENS = 16  # of the prompt, when no input is given


def run(
    session: Session,
    folder: Path,
    specs: Sequence[InputSpec],
    *,
    steps: int,
    sample: bool,
    dtype: str | None,
) -> None:
    """Build the model without weights, run it forward, and generate with its cache.

    Args:
        session: where to run.
        folder: with a ``config.json``; nothing else is read, except ``generation_config.json``.
        specs: inputs; without, what a model of its kind takes.
        steps: decoding steps after the prompt; 0 generates nothing.
        sample: draw the tokens instead of taking the likeliest.
        dtype: of the weights, as in ``bf16``; None: what the configuration says.

    Raises:
        AuditError: the folder has no configuration, or the model cannot be built or run.
    """
    transformers = _library()
    config, kind = _configuration(transformers, folder)
    with session.running(), _as_eager():
        with session.recording.during("load"):
            model = _build(kind, config, dtype)
            for weight in (*model.parameters(), *model.buffers()):
                session.values.forget_tensor(weight)
            to_npu(model)
            inputs = _inputs(session, model, config, specs)
        factory.check_names(model, inputs)
        try:
            with session.recording.during("forward"), torch.no_grad():
                model(**inputs)
            if steps:
                _generate(session, model, inputs, steps, sample=sample)
        except AuditError:
            raise
        except Exception as error:
            raise program_error(kind.__name__, error) from error


def _library() -> Any:  # noqa: ANN401 - the transformers package
    try:
        import transformers
    except ImportError as error:
        raise AuditError(
            f"transformers cannot be imported ({error})", "install transformers beside PyTorch"
        ) from error
    transformers.logging.set_verbosity_error()
    return transformers


def _configuration(transformers: Any, folder: Path) -> tuple[Any, Any]:  # noqa: ANN401
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise AuditError(f"{folder}/config.json is no JSON ({error})", "mend the file") from error
    if not isinstance(content, dict):
        raise AuditError(f"{folder}/config.json holds no object", "mend the file")
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES
    model_type = content.get("model_type")
    if model_type not in known:
        raise unknown(
            "model_type", str(model_type), known, "transformers itself must know the model"
        )
    config = transformers.AutoConfig.for_model(**content)
    names = content.get("architectures") or []
    if not names:
        return config, _class_of(transformers.AutoModel, config)
    if not hasattr(transformers, names[0]):
        models = [name for name in dir(transformers) if not name.startswith("_")]
        raise unknown("architecture", names[0], models, "see architectures in config.json")
    return config, getattr(transformers, names[0])


def _class_of(auto: Any, config: Any) -> Any:  # noqa: ANN401
    return auto._model_mapping[type(config)]


def _build(kind: Any, config: Any, dtype: str | None) -> torch.nn.Module:  # noqa: ANN401
    named = DTYPES.get(dtype) if dtype else None
    wanted = getattr(torch, named) if named else getattr(config, "dtype", None) or torch.float32
    try:
        model: torch.nn.Module = kind._from_config(config, dtype=wanted)
    except Exception as error:
        raise program_error(kind.__name__, error) from error
    return model


def _inputs(
    session: Session,
    model: Any,  # noqa: ANN401 - transformers.PreTrainedModel
    config: Any,  # noqa: ANN401 - transformers.PretrainedConfig
    specs: Sequence[InputSpec],
) -> dict[str, Any]:
    if not specs:
        specs = _usual_inputs(model, config)
    for spec in specs:
        if spec.name is None:
            raise AuditError("an input of a transformers model needs a name", "as in input_ids=...")
    dtype = next((weight.dtype for weight in model.parameters()), torch.float32)
    _, named = session.inputs(specs)
    return {
        name: tensor.to(dtype) if tensor.is_floating_point() else tensor
        for name, tensor in named.items()
    }


def _usual_inputs(model: Any, config: Any) -> list[InputSpec]:  # noqa: ANN401
    """Return what a model of this kind takes, by its main input, for a batch of one."""
    main = model.main_input_name
    vision = getattr(config, "vision_config", config)
    audio = getattr(config, "audio_config", config)
    specs = []
    if main == "pixel_values":
        height, width = _pair(getattr(vision, "image_size", None) or 224)
        channels = getattr(vision, "num_channels", 3)
        specs.append(InputSpec(main, "float32", (1, channels, height, width)))
    elif main == "input_features":
        length = 2 * getattr(audio, "max_source_positions", 1500)
        bins = getattr(audio, "num_mel_bins", 80)
        specs.append(InputSpec(main, "float32", (1, bins, length)))
    elif main == "input_values":
        specs.append(InputSpec(main, "float32", (1, 16000)))
    else:
        specs.append(InputSpec(main, "int64", (1, _TOKENS)))
    if getattr(config, "is_encoder_decoder", False):
        specs.append(InputSpec("decoder_input_ids", "int64", (1, _TOKENS)))
    return specs


def _pair(size: Any) -> tuple[int, int]:  # noqa: ANN401 - an int, or height and width
    if isinstance(size, dict):
        return int(size["height"]), int(size["width"])
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def _generate(
    session: Session,
    model: Any,  # noqa: ANN401 - transformers.PreTrainedModel
    inputs: dict[str, Any],
    steps: int,
    *,
    sample: bool,
) -> None:
    if not hasattr(model, "generate") or not model.can_generate():
        raise AuditError(
            f"{type(model).__name__} does not generate",
            "leave --generate out, or name another class under architectures in config.json",
        )
    recording = session.recording
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else model
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1
        recording.phase = "prefill" if calls == 1 else "step"

    handle = (model if decoder is None else decoder).register_forward_pre_hook(count)
    given = {name: value for name, value in inputs.items() if name != "decoder_input_ids"}
    session.assume_token(_ordinary_token(model.config))
    try:
        with recording.during("prefill"):
            model.generate(**given, max_new_tokens=steps + 1, do_sample=sample)
    finally:
        handle.remove()
    recording.repeats["step"] = max(1, calls - 1)


def _ordinary_token(config: Any) -> int:  # noqa: ANN401 - transformers.PretrainedConfig
    """Return a token that ends nothing."""
    special = [
        getattr(config, f"{kind}_token_id", None) for kind in ("bos", "eos", "pad", "decoder_start")
    ]
    flat = {token for one in special for token in (one if isinstance(one, list) else [one])}
    return next(token for token in range(3, 3 + len(flat) + 1) if token not in flat)


@contextlib.contextmanager
def _as_eager() -> Iterator[None]:
    """Hide from the library that tensors are fake: it would take its ways for tracing."""
    from transformers.utils import import_utils

    with contextlib.ExitStack() as stack:
        for name in ("is_fake_tensor", "is_tracing"):
            if hasattr(import_utils, name):
                stack.enter_context(mock.patch.object(import_utils, name, _no))
        yield


def _no(*_args: object) -> bool:
    return False
