"""``module:factory``: import it, call it, run the model once."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .errors import AuditError, unknown
from .program_error import program_error
from .session import to_npu

if TYPE_CHECKING:
    from .input_spec import InputSpec
    from .session import Session


def find(target: str) -> Any:  # noqa: ANN401 - whatever the program calls by that name
    """Return what ``module:factory`` names; the current folder is searched first.

    Raises:
        AuditError: there is no such module, or nothing of that name in it.
    """
    module_name, _, path = target.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    found: Any = _module(module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            raise unknown(
                f"factory in {module_name}",
                name,
                [known for known in dir(found) if not known.startswith("_")],
                "name a function or class there that returns a torch.nn.Module",
            )
        found = getattr(found, name)
    return found


def run(session: Session, target: str, specs: Sequence[InputSpec]) -> None:
    """Build the model, move it to the NPU, and run it once on the inputs.

    Raises:
        AuditError: it cannot be built, or does not run.
    """
    factory = find(target)
    with session.running():
        with session.recording.during("load"):
            model = to_npu(_build(factory, target))
            positional, named = session.inputs(specs)
        check_names(model, named)
        with session.recording.during("forward"), torch.no_grad():
            try:
                model(*positional, **named)
            except AuditError:
                raise
            except Exception as error:
                raise program_error("the model", error) from error


def check_names(model: torch.nn.Module, named: dict[str, Any]) -> None:
    """Check that the model takes inputs of these names.

    Raises:
        AuditError: it takes none of some name.
    """
    parameters = inspect.signature(model.forward).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in named:
        if name not in parameters:
            raise unknown(
                f"input of {type(model).__name__}",
                name,
                parameters,
                f"it takes {', '.join(parameters) or 'none'}",
            )


def _build(factory: Any, target: str) -> torch.nn.Module:  # noqa: ANN401
    if isinstance(factory, torch.nn.Module):
        return factory
    if not callable(factory):
        raise AuditError(
            f"{target} is a {type(factory).__name__}, no function", "name one that returns a model"
        )
    try:
        model = factory()
    except AuditError:
        raise
    except Exception as error:
        raise program_error(target, error) from error
    if not isinstance(model, torch.nn.Module):
        raise AuditError(
            f"{target} returns a {type(model).__name__}", "it must return a torch.nn.Module"
        )
    return model


def _module(name: str) -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name != missing and not name.startswith(f"{missing}."):
            raise AuditError(
                f"module {name} needs {missing!r}, which is not installed", f"install {missing}"
            ) from error
        outer = missing.rpartition(".")[0]
        path = getattr(sys.modules.get(outer), "__path__", None) if outer else None
        names = [found.name for found in pkgutil.iter_modules(path)]
        raise unknown(
            "module",
            missing,
            [f"{outer}.{known}" if outer else known for known in names],
            "run the command in the folder of the module, or install it",
        ) from error
    except (ValueError, TypeError) as error:
        raise AuditError(f"{name!r} names no module", "write module:factory") from error
    except Exception as error:
        raise program_error(f"module {name}", error) from error
