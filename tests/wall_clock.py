"""A wall clock that is set under running processes while their monotonic clock goes on, as `date --set` would.

It is a library to preload, so that everything in the process is told the same; the machine's own clock stays as it is.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_SOURCE = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const long *ahead;

__attribute__((constructor)) static void look_at_the_clock(void) {
    int file = open(getenv("WALL_CLOCK"), O_RDONLY | O_CLOEXEC);
    void *shared = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (shared != MAP_FAILED) ahead = shared;
}

int clock_gettime(clockid_t clock, struct timespec *told) {
    int failed = syscall(SYS_clock_gettime, clock, told);
    if (!failed && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) told->tv_sec += *ahead;
    return failed;
}

int gettimeofday(struct timeval *restrict told, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (told) *told = now.tv_sec;
    return now.tv_sec;
}
"""


@dataclass(frozen=True, slots=True)
class WallClock:
    """A clock for the processes that are started with its `environment`."""

    preloaded: Path
    ahead: Path

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process look at this clock."""
        return {"LD_PRELOAD": str(self.preloaded), "WALL_CLOCK": str(self.ahead)}

    def set(self, unix_seconds: float) -> None:
        """Set it, to the second. The file is written in place: it is mapped into the processes."""
        with self.ahead.open("r+b") as file:
            file.write(struct.pack("l", round(unix_seconds - time.time())))


def wall_clock(folder: Path) -> WallClock | None:
    """A clock that shows the right time; None where there is no C compiler to make it with."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source, clock = folder / "wall_clock.c", WallClock(folder / "wall_clock.so", folder / "ahead")
    source.write_text(_SOURCE, encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(clock.preloaded), str(source)], check=True)
    clock.ahead.write_bytes(struct.pack("l", 0))
    return clock
