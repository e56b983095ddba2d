"""Other versions of torch_npu than the installed one, on a machine without a device.

torch_npu needs the PyTorch of its own version, in a CPU build. For some versions PyPI has only a
CUDA build for x86-64. Unpacked without its CUDA libraries, and with libraries of the same names
that define what the others miss, it behaves like a CPU build.
"""
