"""Which database to ask, and what."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

PARAMETERS = ("since", "until")
_URL = re.compile(r"(?P<dialect>[a-z0-9_]+)(?:\+[a-z0-9_]+)?://(?P<login>[^/?]*@)?.*", re.DOTALL)


class SqlOptions(BaseModel):
    """A database that has the requests: single ones, or counts of equal ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str | None = Field(
        None,
        repr=False,
        description="Address as SQLAlchemy writes it, without password: postgresql://user@host/database",
    )
    url_file: Path | None = Field(None, description="File with the address, which may hold the password")
    password_file: Path | None = Field(None, description="File with the password; PGPASSWORD and ~/.pgpass serve too")
    ca_file: Path | None = Field(
        None, description="CA certificates (PEM) that sign the server's certificate (PostgreSQL)"
    )
    preset: Literal["litellm"] | None = Field(None, description="A query that is known here: LiteLLM's table of spend")
    query: str | None = Field(
        None, max_length=100_000, description="A query of your own, which uses :since and :until, the window in UTC"
    )
    aliases: dict[str, str] = Field(
        default_factory=dict, description="Model names in the database to the deployment's model name"
    )
    statement_timeout_seconds: float = Field(120.0, gt=0, le=3600, description="How long the whole answer may take")
    max_rows: int = Field(20_000_000, ge=1, le=1_000_000_000, description="An answer of more rows is not used")

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        known = _URL.fullmatch(url) if url is not None else None
        if url is not None and known is None:
            raise ValueError("must be an address such as postgresql://user@host:5432/database")
        if known and (":" in (known["login"] or "") or "password" in str(url).partition("?")[2].lower()):
            raise ValueError("must not hold a password: use url_file, password_file or PGPASSWORD")
        return url

    @field_validator("query")
    @classmethod
    def _is_bounded(cls, query: str | None) -> str | None:
        for name in PARAMETERS if query is not None else ():
            if not re.search(rf"(?<![:\w\\]):{name}\b", str(query)):
                raise ValueError(f"must use :{name}, so that only the window is read")
        return query

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.url is None) == (self.url_file is None):
            raise ValueError("name `url` or `url_file`, one of them")
        if (self.preset is None) == (self.query is None):
            raise ValueError("name `preset` or `query`, one of them")
        return self

    @property
    def text(self) -> str:
        """The query."""
        return self.query or files(__package__).joinpath(f"{self.preset}.sql").read_text(encoding="utf-8")
