"""Where commands find what the daemon remembers: its store on this machine, or its read-only API elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from advisor.domain.report import Report
    from advisor.store import Store

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_STORE = "/var/lib/serving-advisor/advisor.db"
"""As in the settings, which take longer to load than everything else that `status` does."""

TIMEOUT_SECONDS = 10.0
LARGEST_ANSWER = 200 * 2**20
FILE = click.Path(path_type=Path)

_CONFIG = click.option(
    "-c", "--config", "config", type=FILE, metavar="FILE", help="Configuration file of the daemon; names its store."
)
_STORE = click.option("--store", type=FILE, metavar="PATH", help=f"The daemon's store.  [default: {DEFAULT_STORE}]")
_SERVER = click.option("--server", metavar="URL", help="Ask this daemon instead, such as http://127.0.0.1:9109.")


def store_options(command: Command) -> Command:
    """-c and --store, for commands that need the store itself."""
    return _CONFIG(_STORE(command))


def place_options(command: Command) -> Command:
    """-c, --store and --server, for commands that only read."""
    return _CONFIG(_STORE(_SERVER(command)))


@contextmanager
def opened(store: Path | None, config: Path | None, *, readonly: bool = True) -> Iterator[Store]:
    """The store, closed at the end. Raises SourceError where there is none, StoreError where it cannot be used."""
    from advisor.domain.errors import SourceError
    from advisor.store import Store

    path = store_path(store, config)
    if not path.exists():
        raise SourceError(f"{path}: there is no store: start the daemon (advisor run), or name one with --store")
    memory = Store.open(path, readonly=readonly)
    try:
        yield memory
    finally:
        memory.close()


def latest_document(server: str | None, store: Path | None, config: Path | None) -> str:
    """The newest report as the contract's document. Raises SourceError before the first evaluation."""
    from advisor.domain.errors import SourceError

    if server is not None:
        return fetched(server, "/api/v1/deployments")
    with opened(store, config) as memory:
        latest = memory.latest_report()
    if latest is None:
        raise SourceError(
            "nothing was evaluated yet: the daemon does so when it starts (journalctl -u serving-advisor)"
        )
    return latest[1]


def latest_report(server: str | None, store: Path | None, config: Path | None) -> Report:
    """The newest report, with what was decided about its advice since. Raises SourceError as `latest_document`."""
    from advisor.outcomes import with_states
    from advisor.outlets.restore import restore

    report = restore(latest_document(server, store, config))
    if server is not None:
        return report
    with opened(store, config) as memory:
        return with_states(report, memory.records())


def store_path(store: Path | None, config: Path | None) -> Path:
    """--store, else what the environment or the configuration file says, else the default."""
    import os

    if store is not None:
        return store
    if "ADVISOR_STORE__PATH" in os.environ:
        return Path(os.environ["ADVISOR_STORE__PATH"])
    return Path(DEFAULT_STORE) if config is None else _configured(config)


def _configured(config: Path) -> Path:
    """One line of the file: the rest of it is the daemon's business, and takes long to check."""
    from collections.abc import Mapping

    from advisor.domain.errors import ConfigError
    from advisor.sources.yaml_file import load_yaml

    stated = (load_yaml(config).data or {}).get("store") or {}
    path = stated.get("path", DEFAULT_STORE) if isinstance(stated, Mapping) else None
    if not isinstance(path, str):
        raise ConfigError(f"{config}: store.path is no path: advisor config check {config} says more")
    return Path(path)


def fetched(server: str, path: str) -> str:
    """What the daemon answers. Raises UsageError for another scheme than http(s), SourceError without an answer."""
    import http.client
    import urllib.error
    import urllib.request

    from advisor.domain.errors import SourceError, UsageError

    if not server.startswith(("http://", "https://")):
        raise UsageError(f"--server {server[:60]!r}: write http://HOST:PORT")
    url = server.rstrip("/") + path
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - checked above
            body: bytes = answer.read(LARGEST_ANSWER + 1)
    except urllib.error.HTTPError as error:
        error.close()
        why = "nothing was evaluated yet" if error.code == 503 else f"answered {error.code}"
        raise SourceError(f"{server}: {why} to {path}: is this the address of advisor's daemon?") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SourceError(f"{server} does not answer: {getattr(error, 'reason', error)}: is the daemon up?") from None
    if len(body) > LARGEST_ANSWER:
        raise SourceError(
            f"{server}: its answer to {path} is larger than {LARGEST_ANSWER // 2**20} MiB", permanent=True
        )
    return body.decode("utf-8", "replace")
