"""Where request logs lie and how they are written."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from advisor.sources.log_formats import FORMATS, FieldMap

FORMAT_NAMES = ("auto", *FORMATS, "mapped")


class LogOptions(BaseModel):
    """Request logs to read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paths: tuple[str, ...] = Field(description="Files, directories (read with everything below them) or globs.")
    format: str = Field(
        "auto",
        description="How lines are written; `auto` tells it from the first lines of each file.",
        json_schema_extra={"enum": list(FORMAT_NAMES)},
    )
    aliases: dict[str, str] = Field(
        default_factory=dict, description="Model names in the log (aliases, adapters) to the deployment's model name."
    )
    fields: FieldMap | None = Field(None, description="Where the figures stand in a JSON format of your own.")
    max_line_bytes: int = Field(1 << 20, ge=1 << 10, le=1 << 26, description="A longer line is skipped and counted.")

    @field_validator("format")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in FORMAT_NAMES:
            raise ValueError(f"{name[:40]!r} is no log format; choose one of {', '.join(FORMAT_NAMES)}")
        return name

    @model_validator(mode="after")
    def _mapped_needs_fields(self) -> Self:
        if self.format == "mapped" and self.fields is None:
            raise ValueError("format `mapped` needs `fields`, the map of a log line")
        return self
