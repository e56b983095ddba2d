"""Libraries in place of the CUDA ones that an unpacked CUDA build of PyTorch names."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

_ENTRANCES = (
    "libtorch_python.so",
    "libtorch_cpu.so",
    "libc10.so",
    "libtorch.so",
    "libshm.so",
    "libtorch_global_deps.so",
)
_CUDA = re.compile(r"lib(cu|nv|nccl|torch_cuda|c10_cuda|torch_nvshmem)")
#: The library that defines the symbols; the others only depend on it.
STAND_IN = "libcuda_stand_in.so"
_NO_DEVICE = 100  # cudaErrorNoDevice
_NO_PROFILER = 15  # CUPTI_ERROR_NOT_INITIALIZED
_GIL_CHECKER = "_ZN4c10d15get_gil_checkerEv"  # returns a reference that is written at import
# The default of an argument from 2.14 on: pybind11 asks the object that was "made" for its class.
_OPTIONS = re.compile("_Z(N4c10d16ProcessGroupNCCL7Options)C[12]Eb")
_CLASS_TYPE = "_ZTVN10__cxxabiv117__class_type_infoE"


def add_stand_ins(libraries: Path) -> int:
    """Complete the folder ``torch/lib`` so that its libraries can be loaded.

    Args:
        libraries: the folder, without the CUDA libraries.

    Returns:
        how many symbols had to be defined.
    """
    entrances = [libraries / name for name in _ENTRANCES]
    symbols = _missing_symbols(entrances, libraries)
    source = libraries / "cuda_stand_in.s"
    source.write_text("\n".join(_assembly(symbols)) + "\n")
    target = libraries / STAND_IN
    _run("g++", "-shared", "-o", str(target), str(source))
    for name in _cuda_libraries(entrances):
        _run(
            *("g++", "-shared", "-o", str(libraries / name), f"-Wl,-soname,{name}"),
            *("-Wl,--no-as-needed", str(target), "-Wl,-rpath,$ORIGIN", "-x", "c", "/dev/null"),
        )
    return len(symbols)


def _assembly(symbols: Iterable[str]) -> Iterator[str]:
    yield '.section .note.GNU-stack,"",@progbits'
    for symbol in symbols:
        yield from _data(symbol) if _is_data(symbol) else _function(symbol)


def _is_data(symbol: str) -> bool:
    return symbol.startswith(("_ZTI", "_ZTV")) or symbol.endswith("9allocatorE")


def _function(symbol: str) -> Iterator[str]:
    yield f".text\n.globl {symbol}\n.type {symbol},@function\n{symbol}:"
    options = _OPTIONS.fullmatch(symbol)
    if options:
        yield "lea options_vtable+16(%rip),%rax\nmov %rax,(%rdi)\nret"
        yield from _vtable("options_vtable", f"{options[1]}E")
    elif symbol == _GIL_CHECKER:
        yield "lea gil_checker(%rip),%rax\nret\n.data\n.balign 8\ngil_checker: .zero 64"
    elif symbol.startswith("cupti"):
        yield f"mov ${_NO_PROFILER},%eax\nret"
    elif re.match("cuda[A-Z]|cudnn|cuFile", symbol):
        yield f"mov ${_NO_DEVICE},%eax\nret"
    else:
        yield "xor %eax,%eax\nret"


def _data(symbol: str) -> Iterator[str]:
    yield f".data\n.balign 8\n.globl {symbol}\n.type {symbol},@object\n{symbol}:"
    if symbol.startswith("_ZTI"):  # registering a Python class reads its C++ name from here
        name = symbol.removeprefix("_ZTI")
        yield f'.quad {_CLASS_TYPE}+16\n.quad 1f\n1: .asciz "{name}"'
    else:
        yield ".zero 1024"
    yield f".size {symbol},.-{symbol}"


def _vtable(label: str, class_name: str) -> Iterator[str]:
    """Makes an object that the label is written into one of that class: all methods do nothing."""
    yield f".data\n.balign 8\n{label}: .quad 0, {label}_type" + ", 1f" * 16
    yield f'{label}_type: .quad {_CLASS_TYPE}+16, 2f\n2: .asciz "{class_name}"'
    yield ".text\n1: xor %eax,%eax\nret"


def _missing_symbols(entrances: Iterable[Path], libraries: Path) -> list[str]:
    entrances = list(entrances)
    defined: set[str] = set()
    for library in [*entrances, *_system_libraries(entrances)]:
        defined |= _symbols(library, "--defined-only")
    wanted: set[str] = set()
    for library in entrances:
        wanted |= _symbols(library, "--undefined-only")
    return sorted(name for name in wanted - defined if not name.startswith(("Py", "_Py")))


def _symbols(library: Path, which: str) -> set[str]:
    """The symbols of a library, of which the undefined ones are not weak."""
    rows = (line.split() for line in _run("nm", "-D", which, str(library)).splitlines())
    return {row[-1].partition("@")[0] for row in rows if len(row) > 1 and row[-2] not in "wv"}


def _named_libraries(entrances: Iterable[Path]) -> dict[str, Path | None]:
    """The libraries that the entrances name, by name, and where the loader finds them."""
    found: dict[str, Path | None] = {}
    for entrance in entrances:
        for line in _run("ldd", str(entrance)).splitlines():
            named = re.match(r"\s*(\S+) => (\S+)", line)
            if named:
                found[named[1]] = Path(named[2]) if named[2].startswith("/") else None
    return found


def _system_libraries(entrances: Iterable[Path]) -> list[Path]:
    named = _named_libraries(entrances).items()
    return [path for name, path in named if path and not _CUDA.match(name)]


def _cuda_libraries(entrances: Iterable[Path]) -> list[str]:
    """What has to be stood in for, also if this machine has the real one."""
    return [name for name in _named_libraries(entrances) if _CUDA.match(name)]


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
