"""The contract's document as JSON and as YAML, for scripts. Both are pure ASCII: no name can play with a terminal."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from advisor.domain.report import Report

from .document import document


def render_json(report: Report) -> str:
    """The document as indented JSON, keys in the contract's order."""
    return json.dumps(document(report).model_dump(), indent=2, allow_nan=False)


def render_yaml(report: Report) -> str:
    """The same document as YAML 1.2."""
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.width = 120
    stream = StringIO()
    yaml.dump(document(report).model_dump(), stream)
    return stream.getvalue().rstrip("\n")
