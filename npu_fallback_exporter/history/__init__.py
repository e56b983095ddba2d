"""The last 15 minutes of an exporter, which has no database, in a fixed amount of memory."""
