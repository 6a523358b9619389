"""Where request logs lie and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from advisor.sources.log_formats import FORMATS, FieldMap

from .journal import JournalStream
from .loki import LokiOptions, LokiStream
from .stream import Stream

FORMAT_NAMES = ("auto", *FORMATS, "mapped")
JOURNAL = "journal:"


class JournalOptions(BaseModel):
    """Whose messages in the systemd journal are log lines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    units: tuple[str, ...] = Field((), description="Units, such as sglang.service.")
    identifiers: tuple[str, ...] = Field((), description="Identifiers, such as the tag of a container's log driver.")
    directory: Path | None = Field(
        None, description="Journal files of other machines; this machine's own unless given."
    )

    @field_validator("units", "identifiers")
    @classmethod
    def _named(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not 0 < len(name) <= 256 or not name.isprintable():
                raise ValueError(f"{name[:40]!r} is no name of a unit or identifier")
        return names

    @model_validator(mode="after")
    def _somebodys(self) -> Self:
        if not self.units and not self.identifiers:
            raise ValueError("name `units` or `identifiers` whose messages to read")
        return self

    @property
    def streams(self) -> tuple[JournalStream, ...]:
        """One for each unit and identifier: what is read of one says nothing of another."""
        units = [JournalStream("unit", name, self.directory) for name in self.units]
        return *units, *(JournalStream("identifier", name, self.directory) for name in self.identifiers)


class LogOptions(BaseModel):
    """Request logs to read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paths: tuple[str, ...] = Field((), description=f"Files, directories, globs, or `{JOURNAL}UNIT` for the journal.")
    journal: JournalOptions | None = Field(None, description="Messages in the systemd journal that are log lines.")
    loki: LokiOptions | None = Field(None, description="Lines in Loki; in place of `paths` and `journal`.")
    format: str = Field(
        "auto",
        description="How lines are written; `auto` tells it from the first lines of each file.",
        json_schema_extra={"enum": list(FORMAT_NAMES)},
    )
    aliases: dict[str, str] = Field(
        default_factory=dict,
        description="Model names in the log (aliases, adapters; empty for none) to the deployment's model name.",
    )
    fields: FieldMap | None = Field(None, description="Where the figures stand in a JSON format of your own.")
    max_line_bytes: int = Field(1 << 20, ge=1 << 10, le=1 << 26, description="A longer line is skipped and counted.")

    @model_validator(mode="before")
    @classmethod
    def _journal_among_paths(cls, given: Any) -> Any:
        """`journal:sglang.service` among the paths is a unit of the journal: short enough for a command line."""
        paths = given.get("paths") if isinstance(given, dict) else None
        if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
            return given
        units = [path.removeprefix(JOURNAL) for path in paths if path.startswith(JOURNAL)]
        if not units:
            return given
        journal = given.get("journal") or {}
        if not isinstance(journal, dict):
            raise ValueError("name all units under `journal`, or all among `paths`")  # noqa: TRY004  pydantic's way
        files = [path for path in paths if not path.startswith(JOURNAL)]
        return given | {"paths": files, "journal": journal | {"units": [*journal.get("units", ()), *units]}}

    @field_validator("format")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in FORMAT_NAMES:
            raise ValueError(f"{name[:40]!r} is no log format; choose one of {', '.join(FORMAT_NAMES)}")
        return name

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        if not self.paths and self.journal is None and self.loki is None:
            raise ValueError("name `paths` of files, or a `journal`, or `loki`")
        if self.loki is not None and (self.paths or self.journal is not None):
            raise ValueError("`loki` stands alone: a request that lies in a file or the journal too would count twice")
        return self

    def streams(self, now: float) -> tuple[Stream, ...]:
        """The sources other than files, up to `now` in UNIX seconds."""
        if self.loki is not None:
            return (LokiStream(self.loki, now),)
        return self.journal.streams if self.journal else ()

    @model_validator(mode="after")
    def _mapped_needs_fields(self) -> Self:
        if self.format == "mapped" and self.fields is None:
            raise ValueError("format `mapped` needs `fields`, the map of a log line")
        return self
