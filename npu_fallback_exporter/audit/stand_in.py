"""A stand-in for torch_npu: the ``npu`` device and its dispatch key, without kernels.

The audit never runs an operator of the NPU, so it needs no torch_npu, no CANN and no device. What
it needs is that the dispatcher decides as it would: a composite operator must not be taken apart
where torch_npu has a kernel for the whole. So these operators get a kernel in name only.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from .errors import AuditError

NPU = "npu"
_DEVICES = 8  # so that a program may name any device of one machine

#: To be set before torch is imported: no backend is loaded, nothing is compiled.
ENVIRONMENT = {
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    "TORCHDYNAMO_DISABLE": "1",
    "NPU_FALLBACK_HOOK": "0",
    # PyTorch's C++ warns on stderr of addresses of fake tensors, which its own kernels take.
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}

_libraries: dict[str, Any] = {}  # by namespace; the kernels are there for as long as these are
_with_kernel: set[str] = set()
_kept: list[object] = []


def prepare_environment() -> None:
    """Set what must be set before torch is imported."""
    os.environ.update(ENVIRONMENT)


def register_device() -> None:
    """Give the free dispatch key of PyTorch the name ``npu``, and make ``torch.npu``.

    Raises:
        AuditError: a backend has taken the key in this process, or this PyTorch is too old.
    """
    import torch
    from torch.library import Library, fallthrough_kernel
    from torch.utils import backend_registration

    if isinstance(getattr(torch, NPU, None), _NpuModule):
        return
    if "torch_npu" in sys.modules or hasattr(torch, NPU):
        raise AuditError(
            "this process has loaded torch_npu, whose kernels the audit must not call",
            "run npu-fallback-exporter audit as a command of its own",
        )
    setup = getattr(backend_registration, "_setup_privateuseone_for_python_backend", None)
    if setup is None:
        raise AuditError(f"PyTorch {torch.__version__} is too old", "install PyTorch 2.9 or newer")
    # PyTorch calls these two for as long as the process lives, and does not keep them alive.
    hook = backend_registration._DummyPrivateUse1Hook()
    guard = backend_registration._DummyDeviceGuard()
    _kept.extend((hook, guard))
    module = _NpuModule(f"torch.{NPU}")
    setup(rename=NPU, backend_module=module, hook=hook, device_guard=guard)
    sys.modules["torch_npu"] = _TorchNpu("torch_npu")
    # torch_npu registers which operators autocast casts; without, autocast changes nothing.
    everything = _libraries["_"] = Library("_", "IMPL")
    everything.fallback(fallthrough_kernel, "AutocastPrivateUse1")


def register_kernels(operators: Iterable[str]) -> None:
    """Let operators, by full overload name, have a kernel for the NPU's key."""
    from torch.library import Library

    for operator in operators:
        namespace, _, name = operator.partition("::")
        if operator in _with_kernel:
            continue
        if namespace not in _libraries:
            _libraries[namespace] = Library(namespace, "IMPL")
        _libraries[namespace].impl(name, _kernel_in_name_only, "PrivateUse1")
        _libraries[namespace].impl(name, _above_autograd(operator), "AutogradPrivateUse1")
        _with_kernel.add(operator)


def _above_autograd(operator: str) -> Callable[..., Any]:
    """Return what autograd does with an operator: where gradients are wanted, take it apart."""
    import torch

    base, _, overload = operator.partition(".")
    namespace, _, name = base.partition("::")
    func = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
    composite = torch._C.DispatchKey.CompositeImplicitAutograd

    def kernel(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if torch.is_grad_enabled() and _any_needs_gradient((*args, *kwargs.values())):
            return func._op_dk(composite, *args, **kwargs)
        with torch._C._AutoDispatchBelowAutograd():
            return func(*args, **kwargs)

    return kernel


def _any_needs_gradient(values: Sequence[Any]) -> bool:
    for value in values:
        if isinstance(value, (list, tuple)):
            if _any_needs_gradient(value):
                return True
        elif getattr(value, "requires_grad", False):
            return True
    return False


def _kernel_in_name_only(*_args: object, **_kwargs: object) -> NoReturn:
    raise RuntimeError("the audit called an NPU kernel: this is a defect, please report it")


def _nothing(*_args: object, **_kwargs: object) -> None:
    return None


class _NpuModule(types.ModuleType):
    """``torch.npu``: what programs ask a device for, without a device."""

    synchronize = empty_cache = set_device = manual_seed = manual_seed_all = staticmethod(_nothing)
    reset_peak_memory_stats = set_compile_mode = set_rng_state = staticmethod(_nothing)

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return _DEVICES

    def get_device_name(self, _device: object = None) -> str:
        return "Ascend910B3"

    def memory_allocated(self, _device: object = None) -> int:
        return 0

    max_memory_allocated = memory_reserved = memory_allocated

    def get_rng_state(self, _device: object = None) -> object:
        import torch

        return torch.zeros(1, dtype=torch.uint8)

    def is_bf16_supported(self) -> bool:
        return True

    def get_amp_supported_dtype(self) -> list[Any]:
        import torch

        return [torch.float16, torch.bfloat16]


class _TorchNpu(types.ModuleType):
    """``import torch_npu`` works; its own operators are named when they are called."""

    __version__ = "0"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> object:
        if name == NPU:
            import torch

            return getattr(torch, NPU)
        if not name.startswith("npu_"):
            raise AttributeError(name)

        def unknown(*_args: object, **_kwargs: object) -> NoReturn:
            raise AuditError(
                f"the program calls torch_npu.{name}, and the audit runs without torch_npu",
                "let it call PyTorch's own operators where torch_npu has none",
            )

        return unknown
