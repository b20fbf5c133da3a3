"""The data folder: its lock, its secrets, and the note by which a second process joins the first."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from memberintel.env import Misconfigured

LOGINS = ("owner", "web", "worker", "support", "backup")


class Note(TypedDict):
    """What the process that runs the services tells others."""

    pid: int
    environment: dict[str, str]


@dataclass(frozen=True)
class Secrets:
    """Generated once for a data folder; passwords by login, the superuser's under `postgres`."""

    passwords: Mapping[str, str]
    secret_key: str


def write_private(path: Path, text: str) -> None:
    """Write a file only its owner can read, whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def lock(path: Path) -> int | None:
    """An open file that holds the lock of that name until it is closed; None when another process holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


class DataFolder:
    """One folder of MEMBERINTEL_DATA. Whoever holds its lock runs the services."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Misconfigured(
                f"The data folder {self.path} cannot be made: {error.strerror}. "
                "Set MEMBERINTEL_DATA to a folder you may write to."
            ) from None
        self.kek = self.path / "kek"
        self._secrets = self.path / "secrets.json"
        self._note = self.path / "running.json"
        self._lock: int | None = None

    def take(self) -> bool:
        """Take the lock, which the kernel frees when this process ends; False when another holds it."""
        try:
            handle = lock(self.path / "lock")
        except OSError as error:
            raise Misconfigured(
                f"The data folder {self.path} cannot be used: {error.strerror}. "
                "It belongs to another user; set MEMBERINTEL_DATA to a folder of your own."
            ) from None
        if handle is None:
            return False
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        self._lock = handle
        self._note.unlink(missing_ok=True)
        return True

    def free(self) -> None:
        """Withdraw the note and give the lock back."""
        self._note.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def holder(self) -> str:
        """The id of the process that holds the lock, for messages."""
        return (self.path / "lock").read_text() or "unknown"

    def announce(self, environment: Mapping[str, str]) -> None:
        """Tell others how to join."""
        write_private(self._note, json.dumps(Note(pid=os.getpid(), environment=dict(environment))))

    def announced(self) -> Note | None:
        """The holder's note, once it is there."""
        try:
            note: Note = json.loads(self._note.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return note if str(note["pid"]) == self.holder() else None

    def secrets(self, *, used: bool) -> Secrets:
        """The generated secrets, made on first use. used: a database already depends on them."""
        if used and not (self._secrets.exists() and self.kek.exists()):
            raise Misconfigured(
                f"{self.path} holds a database, but its {self._secrets.name} or {self.kek.name} is gone. "
                "Put both files back, or move the folder away to start afresh."
            )
        if not self._secrets.exists():
            made = {name: secrets.token_urlsafe(24) for name in ("postgres", *LOGINS)}
            write_private(
                self._secrets, json.dumps({"passwords": made, "secret_key": secrets.token_urlsafe(48)})
            )
        if not self.kek.exists():
            write_private(self.kek, base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
        return self.known()

    def known(self) -> Secrets:
        """The secrets of a folder that has them."""
        stored = json.loads(self._secrets.read_text())
        return Secrets(passwords=stored["passwords"], secret_key=stored["secret_key"])

    def hand_over(self, uid: int, gid: int) -> None:
        """Give what root made to the user whose checkout this is, who will want to start it next time."""
        for path in [self.path, *self.path.rglob("*")]:
            try:
                if path.lstat().st_uid == 0:
                    os.chown(path, uid, gid, follow_symlinks=False)
            except FileNotFoundError:  # a socket or temporary file that went meanwhile
                continue
