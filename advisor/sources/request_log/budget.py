"""How much one reading may take on."""

from __future__ import annotations


class Budget:
    """How many bytes one call may still unpack."""

    def __init__(self, size_bytes: int) -> None:
        self._left = size_bytes

    @property
    def exhausted(self) -> bool:
        """Whether it is used up."""
        return self._left <= 0

    def spend(self, size_bytes: int) -> None:
        """Take bytes off; the last piece may exceed it."""
        self._left -= size_bytes

    def close(self) -> None:
        """Use it up."""
        self._left = 0
