"""Prints the dashboard."""

from __future__ import annotations

import sys

from . import render

sys.stdout.write(render())
