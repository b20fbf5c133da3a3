"""Addresses people type lead to the open internet or nowhere."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memberintel.lib import outbound
from memberintel.lib.outbound import Limits, Unreachable
from tests.brain.heartbeat import pretend
from tests.waiting import PATIENCE

LOCAL = Limits(seconds=PATIENCE, loopback=True)
USUAL = Limits(seconds=5)


def refused(url: str, *resolved: str, limits: Limits = USUAL) -> str:
    """The code it is refused with, where the name resolves to these addresses."""
    with pytest.raises(Unreachable) as caught:
        outbound.get(url, {}, limits, resolve=lambda host, port: list(resolved))
    assert str(caught.value).endswith(("https://", "."))
    return caught.value.code


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.0.0.1/",
        "https://0177.0.0.1/",
        "https://10.0.0.7/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fe80::1%25eth0]/",
        "https://localhost/",
        "https://intranet/",
        "https:///nothing",
        "https://a b.example/",
        "https://exa\tmple.com/",
        "https://example.com\\@127.0.0.1/",
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://example.com:99999/",
        "https://" + "a" * 64 + ".example/",
        "https://" + "a." * 200 + "example/",
        "https://example.com/" + "a" * 2000,
        "https://exa\u0000mple.com/",
        "",
    ],
)
def test_what_is_no_name_of_a_site(url: str) -> None:
    assert refused(url, "93.184.216.34") in {"bad_address", "not_https"}


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "example.com",
    ],
)
def test_only_https(url: str) -> None:
    assert refused(url, "93.184.216.34") == "not_https"


@pytest.mark.parametrize("port", [22, 25, 80, 5432, 6379, 9200])
def test_only_the_ports_of_sites(port: int) -> None:
    assert refused(f"https://example.com:{port}/", "93.184.216.34") == "bad_port"


PRIVATE = [
    "127.0.0.1",
    "0.0.0.0",  # noqa: S104
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2001:0:7f00:1::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "2001:db8::1",
    "nonsense",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_leads_inside(address: str) -> None:
    assert refused("https://rebind.example/", address) == "not_public"
    assert refused("https://rebind.example/", "93.184.216.34", address) == "not_public"


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34"])
def test_the_open_internet(address: str) -> None:
    assert outbound.is_public(address)


@given(st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address))
def test_an_address_wrapped_in_another_is_judged_as_itself(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | number)
    nat64 = ipaddress.IPv6Address((0x64FF9B << 96) | number)
    assert outbound.is_public(str(mapped)) is outbound.is_public(str(address))
    if not outbound.is_public(str(address)):
        assert not outbound.is_public(str(nat64))


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is looked up once: what it resolves to a moment later is of no matter."""
    looked, connected = [], []

    def resolve(host: str, port: int) -> list[str]:
        looked.append(host)
        return ["93.184.216.34"] if len(looked) == 1 else ["127.0.0.1"]

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr("memberintel.lib.outbound.socket.create_connection", connect)
    with pytest.raises(Unreachable) as caught:
        outbound.get("https://rebind.example/", {}, Limits(), resolve=resolve)
    assert caught.value.code == "unreachable"
    assert looked == ["rebind.example"]
    assert connected == [("93.184.216.34", 443)]


def test_a_name_that_is_nobodys() -> None:
    assert refused("https://nobody.example/") == "unknown_name"


def test_a_resolver_that_hangs() -> None:
    stop = threading.Event()
    with pytest.raises(Unreachable) as caught:
        outbound.get(
            "https://slow.example/",
            {},
            Limits(seconds=0.2),
            resolve=lambda host, port: [str(stop.wait(PATIENCE))],
        )
    stop.set()
    assert caught.value.code == "unknown_name"


def test_loopback_needs_a_setting() -> None:
    with pretend.serving(pretend.memberpress) as server:
        assert refused(server.url + "/wp-json/mp/v1/me") == "not_https"
        assert server.asked == []
        answer = outbound.get(server.url + "/wp-json/mp/v1/me", {"MEMBERPRESS-API-KEY": server.key}, LOCAL)
        assert answer.status == 200
        assert b"admin" in answer.body


def test_no_redirect_is_followed() -> None:
    with pretend.serving(pretend.memberpress) as server:
        server.first = [(302, b"", {"Location": server.url + "/elsewhere"})]
        assert refused(server.url + "/", limits=LOCAL) == "redirected"
        assert server.asked == ["/"]


def test_what_is_too_long_is_not_read() -> None:
    with pretend.serving(pretend.memberpress) as server:
        server.first = [(200, b"x" * 1001, {})]
        assert refused(server.url + "/", limits=Limits(PATIENCE, 1000, loopback=True)) == "too_long"


def test_an_answer_that_ends_early_is_none() -> None:
    with pretend.serving(pretend.memberpress) as server:
        server.first = [(200, b"[1, 2", {"Content-Length": "900", "Connection": "close"})]
        assert refused(server.url + "/", limits=LOCAL) == "unreachable"


def test_what_is_packed_is_not_unpacked() -> None:
    with pretend.serving(pretend.memberpress) as server:
        server.first = [(200, b"xxxx", {"Content-Encoding": "gzip"})]
        assert refused(server.url + "/", limits=LOCAL) == "unreadable"


@contextmanager
def dripping(first: bytes) -> Iterator[str]:
    """A server that sends a byte every 50 ms and never comes to an end."""
    stop = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(first)
                while not stop.wait(0.05):
                    peer.sendall(b"x")
        except OSError:
            pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize(
    "first", [b"", b"HTTP/1.1 200 OK\r\nX-Long: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"]
)
def test_a_server_that_drips_does_not_hold_us(first: bytes) -> None:
    with dripping(first) as url:
        assert refused(url, limits=Limits(seconds=0.5, loopback=True)) == "timeout"
