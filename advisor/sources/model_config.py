"""A model's config.json, as Hugging Face repositories carry it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.domain.errors import SourceError

from .bounded_file import read_bounded

MAX_BYTES = 4 * 2**20


def read_model_config(path: Path) -> Mapping[str, Any]:
    """The config at `path`, or the config.json in the model directory `path`.

    Raises SourceError when it cannot be read, exceeds 4 MiB, or is no JSON object.
    """
    file = path / "config.json" if path.is_dir() else path
    raw = read_bounded(file, most=MAX_BYTES, hint="give a model's config.json")
    try:
        config = json.loads(raw)
    except (ValueError, RecursionError):
        raise SourceError(f"{file}: not JSON; give a model's config.json", permanent=True) from None
    if not isinstance(config, dict):
        raise SourceError(f"{file}: not a JSON object; give a model's config.json", permanent=True)
    return config
