"""Who asked: a client's name becomes a number here, and leaves as a salted hash."""

from __future__ import annotations

import secrets
from hashlib import sha256
from pathlib import Path

from advisor.domain.length_history import NOBODY

MAX_CLIENTS = 1 << 16
_MAX_NAME_CHARACTERS = 512
_HASH_CHARACTERS = 12


class Clients(dict[str, int]):
    """Numbers of clients by the name that the log has; 0 for none, for endless ones and for those past the 65,536th.

    `hashes` tells them apart without their names: the first 12 hexadecimal digits of SHA-256 over salt and name, so
    that whoever knows both can find a client again, and nobody else can.
    """

    def __init__(self, salt: str) -> None:
        super().__init__({NOBODY: 0})
        self._salt = salt
        self.hashes = [NOBODY]

    def __missing__(self, name: str) -> int:
        if len(self) >= MAX_CLIENTS or len(name) > _MAX_NAME_CHARACTERS:
            return 0
        self.hashes.append(sha256(f"{self._salt}{name}".encode()).hexdigest()[:_HASH_CHARACTERS])
        self[name] = len(self)
        return self[name]


def own_salt() -> str:
    """A salt that is this machine's own and stays: made from its id, so that the id cannot be told from a hash.

    A machine without an id gets another salt in every process.
    """
    try:
        machine = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        machine = ""
    return sha256(f"advisor clients {machine or secrets.token_hex()}".encode()).hexdigest()
