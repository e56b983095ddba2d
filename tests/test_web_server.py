"""Where the exporter listens."""

from __future__ import annotations

import re
import socket

import pytest

from npu_fallback_exporter.errors import ConfigError, NpuFallbackError
from npu_fallback_exporter.web.listen_address import ListenAddress
from npu_fallback_exporter.web.server import (
    is_loopback,
    listen,
    may_show_details,
    url,
)
from npu_fallback_exporter.web.web_config import WebConfig


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (":10837", "", 10837),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("[::1]:8080", "::1", 8080),
        ("localhost:65535", "localhost", 65535),
    ],
)
def test_an_address_is_host_and_port(text: str, host: str, port: int) -> None:
    address = ListenAddress.parse(text)
    assert (address.host, address.port) == (host, port)
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "10837", "host", ":x", ":-1", ":65536", "::1:80", ":٣"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape("like :10837")):
        ListenAddress.parse(text)


def test_port_0_takes_a_free_one_and_the_url_names_it() -> None:
    with listen(ListenAddress("127.0.0.1", 0)) as listener:
        assert url(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"


def test_a_port_in_use_is_told_with_the_next_step() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(NpuFallbackError, match=r"--web\.listen-address") as caught,
    ):
        listen(ListenAddress("127.0.0.1", taken.getsockname()[1]))
    assert "Address already in use" in str(caught.value)


def test_a_host_that_is_not_here_is_told_with_the_next_step() -> None:
    with pytest.raises(NpuFallbackError, match="name an address of this host"):
        listen(ListenAddress("192.0.2.1", 0))


@pytest.mark.parametrize(
    ("text", "loopback"),
    [("127.0.0.1:0", True), ("127.9.9.9:0", True), (":0", False), ("0.0.0.0:0", False)],
)
def test_call_sites_are_shown_on_loopback_to_known_clients_and_on_demand(
    text: str, loopback: bool
) -> None:
    known = WebConfig(users={b"a": b"hash"})
    with listen(ListenAddress.parse(text)) as listener:
        assert is_loopback(listener) is loopback
        assert may_show_details(None, listener, WebConfig()) is loopback
        assert may_show_details(None, listener, known)
        assert may_show_details(True, listener, WebConfig())
        assert not may_show_details(False, listener, known)


def test_a_host_name_is_looked_up() -> None:
    with listen(ListenAddress("localhost", 0)) as listener:
        assert is_loopback(listener)


def test_a_host_name_that_nobody_knows_is_told_with_the_next_step() -> None:
    with pytest.raises(NpuFallbackError, match=r"cannot listen on nowhere\.invalid:1 .*: name an"):
        listen(ListenAddress("nowhere.invalid", 1))
