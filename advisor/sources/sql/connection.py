"""A query asked of a database: read only, bounded in time and rows, and every failure one line for a person.

This is the only place where a driver's errors become `SourceError`. Messages name the address without its credentials.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import certifi
from sqlalchemy import URL, Connection, DateTime, TextClause, bindparam, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Window
from advisor.sources.http_session import one_line, read_secret

from .columns import Rows
from .failure import TOO_SLOW, not_answered, not_connected
from .options import PARAMETERS, SqlOptions

CONNECT_TIMEOUT_SECONDS = 5
_CHUNK_ROWS = 1 << 14
_LOOPBACK = ("", "localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Answer:
    """The names of the columns, and the rows, some at a time: each chunk is gone when the next one is taken."""

    columns: tuple[str, ...]
    chunks: Iterator[Rows]


@contextmanager
def answer(options: SqlOptions, window: Window) -> Generator[Answer, None, None]:
    """Ask within one transaction that is rolled back. Raises SourceError, also while chunks are taken."""
    url = address(options)
    port = "" if url.port is None else f":{url.port}"
    place = one_line(f"{url.drivername.partition('+')[0]} {url.host or ''}{port}/{url.database or ''}", 100)
    deadline = time.monotonic() + options.statement_timeout_seconds
    with closing(_connection(options, url, place)) as connection:
        try:
            _guard(connection, options.statement_timeout_seconds)
            result = connection.execute(_bound(options.text, window), execution_options={"yield_per": _CHUNK_ROWS})
            yield Answer(tuple(result.keys()), _bounded(result.partitions(_CHUNK_ROWS), options, place, deadline))
        except SQLAlchemyError as error:
            raise SourceError(f"{place}: {not_answered(error)}") from None


def _bound(query: str, window: Window) -> TextClause:
    moments = zip(PARAMETERS, (window.start, window.end), strict=True)
    return text(query).bindparams(
        *(bindparam(name, datetime.fromtimestamp(at, UTC), DateTime(timezone=True)) for name, at in moments)
    )


def _connection(options: SqlOptions, url: URL, place: str) -> Connection:
    try:
        return create_engine(url, connect_args=connect_arguments(options, url), poolclass=NullPool).connect()
    except ModuleNotFoundError as missing:
        raise SourceError(f"{place}: the driver {missing.name} is not installed", permanent=True) from None
    except (SQLAlchemyError, TypeError, ValueError) as error:
        why = not_connected(error) if isinstance(error, SQLAlchemyError) else "no address that its driver understands"
        raise SourceError(f"{place}: {why}") from None


def address(options: SqlOptions) -> URL:
    """The address with its password, wherever that stands. Raises SourceError."""
    stated = options.url or (read_secret(options.url_file, "url_file") if options.url_file else "")
    try:
        url = make_url(stated)
    except (ArgumentError, ValueError):
        raise SourceError("sql: url holds no address such as postgresql://user@host/database", permanent=True) from None
    if url.drivername in {"postgresql", "postgres"}:
        url = url.set(drivername="postgresql+psycopg")
    if options.password_file is not None:
        url = url.set(password=read_secret(options.password_file, "password_file"))
    return url


def connect_arguments(options: SqlOptions, url: URL) -> dict[str, Any]:
    """What PostgreSQL's driver is told: the server must prove who it is, unless it is here or the address is laxer."""
    if url.drivername != "postgresql+psycopg":
        return {}
    arguments: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_SECONDS}
    if options.ca_file or not _is_local(url):
        arguments["sslrootcert"] = str(options.ca_file or certifi.where())
        if "sslmode" not in url.query:
            arguments["sslmode"] = "verify-full"
    return arguments


def _is_local(url: URL) -> bool:
    host = url.host or str(url.query.get("host", ""))
    return host in _LOOPBACK or host.startswith("/")


def _guard(connection: Connection, seconds: float) -> None:
    """Let the server itself refuse to write and to work for ever, where it can be told so."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, round(seconds * 1000))}")
        connection.exec_driver_sql("SET LOCAL TIME ZONE 'UTC'")
    elif connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA query_only = ON")


def _bounded(chunks: Iterator[Rows], options: SqlOptions, place: str, deadline: float) -> Iterator[Rows]:
    """The chunks, until they are too many or take too long: of a part of a window nobody could tell the lengths."""
    taken = 0
    for chunk in chunks:
        taken += len(chunk)
        if taken > options.max_rows:
            more = f"more than {options.max_rows:,} rows: group in the query, look back less far or raise max_rows"
            raise SourceError(f"{place}: {more}")
        if time.monotonic() > deadline:
            raise SourceError(f"{place}: {TOO_SLOW}")
        yield chunk
