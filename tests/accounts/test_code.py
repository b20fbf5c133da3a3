"""The codes of an authenticator app, by the vectors of RFC 6238 and against allauth's own."""

from __future__ import annotations

import base64
import subprocess
import sys

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from hypothesis import given
from hypothesis import strategies as st

from memberintel.accounts.code import code
from tests.services import ROOT

RFC = base64.b32encode(b"12345678901234567890").decode()


@pytest.mark.parametrize(
    ("at", "shown"), [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")]
)
def test_the_vectors_of_the_rfc(at: int, shown: str) -> None:
    assert code(RFC, at) == shown
    assert code(" ".join(RFC.lower()), at) == shown


@given(st.binary(min_size=10, max_size=40), st.integers(0, 2**33))
def test_it_shows_what_the_sign_in_expects(secret: bytes, at: int) -> None:
    key = base64.b32encode(secret).decode().rstrip("=")
    if len(key) % 8 == 0:
        assert code(key, at) == format_hotp_value(hotp_value(key, at // 30))


@pytest.mark.parametrize("key", ["not a key!", "1", "ÄÖÜ"])
def test_what_is_no_key_is_said_to_be_none(key: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "memberintel.accounts.code", key],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "no key" in ran.stderr
