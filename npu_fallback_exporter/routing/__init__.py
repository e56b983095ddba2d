"""How operators are routed on the NPU, version by version of torch_npu, and what to do about it.

``table`` reads the tables that the package carries, ``remedies`` what helps; ``dump`` makes a table
from the dispatcher of a running Python, and is the only part that imports torch.
"""
