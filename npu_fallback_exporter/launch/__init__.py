"""Starting programs: a server with the hook armed, and a sidecar beside it."""
