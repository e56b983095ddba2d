"""Long runs that look for lost counts."""
