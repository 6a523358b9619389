"""Start-ups of real engines, as DATA/kv_pool lists them, and what the lists have no room for."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from advisor.domain.evidence import FlagValue

Case = Mapping[str, str]
ALIASES = {"meta-llama-3-8b": "llama-3.1-8b", "qwen2.5-math-1.5b": "qwen2.5-1.5b"}
"""Models of another name with the geometry of one that the data describes."""

MODELS = {"K203": "deepseek-ai/DeepSeek-R1"}
"""Cases whose source names the model where the table has no room for it."""

MODEL_TYPES = {"google/gemma-3-27b-it": "gemma3_text"}
"""What the described fields of a config.json leave out although the file has it."""

ALSO_STATED: dict[str, dict[str, FlagValue]] = {
    "K013": {
        "enable_prefix_caching": True,
        "speculative_config": '{"method": "mtp", "num_speculative_tokens": 3}',
        "max_num_batched_tokens": 8192,
    },
    "K029": {"speculative_config": '{"method": "dflash", "num_speculative_tokens": 10}'},
    "K038": {"max_num_batched_tokens": 8192},
    "K221": {"speculative_config": '{"method": "mtp", "num_speculative_tokens": 1}'},
    "K223": {"speculative_config": '{"method": "eagle"}'},
}
"""Flags that the notes or the source of a case state besides the columns."""

VERSIONS = {"K013": "0.24.0", "K034": "0.9.2", "K038": "0.11.0"}
COLUMNS = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "block_size": "block_size",
}
USABLE_GIB = {"80": 79.25, "40": 39.39, "24": 23.6, "22.5": 22.03, "16": 15.5, "15": 14.56}
"""What engines print for GPUs that are named by a round figure."""


def table(path: Path) -> Iterator[Case]:
    """The rows of a CSV file; none where there is no such file."""
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def configs_of(path: Path) -> dict[str, dict[str, Any]]:
    """config.json by model; layer types that are given as counts are listed, since arithmetic asks only how many."""
    configs = {k: dict(v) for k, v in json.loads(path.read_text(encoding="utf-8")).items() if isinstance(v, dict)}
    for name, config in configs.items():
        if isinstance(kinds := config.get("layer_types"), dict):
            config["layer_types"] = [kind for kind, count in kinds.items() for _ in range(count)]
        if name in MODEL_TYPES:
            config.setdefault("model_type", MODEL_TYPES[name])
    return configs


def model_of(case: Case, configs: Mapping[str, Any]) -> str | None:
    """The described model whose name, without its owner, is the longest to be found in the case's."""
    written = case["model"].lower()
    for alias, name in ALIASES.items():
        written = written.replace(alias, name)
    found = [k for k in configs if k.rpartition("/")[2].lower() in written]
    return MODELS.get(case["id"]) or max(found, key=len, default=None)
