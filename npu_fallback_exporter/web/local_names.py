"""Whether a request names this host by an address or as localhost.

A web page of an attacker whose name was made to point to this host (DNS rebinding) makes requests
that bear the attacker's name.
"""

from __future__ import annotations

import ipaddress


def is_local_name(host: str) -> bool:
    """Judge the value of a header Host: ``127.0.0.1:10837``, ``[::1]``, ``localhost``."""
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
