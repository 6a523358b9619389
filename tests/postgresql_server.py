"""A real PostgreSQL on a free loopback port: `with serve() as url`. Needs initdb and postgres (Debian: postgresql)."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

READY_SECONDS = 60.0
USER = "advisor"
_ACCOUNT = "nobody" if os.geteuid() == 0 else None
"""Whose processes they are: PostgreSQL does not run as root."""


class PostgresqlMissingError(RuntimeError):
    """The programs are not installed."""


@contextlib.contextmanager
def serve(password: str | None = None, certificate: bytes | None = None) -> Iterator[str]:
    """Yields the address of its empty database, without a password; server and data are gone afterwards.

    password: what everybody must give; without one nobody is asked. certificate: PEM with its key, for TLS.
    """
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="postgresql-") as name:
        folder, port = Path(name), _free_port()
        _own(folder, "password", (password or "none").encode())
        _initialise(programs, folder, "scram-sha-256" if password else "trust")
        settings = {"listen_addresses": "127.0.0.1", "fsync": "off", "unix_socket_directories": str(folder)}
        if certificate is not None:
            pem = str(_own(folder, "server.pem", certificate))
            settings |= {"ssl": "on", "ssl_cert_file": pem, "ssl_key_file": pem}
        command = [str(programs / "postgres"), "-D", str(folder / "data"), "-p", str(port)]
        command += [word for setting in settings.items() for word in ("-c", "=".join(setting))]
        log = folder / "log"
        with (
            log.open("wb") as output,
            subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, user=_ACCOUNT) as process,
        ):
            try:
                _wait(port, process, log)
                yield f"postgresql://{USER}@127.0.0.1:{port}/postgres"
            finally:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(20)
                process.kill()


def _programs() -> Path:
    """The folder of the newest version: on the PATH, else where Debian puts them."""
    on_path = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in [*on_path, *debian]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise PostgresqlMissingError("PostgreSQL is not installed: install Debian's package postgresql")


def _own(folder: Path, name: str, content: bytes) -> Path:
    """A file that the server's account, and nobody else, may read."""
    path = folder / name
    path.write_bytes(content)
    path.chmod(0o600)
    if _ACCOUNT is not None:
        shutil.chown(folder, _ACCOUNT)
        shutil.chown(path, _ACCOUNT)
    return path


def _initialise(programs: Path, folder: Path, method: str) -> None:
    command = [
        *(str(programs / "initdb"), "--pgdata", str(folder / "data"), "--no-sync"),
        *("--username", USER, "--pwfile", str(folder / "password"), "--auth", method),
        *("--encoding", "UTF8", "--locale", "C"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, user=_ACCOUNT)
    if done.returncode:
        raise RuntimeError(f"initdb failed: {done.stderr.strip()[-300:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if b"ready to accept connections" in log.read_bytes():
            return
        time.sleep(0.05)
    raise RuntimeError(f"postgres does not answer on {port}: {log.read_text(errors='replace').strip()[-300:]}")
