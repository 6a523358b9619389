"""A real systemd as PID 1, in namespaces of its own: `with boot(folder, files, shown) as machine: machine.run(...)`.

Its root is an overlay of this machine's, so nothing here is touched; /tmp, /run and the journal are its own. Needs
root, overlayfs, cgroup2 and the programs named below; limits on memory and CPU are not real in it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

BOOT_SECONDS = 60.0
SYSTEMD = Path("/lib/systemd/systemd")
PROGRAMS = ("unshare", "nsenter", "findmnt", "useradd", "runuser")

# Devices and files that belong to the outer machine, and what has nothing to do in a container.
MASKED = (
    *("systemd-sysctl.service", "systemd-modules-load.service", "systemd-remount-fs.service", "systemd-udevd.service"),
    *("systemd-update-utmp.service", "systemd-tmpfiles-setup-dev.service", "kmod-static-nodes.service"),
    *("sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-fs-fuse-connections.mount", "sys-kernel-config.mount"),
    *("dev-hugepages.mount", "dev-mqueue.mount"),
)
TARGET = """[Unit]
Description=what a test needs
Requires=basic.target dbus.socket systemd-journald.service
After=basic.target dbus.socket
AllowIsolate=yes
"""
# $1 is the working folder; of the others, each is a folder from here and where it is seen in the machine.
INSIDE = r"""
set -eu
work=$1; shift
mount --make-rprivate /
mount -t tmpfs tmpfs "$work/upper"
mkdir "$work/upper/changes" "$work/upper/scratch"
root=$work/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper/changes,workdir=$work/upper/scratch" "$root"
while [ $# -gt 0 ]; do mkdir -p "$root$2"; mount --bind "$1" "$root$2"; shift 2; done
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"; ln -s fd/1 "$root/dev/stdout"; ln -s fd/2 "$root/dev/stderr"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/system/*.requires "$root/var/log/journal"
cp -r "$work/files/." "$root/"
echo 11111111111111111111111111111111 > "$root/etc/machine-id"
cd "$root"
mkdir -p .before
pivot_root . .before
umount -l /.before
# systemd mounts a service's credentials in a namespace of the side, from which they must find their way here.
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    /lib/systemd/systemd --system --unit=test.target --log-target=console
"""


class MachineError(RuntimeError):
    """It cannot be booted here; one line with the reason."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A booted system; `leader` is its PID 1 as seen from here."""

    leader: int

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in it, as root."""
        inside = ["nsenter", "-t", str(self.leader), "-a", *command]
        return subprocess.run(inside, capture_output=True, text=True, check=check, timeout=120)

    def property(self, unit: str, name: str) -> str:
        """What `systemctl show` says of a unit."""
        return self.run("systemctl", "show", "-P", name, unit).stdout.strip()


@contextlib.contextmanager
def boot(folder: Path, files: Mapping[str, str], shown: Mapping[Path, str]) -> Iterator[Machine]:
    """Boot with `files` (absolute path to content) put into its root, and folders of this machine `shown` elsewhere.

    Raises MachineError where that is impossible.
    """
    group = _cgroup()
    for name in ("upper", "root"):
        (folder / name).mkdir(parents=True)
    units = folder / "files/etc/systemd/system"
    units.mkdir(parents=True)
    for unit in MASKED:
        (units / unit).symlink_to("/dev/null")
    for path, content in {"/etc/systemd/system/test.target": TARGET, **files}.items():
        target = folder / "files" / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
        target.chmod(0o755 if content.startswith("#!") else 0o644)
    script = folder / "inside"
    script.write_text(INSIDE, encoding="utf-8")
    namespaces = ["unshare", "--pid", "--fork", "--mount", "--uts", "--ipc", "--cgroup", "--kill-child=SIGKILL"]
    command = [*namespaces, "bash", str(script), str(folder), *(str(path) for pair in shown.items() for path in pair)]
    enter = ["bash", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "enter", *command]
    with (folder / "console").open("wb") as console, subprocess.Popen(enter, stdout=console, stderr=console) as outer:
        try:
            yield _booted(outer, folder / "console")
        finally:
            outer.send_signal(signal.SIGKILL)
            outer.wait()
            _remove(group)


def _cgroup() -> Path:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if os.geteuid() != 0 or not SYSTEMD.exists() or missing:
        raise MachineError(f"needs root, systemd and {', '.join(missing or PROGRAMS)}")
    found = subprocess.run(
        ["findmnt", "-n", "-t", "cgroup2", "-o", "TARGET"], capture_output=True, text=True, check=False
    )
    mounts = found.stdout.split()
    if not mounts:
        raise MachineError("needs a cgroup2 file system")
    group = Path(mounts[0], f"test-{os.getpid()}-{time.monotonic_ns()}")
    try:
        group.mkdir()
    except OSError as error:
        raise MachineError(f"cannot make a control group: {error.strerror}") from None
    return group


def _booted(outer: subprocess.Popen[bytes], console: Path) -> Machine:
    deadline = time.monotonic() + BOOT_SECONDS
    children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
    while time.monotonic() < deadline and outer.poll() is None:
        with contextlib.suppress(OSError, LookupError, subprocess.SubprocessError):
            machine = Machine(int(children.read_text().split()[0]))
            if Path(f"/proc/{machine.leader}/comm").read_text() == "systemd\n":
                state = machine.run("systemctl", "is-system-running", "--wait", check=False).stdout.strip()
                if state in {"running", "degraded"}:
                    return machine
        time.sleep(0.1)
    raise MachineError(f"systemd does not boot here: {console.read_text(errors='replace').strip()[-300:]}")


def _remove(group: Path) -> None:
    """Once its processes, which died with PID 1, are really gone."""
    deadline = time.monotonic() + 10
    while group.exists() and time.monotonic() < deadline:
        for path in sorted((p for p in group.rglob("*") if p.is_dir()), reverse=True):
            with contextlib.suppress(OSError):
                path.rmdir()
        with contextlib.suppress(OSError):
            group.rmdir()
        time.sleep(0.05)
