"""What is left of processes that have ended: their counts, in one file per pages folder."""
