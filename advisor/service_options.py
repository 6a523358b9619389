"""How the daemon keeps, times and tells what it does."""

from __future__ import annotations

from datetime import time
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from advisor.domain import quantity

DEFAULT_STORE = Path("/var/lib/serving-advisor/advisor.db")
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Span = Annotated[float, BeforeValidator(quantity.seconds, json_schema_input_type=float | str)]


class StoreOptions(BaseModel):
    """The daemon's memory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path = Field(DEFAULT_STORE, description="SQLite file; its directory must exist")
    retention_days: int = Field(400, ge=30, le=3650, description="what is older is deleted")


class ScheduleOptions(BaseModel):
    """When the daemon does what."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    gather: Span = Field(300.0, ge=10, le=86_400, description="how often request logs are followed, such as 5m")
    evaluate: Span = Field(3600.0, ge=60, le=7 * 86_400, description="how often the fleet is judged, such as 1h")
    step_deadline: Span = Field(900.0, ge=5, le=86_400, description="a step that takes longer is cut off, such as 15m")
    report_weekday: Weekday = Field("mon", description="day of the weekly report; a name, because numbers mislead")
    report_time: str = Field("09:00", description="time of day of the weekly report, HH:MM")
    timezone: str = Field("UTC", description="IANA name of the time zone of the report, such as Europe/Berlin")

    @field_validator("report_time")
    @classmethod
    def _is_time_of_day(cls, text: str) -> str:
        try:
            moment = time.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{text[:20]!r} is no time of day: write HH:MM, such as 09:00") from None
        if len(text) != 5 or moment.second:
            raise ValueError(f"{text[:20]!r} is no time of day: write HH:MM, such as 09:00")
        return text

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{name[:40]!r} is no time zone: write UTC or a name such as Europe/Berlin") from None
        return name

    @property
    def report_hour_minute(self) -> tuple[int, int]:
        """(9, 0) for 09:00."""
        moment = time.fromisoformat(self.report_time)
        return moment.hour, moment.minute


class LoggingOptions(BaseModel):
    """How the daemon's log, which goes to stderr, is written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["key_value", "json"] = Field("key_value", description="key=value for people, or JSON lines")
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="the least that is written")
