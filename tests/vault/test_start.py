"""A process with a missing or wrong key-encryption key does not start, and says what to set."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import psycopg
import pytest
from django.conf import settings as django_settings

from memberintel.env import Misconfigured
from memberintel.tenancy.context import Scope
from memberintel.vault import keyring, start
from memberintel.vault.errors import KekRefused, KeyUnavailable
from memberintel.vault.kek import configured
from tests.vault.conftest import KekRoom, new_kek


def test_the_right_kek_starts_again_and_again(keks: KekRoom) -> None:
    start.verify_keks()
    start.verify_keks()


def test_a_wrong_kek_is_refused_naming_both(keks: KekRoom) -> None:
    start.verify_keks()
    home = configured().current.fingerprint
    keks.use(new_kek())
    with pytest.raises(Misconfigured) as refused:
        start.verify_keks()
    sentence = str(refused.value)
    assert home in sentence
    assert configured().current.fingerprint in sentence
    assert "Set MEMBERINTEL_KEK_FILE" in sentence


def test_a_login_without_a_way_to_the_keys_is_told_so(
    login: Callable[[str], AbstractContextManager[None]],
) -> None:
    with login("support"), pytest.raises(Misconfigured, match=r"permission denied.*manage\.py migrate"):
        start.verify_keks()


def test_a_missing_kek_is_refused(keks: KekRoom) -> None:
    keks.use("")
    with pytest.raises(Misconfigured, match=r"No key-encryption key is set\. Set MEMBERINTEL_KEK_FILE"):
        start.verify_keks()


def test_while_rotating_the_new_one_starts_beside_the_old_and_the_old_alone_no_more(keks: KekRoom) -> None:
    start.verify_keks()
    fresh = new_kek()
    keks.use(fresh, old=keks.base)
    start.verify_keks()
    keks.use(keks.base)
    with pytest.raises(Misconfigured):
        start.verify_keks()
    keks.use(keks.base, old=fresh)
    start.verify_keks()


def test_a_retired_kek_is_refused(keks: KekRoom, owner_login: psycopg.Connection) -> None:
    start.verify_keks()
    fresh = new_kek()
    keks.use(fresh, old=keks.base)
    start.verify_keks()
    retired = configured().current.fingerprint
    owner_login.execute("UPDATE vault.keks SET retired_at = now() WHERE fingerprint = %s", [retired])
    keks.use(fresh, old=keks.base)
    with pytest.raises(KekRefused, match="was retired here"):
        start.register()


def test_no_key_is_made_under_a_wrong_or_retired_kek(anna: Scope, keks: KekRoom) -> None:
    start.verify_keks()
    keks.use(new_kek())
    with pytest.raises(KekRefused):
        keyring.customer_key()
    keks.use(keks.base)
    assert keyring.customer_key()


def test_a_key_refused_for_its_kek_is_a_typed_error_for_a_page_too() -> None:
    assert issubclass(KekRefused, KeyUnavailable)


def test_the_web_process_ends_with_the_sentence(keks: KekRoom) -> None:
    start.verify_keks()
    keks.use(new_kek())
    script = "import django; django.setup(); from memberintel.checks import verify_start; verify_start()"
    environment = keks.environment() | {
        "MEMBERINTEL_PROCESS": "web",
        "DJANGO_SETTINGS_MODULE": "memberintel.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=django_settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip().startswith("Refusing to start: this database's data keys need")
    assert "Traceback" not in done.stderr
