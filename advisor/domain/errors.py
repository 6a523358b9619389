"""Errors, one tree. Each carries one line for a person: what, where, what to do.

AdvisorError
├── UsageError      the command line asks for something that cannot be   (exit code 2)
├── ConfigError     a file the user wrote is wrong, with its place       (exit code 2)
├── SourceError     a place that evidence comes from failed              (a line in `sources`, or exit code 3)
└── StoreError      the daemon's memory cannot be opened, read or written (exit code 3; the daemon goes on without)
"""

from __future__ import annotations


class AdvisorError(Exception):
    """Base of everything that is reported to a person as one line."""


class UsageError(AdvisorError):
    """The command line asks for something that cannot be done."""


class ConfigError(AdvisorError):
    """A file that the user wrote is wrong; the message begins with `file:line:column` where it is known."""


class SourceError(AdvisorError):
    """A source could not be read. `permanent` says that trying again will not help."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class StoreError(AdvisorError):
    """The store cannot be opened, read or written; what it holds is left as it is."""
