"""The HTTP side of the exporter: an ASGI application, served by uvicorn."""
