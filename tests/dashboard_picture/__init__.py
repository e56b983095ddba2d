"""A picture of the dashboard: Grafana's own components, fed from the recorded fleet."""
