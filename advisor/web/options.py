"""The `web` part of the configuration: where to listen, and for whom."""

from __future__ import annotations

import re
from ipaddress import ip_address

from pydantic import BaseModel, ConfigDict, Field, model_validator

_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})")
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}")


class WebOptions(BaseModel):
    """Where the read-only page is served. Nobody signs in, so it stays on this machine unless that is given up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: str = Field("127.0.0.1:9109", description="address and port; [::1]:9109 for IPv6, port 0 for any free one")
    allow_remote: bool = Field(
        default=False, description="true lets other machines read the advice: there is no password"
    )
    hosts: tuple[str, ...] = Field(
        (),
        description="names under which browsers may ask, such as a reverse proxy's; localhost and IP addresses may",
    )

    @model_validator(mode="after")
    def _stay_on_this_machine(self) -> WebOptions:
        if not self.is_loopback and not self.allow_remote:
            raise ValueError(f"{self.listen} is open to other machines: set allow_remote, or listen on 127.0.0.1")
        if odd := next((host for host in self.hosts if not _HOST.fullmatch(host)), None):
            raise ValueError(f"hosts: {odd[:40]!r} is not the name of a host")
        return self

    @property
    def address(self) -> tuple[str, int]:
        """Host and port. Raises ValueError for what is no address: `[::1]:9109` is ("::1", 9109)."""
        match = _ADDRESS.fullmatch(self.listen)
        if match is None or int(match[3]) > 65535:
            raise ValueError(f"{self.listen[:80]!r} is not an address and a port, such as 127.0.0.1:9109")
        return match[1] or match[2], int(match[3])

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect. Any name but localhost is taken to reach further."""
        host, _ = self.address
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def trusted_hosts(self) -> frozenset[str] | None:
        """Names that a Host header may carry, in lower case and without port; None is any name.

        A page of another origin whose name was pointed at 127.0.0.1 (DNS rebinding) still sends its own name. IP
        addresses cannot be pointed elsewhere and are not listed: the guard lets them pass.
        """
        if not self.is_loopback and not self.hosts:
            return None
        return frozenset(host.lower() for host in (*self.hosts, "localhost"))
