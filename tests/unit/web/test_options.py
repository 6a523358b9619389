from __future__ import annotations

import pytest
from pydantic import ValidationError

from advisor.web.options import WebOptions


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:9109", ("127.0.0.1", 9109)),
        ("127.0.0.53:80", ("127.0.0.53", 80)),
        ("[::1]:9109", ("::1", 9109)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_loopback_needs_no_leave(listen: str, address: tuple[str, int]) -> None:
    options = WebOptions(listen=listen)
    assert options.address == address
    assert options.trusted_hosts == frozenset({"localhost"})


@pytest.mark.parametrize("listen", ["0.0.0.0:9109", "[::]:9109", "10.0.0.7:9109", "gpu-1.example:9109"])
def test_other_machines_need_leave(listen: str) -> None:
    with pytest.raises(ValidationError, match="is open to other machines: set allow_remote"):
        WebOptions(listen=listen)
    assert WebOptions(listen=listen, allow_remote=True).trusted_hosts is None


@pytest.mark.parametrize(
    "listen", ["9109", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", ":9109", "http://a:1", "a b:1"]
)
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(ValidationError, match="is not an address and a port"):
        WebOptions(listen=listen)


def test_names_are_compared_in_lower_case() -> None:
    assert WebOptions(hosts=("Advisor.Example",)).trusted_hosts == frozenset({"advisor.example", "localhost"})
    assert WebOptions(listen="0.0.0.0:1", allow_remote=True, hosts=("a",)).trusted_hosts == frozenset(
        {"a", "localhost"}
    )
    with pytest.raises(ValidationError, match="is not the name of a host"):
        WebOptions(hosts=("http://advisor.example/",))
