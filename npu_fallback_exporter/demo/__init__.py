"""A small inference server, and the traffic for it: what the verb ``demo`` shows."""
