from __future__ import annotations

import pytest
from pydantic import ValidationError

from advisor.exporter.options import ExporterOptions


def test_it_stays_on_this_machine_unless_an_address_is_given() -> None:
    assert ExporterOptions().web.is_loopback
    assert ExporterOptions(listen="10.0.0.7:9110").web.address == ("10.0.0.7", 9110)
    assert ExporterOptions(listen="[::]:9110").web.trusted_hosts is None


@pytest.mark.parametrize("listen", ["9110", "127.0.0.1:99999", "http://a:1"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(ValidationError, match="is not an address and a port"):
        ExporterOptions(listen=listen)
