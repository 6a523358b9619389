from __future__ import annotations

import subprocess
import sys

import pytest

from advisor.outlets import FORMATS
from tests.unit.outlets import samples

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["table", "json", "yaml", "markdown", "csv"])
def test_every_format_renders_without_a_newline_at_its_end(name: str) -> None:
    text = FORMATS[name](samples.fleet(), width=100, color=False, verbose=True)
    assert "chat-70b" in text
    assert not text.endswith("\n")


def test_the_style_reaches_the_table() -> None:
    assert "\x1b[" in FORMATS["table"](samples.fleet(), color=True)
    assert FORMATS["json"](samples.fleet(), color=True) == FORMATS["json"](samples.fleet())


def test_nothing_heavy_is_imported_before_a_format_is_used() -> None:
    script = (
        "import sys; from advisor.outlets import FORMATS;"
        "print(*sorted({'rich', 'pydantic', 'ruamel', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_table_without_colour_does_not_import_rich() -> None:
    script = (
        "import sys; from tests.unit.outlets import samples; from advisor.outlets import FORMATS;"
        "FORMATS['table'](samples.fleet()); print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
