"""What can be told from pages beside numbers. Imports neither torch nor prometheus_client."""
