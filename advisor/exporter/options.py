"""The `exporter` part of the configuration: where the host agent listens, what it remembers, how much it may expose."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from advisor.web.options import WebOptions

DEFAULT_STATE = Path("/var/lib/serving-advisor-exporter")


class ExporterOptions(BaseModel):
    """The host agent, `advisor exporter`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: str = Field("127.0.0.1:9110", description="address and port of /metrics; whoever reaches it may read it")
    state: Path = Field(DEFAULT_STATE, description="directory, which must exist, for its counts and how far it read")
    most_models: int = Field(
        20, ge=1, le=1000, description="models with series of their own, about 1,370 each; others are counted together"
    )

    @field_validator("listen")
    @classmethod
    def _is_an_address(cls, listen: str) -> str:
        _ = WebOptions.model_construct(listen=listen).address
        return listen

    @property
    def web(self) -> WebOptions:
        """The same as the web server takes it. An address that others reach is given on purpose."""
        return WebOptions(listen=self.listen, allow_remote=True)
