"""What can be told to people: reports, their comparison, scripts that repeat a call. No torch."""
