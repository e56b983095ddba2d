"""Which operators of a model would fall back on an NPU, found without one and without weights.

See docs/audit.md for what it does and docs/adr/0006-audit-with-the-real-dispatcher.md for how.
Modules that import torch are imported by the functions that need them.
"""
