"""The exporter's view of the pages folders. Imports neither torch nor prometheus_client."""
