"""The canary gate: whether a candidate falls back more than its baseline."""
