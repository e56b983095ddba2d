"""What stands in the way of counting on this machine: one file per group of checks."""
