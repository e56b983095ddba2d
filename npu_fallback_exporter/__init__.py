"""Makes operators that silently run on the host CPU visible, countable and stoppable."""

from __future__ import annotations

__version__ = "0.1.0"
