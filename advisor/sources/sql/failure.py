"""Why a database gives no answer, as one line for a person.

Told by the kind of the error and by known words: a driver's own text may quote data, parameters or a password.
"""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from advisor.sources.http_session import one_line

TOO_SLOW = "no whole answer in time: raise statement_timeout_seconds, group in the query or look back less far"
# Of these classes the server's own words name tables, columns and settings, never values.
_TELLING = ("08", "25", "3D", "42", "53", "57")
_CANCELLED = "57014"
_CONNECTING: tuple[tuple[str, str], ...] = (
    ("no password supplied", "wants a password: set password_file, url_file or PGPASSWORD"),
    ("authentication failed", "refuses account or password; check url and password_file"),
    ("no pg_hba.conf entry", "lets this account not in from here (pg_hba.conf)"),
    ("certificate", "its certificate is not trusted; set ca_file"),
    ("does not support ssl", "has no TLS; where that is meant, add ?sslmode=disable to the address"),
    ("query parameter", "the address has parameters that the driver does not know (Prisma's, perhaps): leave them out"),
    (
        "connection option",
        "the address has parameters that the driver does not know (Prisma's, perhaps): leave them out",
    ),
    ("does not exist", "has no such database; check url"),
    ("resolve host", "no such host; check url"),
    ("refused", "refuses the connection; is it running, is url right?"),
    ("timeout", "does not take a connection in time; check url"),
)


def not_connected(error: SQLAlchemyError) -> str:
    """Why no connection came about."""
    if isinstance(error, NoSuchModuleError):
        return "no dialect of that name: install the driver of this database for SQLAlchemy"
    said = str(error.orig).lower() if isinstance(error, DBAPIError) else ""
    known = (advice for words, advice in _CONNECTING if words in said)
    return next(known, f"no connection ({_kind(error)}); check address, account, password and TLS")


def not_answered(error: SQLAlchemyError) -> str:
    """Why a query was not answered, or not wholly."""
    driver = error.orig if isinstance(error, DBAPIError) else None
    state = str(getattr(driver, "sqlstate", None) or "")
    if state == _CANCELLED:
        return TOO_SLOW
    if state.startswith(_TELLING):
        told = getattr(getattr(driver, "diag", None), "message_primary", None)
        return one_line(f"the server says {told or state}", 300)
    if state:
        return f"the server gives up (SQLSTATE {one_line(state, 5)}): try the query by hand"
    return f"the query failed ({_kind(error)}): try it by hand with this account"


def _kind(error: SQLAlchemyError) -> str:
    return type(error.orig if isinstance(error, DBAPIError) and error.orig else error).__name__
