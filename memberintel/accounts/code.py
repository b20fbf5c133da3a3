"""`python -m memberintel.accounts.code KEY`: the six digits an authenticator app would show now for that key.

For trying the desk where no such app is at hand. Whoever keeps a key on the machine they sign in from has one factor.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import sys

from memberintel.lib import clock

STEP_SECONDS = 30


def code(key: str, at: float) -> str:
    """The code of RFC 6238 (SHA-1, 6 digits, 30 s) at that moment, in seconds; ValueError for what is no key."""
    text = "".join(key.split()).upper()
    try:
        secret = base64.b32decode(text + "=" * (-len(text) % 8))
    except ValueError:
        raise ValueError("that is no key: copy the letters and digits shown under the square") from None
    digest = hmac.digest(secret, int(at // STEP_SECONDS).to_bytes(8), hashlib.sha1)
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4]) & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"


def main() -> int:
    """Print it."""
    try:
        sys.stdout.write(code("".join(sys.argv[1:]), clock.now().timestamp()) + "\n")
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
