"""HTTP GET to an address a customer typed, without letting them reach into our network.

https only, to a name that resolves to public addresses and nothing else; the connection goes to the very address
that was checked, so that a name which resolves differently a moment later changes nothing; no redirect is
followed; time and size are capped as a whole.

Made on `http.client` and not on one of the HTTP libraries: there the socket is ours to open, and nothing (proxy
variables, redirects, retries, decompression) happens that is not written here.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import urlsplit

PORTS: Final = (443, 8443)
LONGEST_URL: Final = 2_000
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))

type Address = ipaddress.IPv4Address | ipaddress.IPv6Address
type Resolve = Callable[[str, int], list[str]]


class Unreachable(Exception):
    """The request was not made, or brought nothing. `code` is stable, the message for the person who typed it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Place:
    """A parsed address: where to connect to, and what to ask for."""

    scheme: str
    host: str
    port: int
    path: str


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Limits:
    """Seconds for one request from name to last byte; bytes of a body. `loopback`: for tests, plain http to
    this machine is allowed."""

    seconds: float = 20.0
    size: int = 5_000_000
    loopback: bool = False


def parse(url: str, *, loopback: bool = False) -> Place:
    """The address in parts; Unreachable when it is not one we go to."""
    url = url.strip()
    if len(url) > LONGEST_URL or not url.isprintable() or " " in url or "\\" in url:
        raise Unreachable("bad_address", "This is not an address of a site. It begins with https://")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise Unreachable("bad_address", "This is not an address of a site.") from None
    if parts.username is not None or parts.password is not None:
        raise Unreachable("bad_address", "Leave user name and password out of the address.")
    local = loopback and host in {"127.0.0.1", "localhost"}
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise Unreachable("not_https", "The address has to begin with https://")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if local:
        return Place(parts.scheme, host, port or 80, path)
    if (port or 443) not in PORTS:
        raise Unreachable("bad_port", "The address has a port that sites are not served on.")
    return Place("https", _name(host), port or 443, path)


def _name(host: str) -> str:
    """The host as a name with dots; an IP address in any notation is refused."""
    try:
        ascii_host = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise Unreachable("bad_address", "This is not the name of a site.") from None
    labels = ascii_host.split(".")
    if len(labels) < 2 or len(ascii_host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise Unreachable("bad_address", "This is not the name of a site.")
    # What resolvers take for a number: 127.0.0.1, 0x7f.1, 0177.0.0.1, 2130706433.
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        raise Unreachable("bad_address", "Give the name of the site, not an IP address.")
    return ascii_host


def is_public(text: str) -> bool:
    """Whether an IP address is one of the open internet, also when another address is wrapped up in it."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(_global(each) for each in (address, *_wrapped(address)))


def _wrapped(address: Address) -> list[Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found: list[Address | None] = [address.ipv4_mapped, address.sixtofour]
    found += list(address.teredo or ())
    if any(address in network for network in _NAT64) or int(address) >> 32 == 0:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in found if each is not None]


def _global(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return True  # judged by what is wrapped up in it
    return address.is_global and not address.is_multicast and not address.is_reserved


def get(url: str, headers: Mapping[str, str], limits: Limits, *, resolve: Resolve | None = None) -> Answer:
    """GET it. A status is an answer, also 404 and 500; Unreachable when there was none, or a redirect.

    `resolve` gives the addresses of a name; the system's resolver by default.
    """
    place = parse(url, loopback=limits.loopback)
    address = _address(place, limits, resolve or system_resolve)
    connection = _Pinned(place, address, limits.seconds)
    late = threading.Event()

    def give_up() -> None:
        late.set()
        connection.cut()

    # One clock for everything: a server that sends a byte now and then never lets a read time out.
    watch = threading.Timer(limits.seconds, give_up)
    watch.daemon = True
    watch.start()
    try:
        answer = _asked(connection, place, headers, limits)
        if late.is_set():  # a connection that was cut can look like one that has ended
            raise TimeoutError
        return answer
    except ssl.SSLCertVerificationError:
        raise Unreachable(
            "bad_certificate", "The site's certificate is not valid for this address."
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        if late.is_set() or isinstance(error, TimeoutError):
            raise Unreachable("timeout", "The site took too long to answer.") from None
        raise Unreachable("unreachable", "The site could not be reached.") from None
    finally:
        watch.cancel()
        connection.close()


def system_resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, as this system resolves it."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _address(place: Place, limits: Limits, resolve: Resolve) -> str:
    if limits.loopback and place.host in {"127.0.0.1", "localhost"}:
        return "127.0.0.1"
    found: list[str] = []
    asked = threading.Thread(target=lambda: found.extend(_resolved(place, resolve)), daemon=True)
    asked.start()
    asked.join(limits.seconds)
    if not found:
        raise Unreachable(
            "unknown_name", "There is no site of that name, or its name cannot be looked up now."
        )
    # One private address among them is enough: which one a later look-up gives is not ours to say.
    if not all(is_public(each) for each in found):
        raise Unreachable("not_public", "This address is not on the open internet.")
    return found[0]


def _resolved(place: Place, resolve: Resolve) -> list[str]:
    try:
        return resolve(place.host, place.port)
    except (OSError, UnicodeError):
        return []


def _asked(connection: _Pinned, place: Place, headers: Mapping[str, str], limits: Limits) -> Answer:
    connection.request("GET", place.path, headers={"Accept-Encoding": "identity", **headers})
    with connection.getresponse() as response:
        return _answer(response, limits)


def _answer(response: http.client.HTTPResponse, limits: Limits) -> Answer:
    if 300 <= response.status < 400:
        raise Unreachable(
            "redirected",
            "The site sends visitors of this address on to another. Give the address it ends at.",
        )
    body = response.read(limits.size + 1)
    if len(body) > limits.size:
        raise Unreachable("too_long", "The site's answer is longer than anything we would expect.")
    if response.length:
        raise http.client.IncompleteRead(body, response.length)
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Unreachable("unreadable", "The site's answer is packed in a way we did not ask for.")
    return Answer(response.status, {name.lower(): value for name, value in response.headers.items()}, body)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class _Pinned(http.client.HTTPConnection):
    """A connection to one checked address, whatever the name resolves to by now."""

    def __init__(self, place: Place, address: str, seconds: float) -> None:
        super().__init__(place.host, place.port, timeout=seconds)
        self._pinned = address
        self._encrypted = place.scheme == "https"
        self._cut = False
        self.default_port = 443 if self._encrypted else 80

    def connect(self) -> None:
        """Connect to the address, and prove by its certificate that it is the name's."""
        self.sock = socket.create_connection((self._pinned, self.port), self.timeout)
        if self._encrypted:
            # The handshake comes once the socket is known here, so that it can be cut too.
            encrypted = _tls().wrap_socket(
                self.sock, server_hostname=self.host, do_handshake_on_connect=False
            )
            self.sock = encrypted
            encrypted.do_handshake()
        if self._cut:
            raise TimeoutError

    def cut(self) -> None:
        """End whatever is being read or written, from another thread."""
        self._cut = True
        sock = self.sock
        if sock is not None:
            with suppress(OSError):  # it may have ended by itself
                sock.shutdown(socket.SHUT_RDWR)
