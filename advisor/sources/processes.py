"""Engines that run on this host, by the command lines of their processes. Only flags that size a server are kept.

Command lines are readable by everybody, unless /proc hides the processes of others. Environments, configuration files
and sockets are readable only by the owner of a process, and with CAP_SYS_PTRACE.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.domain.errors import ConfigError, SourceError
from advisor.engines.command_line import Launch, as_arguments
from advisor.engines.launch import COMMAND_LINES, launch_of_process, unwired, variables_like_flags
from advisor.sources.yaml_file import load_yaml

PROC = Path("/proc")
MOST_BYTES = 2**18
MOST_PROCESSES = 200_000
MOST_SOCKETS = 65_536
_LISTENING = "0A"
_LOCAL = re.compile(r"\|-- ([\d.]+)\n\s+/32 host LOCAL")
RIGHTS = "run as the owner of the process, or with CAP_SYS_PTRACE"


@dataclass(frozen=True, slots=True)
class EngineProcess:
    """One engine that runs here. ports: those that it listens on, as far as known. started: UNIX seconds."""

    pid: int
    launch: Launch
    ports: tuple[int, ...]
    started: float | None = None


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """What runs here, how many processes were looked at, and the addresses of this host."""

    engines: tuple[EngineProcess, ...]
    seen: int
    addresses: frozenset[str]


def read_processes(proc: Path = PROC) -> ProcessReading:
    """Every engine among the processes that this account can see. Raises SourceError where there is no /proc."""
    try:
        pids = sorted(int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal())[:MOST_PROCESSES]
    except OSError as error:
        raise SourceError(f"{proc}: cannot be read: {error.strerror}", permanent=True) from None
    booted = _booted(proc)
    found = {pid: (parent, one) for pid in pids for parent, one in _engine(proc, pid, booted)}
    # A fork has the words of its parent until it becomes something else.
    engines = [one for parent, one in found.values() if parent not in found or found[parent][1].launch != one.launch]
    return ProcessReading(tuple(engines), len(pids), _addresses(proc))


def _engine(proc: Path, pid: int, booted: float | None) -> Iterator[tuple[int, EngineProcess]]:
    """The engine that a process is, with its parent; nothing for other processes and for one that has just ended."""
    folder = proc / str(pid)
    try:
        command = _words(folder / "cmdline")
        launch = launch_of_process(command)
        if launch is not None:
            parent, started = _birth(folder, booted)
            launch = _complete(folder, command, launch)
            yield parent, EngineProcess(pid, launch, _ports(folder, launch.port), started)
    except OSError:
        return


def _words(path: Path) -> list[str]:
    with path.open("rb") as file:
        raw = file.read(MOST_BYTES)
    return [word.decode("utf-8", "replace") for word in raw.rstrip(b"\0").split(b"\0")] if raw else []


def _complete(folder: Path, command: Sequence[str], launch: Launch) -> Launch:
    """The launch with what variables and the configuration file of the process add below its arguments."""
    environment: dict[str, str] = {}
    missing = []
    try:
        known = COMMAND_LINES[launch.engine].variables.keys() | variables_like_flags(launch.engine)
        pairs = (word.partition("=") for word in _words(folder / "environ"))
        environment = {name: value for name, _, value in pairs if name in known}
    except OSError:
        if COMMAND_LINES[launch.engine].variables:
            missing.append(f"its environment cannot be read, where flags may be set too: {RIGHTS}")
    extra: list[str] = []
    if launch.config_file is not None:
        try:
            extra = _stated_in(folder, launch.config_file)
        except PermissionError:
            missing.append(f"its --config {launch.config_file[:80]} cannot be read: {RIGHTS}")
        except (ConfigError, OSError):
            missing.append(f"its --config {launch.config_file[:80]} is no YAML file that is there")
    full = launch_of_process(command, environment, extra=extra) or launch
    open_lines = (*full.unresolved, *missing, *unwired(full, environment))
    return replace(full, unresolved=open_lines, whole=full.whole and not missing)


def _stated_in(folder: Path, file: str) -> list[str]:
    """The configuration file as the process itself sees it, in its own root and folder."""
    path = Path(file)
    seen = folder / "root" / path.relative_to("/") if path.is_absolute() else folder / "cwd" / path
    seen.stat()
    stated = load_yaml(seen).data
    return as_arguments(stated) if isinstance(stated, dict) else []


def _birth(folder: Path, booted: float | None) -> tuple[int, float | None]:
    """The parent, and when the process began. The name in the second field may hold anything, brackets too."""
    fields = (folder / "stat").read_text("utf-8", "replace")[-MOST_BYTES:].rpartition(")")[2].split()
    if len(fields) < 20:
        return 0, None
    ticks = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return int(fields[1]), None if booted is None else booted + ticks


def _booted(proc: Path) -> float | None:
    try:
        match = re.search(r"(?m)^btime (\d+)$", (proc / "stat").read_text("ascii", "replace"))
    except OSError:
        return None
    return float(match[1]) if match else None


def _ports(folder: Path, stated: int) -> tuple[int, ...]:
    """Where the process listens: as it says, else what the kernel says where its sockets can be read."""
    try:
        links = [str(entry.readlink()) for entry in list((folder / "fd").iterdir())[:MOST_SOCKETS]]
        listening = _listening(folder)
    except OSError:
        return (stated,)
    ports = sorted({listening[link] for link in links if link in listening})
    return (stated,) if stated in ports or not ports else tuple(ports)


def _listening(folder: Path) -> dict[str, int]:
    """Sockets that listen in the network of a process, by the name that its descriptors have for them."""
    ports: dict[str, int] = {}
    for table in ("net/tcp", "net/tcp6"):
        with (folder / table).open("rb") as file:
            for line in file.readlines(MOST_BYTES * 64)[1:]:
                fields = line.decode("ascii", "replace").split()
                if len(fields) > 9 and fields[3] == _LISTENING:
                    ports[f"socket:[{fields[9]}]"] = int(fields[1].rpartition(":")[2], 16)
    return ports


def _addresses(proc: Path) -> frozenset[str]:
    """Names under which something on this host may have been scraped."""
    name = socket.gethostname()
    try:
        local = _LOCAL.findall((proc / "self" / "net" / "fib_trie").read_text("ascii", "replace"))
    except OSError:
        local = []
    return frozenset({"localhost", "127.0.0.1", "[::1]", name, name.partition(".")[0], *local})
