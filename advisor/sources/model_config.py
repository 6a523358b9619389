"""A model's config.json, as Hugging Face repositories carry it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.domain.errors import SourceError

MAX_BYTES = 4 * 2**20


def read_model_config(path: Path) -> Mapping[str, Any]:
    """The config at `path`, or the config.json in the model directory `path`.

    Raises SourceError when it cannot be read, exceeds 4 MiB, or is no JSON object.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        if not file.is_file():
            raise SourceError(f"{file}: no such file; give a model's config.json", permanent=True)
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{file}: cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise SourceError(f"{file}: larger than 4 MiB, so no model's config.json", permanent=True)
    try:
        config = json.loads(raw)
    except (ValueError, RecursionError):
        raise SourceError(f"{file}: not JSON; give a model's config.json", permanent=True) from None
    if not isinstance(config, dict):
        raise SourceError(f"{file}: not a JSON object; give a model's config.json", permanent=True)
    return config
