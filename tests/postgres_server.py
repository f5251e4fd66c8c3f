"""A real PostgreSQL for the tests: a cluster of its own in a temporary folder, reached by socket.

    server = PostgresServer.start(folder)     # None where no PostgreSQL is installed
    server.url("postgres")                    # postgresql:///postgres?host=...
    server.restart(); server.stop()

PostgreSQL refuses to run as root, so root starts it as another user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")
USERS = ("postgres", "nobody")
MISSING = "no PostgreSQL here: neither on PATH nor under /usr/lib/postgresql"
NO_DRIVER = "no psycopg here: install sulq[postgres]"


def programs() -> Path | None:
    """The folder with initdb, pg_ctl and postgres, the newest first."""
    versions = sorted(DEBIAN.glob("*/bin"), key=lambda at: float(at.parent.name), reverse=True)
    on_path = shutil.which("postgres")
    found = [Path(on_path).resolve().parent] if on_path else []
    for folder in (*found, *versions):
        if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return folder
    return None


def _other_user() -> str | None:
    """Whom root becomes; None where we are not root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in USERS if name in known)


@dataclass
class PostgresServer:
    """One cluster; its superuser is `postgres`, and everyone on the socket is trusted."""

    programs: Path
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def start(cls, **settings: str) -> PostgresServer | None:
        found = programs()
        if found is None:
            return None
        folder = Path(tempfile.mkdtemp(prefix="sulq-pg-"))  # a socket's path must stay short
        user = _other_user()
        if user is not None:
            shutil.chown(folder, user)
        server = cls(found, folder, settings)
        server._run(
            "initdb",
            "-D",
            str(folder / "data"),
            "-A",
            "trust",
            "-U",
            "postgres",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        )
        server.resume()
        return server

    def _run(self, program: str, *arguments: str) -> None:
        user = _other_user()
        command = [str(self.programs / program), *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            cwd=self.folder,
            user=user,
            group=None if user is None else pwd.getpwnam(user).pw_gid,
            extra_groups=None if user is None else [],
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == 0, (program, done.stderr.decode()[-2000:])

    def resume(self) -> None:
        chosen = {"listen_addresses": "", "unix_socket_directories": str(self.folder)}
        chosen |= {"max_connections": "50", **self.settings}
        options = " ".join(f"-c {name}='{value}'" for name, value in chosen.items())
        log = str(self.folder / "log")
        self._run(
            "pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", log, "-o", options, "start"
        )

    def halt(self) -> None:
        """Break every connection and stop, without waiting for anyone."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", "immediate", "stop")

    def restart(self) -> None:
        self.halt()
        self.resume()

    def stop(self) -> None:
        self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(
        self, database: str = "postgres", table: str | None = None, user: str = "postgres"
    ) -> str:
        path = database if table is None else f"{database}/{table}"
        return f"postgresql://{user}@/{path}?host={self.folder}"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


@contextmanager
def running(**settings: str) -> Iterator[PostgresServer]:
    """A server for as long as it is wanted; the caller checked `programs()`."""
    server = PostgresServer.start(**settings)
    assert server is not None, MISSING
    try:
        yield server
    finally:
        server.stop()
