"""A planned sweep as files and commands: one data set a load level, in a form that every tool reads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import FlagValue
from advisor.domain.histogram import Ints

_TEXT = (
    "time year people way day man thing life child world school state family student group country problem hand "
    "part place case week company system program question work government number night point home water room "
    "mother area money story fact month lot right study book eye job word business issue side kind head house "
    "service friend father power hour game line end member law car city community name president team minute idea "
    "kid body information back parent face others level office door health person art war history party result "
    "change morning reason research"
)
WORDS = _TEXT.split()
"""Common words, each one token of the usual vocabularies when a blank goes before it."""

KEPT_FLAGS = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "max_num_batched_tokens")


@dataclass(frozen=True, slots=True)
class Target:
    """Where the load goes: the address of one replica, the name of its model there, and how it runs.

    seats: the max_num_seqs that the highest level needs, None where today's is not known.
    """

    url: str
    model: str
    tokenizer: str | None
    flags: Mapping[str, FlagValue]
    seats: int | None


def dataset_lines(prompt: Ints, output: Ints, seed: int) -> Iterator[str]:
    """One request a line, its text made of random common words: nothing of it comes from any log.

    `prompt`, `output_tokens` are read by `vllm bench serve --dataset-name custom`; `prompt`, `output_tokens_count` by
    GuideLLM; `input_length`, `output_length` by AIPerf, which makes text of exactly that many tokens by itself.
    """
    random = np.random.default_rng(seed)
    for prompt_tokens, output_tokens in zip(prompt.tolist(), output.tolist(), strict=True):
        text = " ".join(WORDS[place] for place in random.integers(0, len(WORDS), prompt_tokens))
        yield json.dumps(
            {
                "prompt": text,
                "output_tokens": output_tokens,
                "prompt_tokens_count": prompt_tokens,
                "output_tokens_count": output_tokens,
                "input_length": prompt_tokens,
                "output_length": output_tokens,
            }
        )


def notes(target: Target) -> Iterator[str]:
    """What to see to before the load is sent, a line each."""
    yield "send it to one replica that serves nobody else, with today's flags, version and hardware"
    today = target.flags.get("max_num_seqs")
    if target.seats is not None and isinstance(today, int) and target.seats > today:
        yield (
            f"for the test start it with max_num_seqs {target.seats:,} in place of {today:,}, and say so, SEATS="
            f"{target.seats}: with fewer seats the levels above them only measure the queue"
        )
    yield "vllm and GuideLLM send words of about one token each; AIPerf counts with the model's own tokenizer"


def commands(target: Target, levels: Mapping[int, int], folder: str) -> dict[str, str]:
    """Per tool the command that runs all levels (concurrency: requests), ready to paste into a shell.

    Every level has a data set of its own, so that none finds the prompts of the one before in the prefix cache.
    """
    return {
        "vllm bench serve (vLLM 0.14 or newer)": _loop(levels, _vllm(target, folder)),
        "GuideLLM (0.8 or newer)": _loop(levels, _guidellm(target, folder)),
        "AIPerf": _loop(levels, _aiperf(target, folder)),
    }


def _loop(levels: Mapping[int, int], body: list[str]) -> str:
    inside = " \\\n    ".join(body)
    pairs = " ".join(f"{concurrency}:{requests}" for concurrency, requests in levels.items())
    return f"for level in {pairs}; do n=${{level%:*}} requests=${{level#*:}}\n  {inside}\ndone"


def _vllm(target: Target, folder: str) -> list[str]:
    model = f"--model {shlex.quote(target.tokenizer or target.model)}"
    served = [f"--served-model-name {shlex.quote(target.model)}"] if target.tokenizer else []
    return [
        f"vllm bench serve --backend openai --base-url {shlex.quote(target.url)} --endpoint /v1/completions",
        " ".join([model, *served]),
        f"--dataset-name custom --dataset-path {_data(folder)} --custom-output-len -1",
        "--skip-chat-template --disable-shuffle --ignore-eos --num-prompts $requests --max-concurrency $n",
        "--percentile-metrics ttft,tpot,itl --metric-percentiles 99",
        f'--save-result --result-dir {shlex.quote(folder)}/results --result-filename "vllm-concurrency-$n.json"',
        *_metadata(target),
    ]


def _metadata(target: Target) -> list[str]:
    """The flags in the result, so that a sweep of another epoch is known as one. The shell asks for what may differ."""
    stated = [f"{name}={shlex.quote(str(target.flags[name]))}" for name in KEPT_FLAGS if name in target.flags]
    today = target.flags.get("max_num_seqs")
    if target.seats is not None:
        asked = '"${SEATS:?max_num_seqs of the tested engine}"'
        stated.append(f"max_num_seqs={today if today == target.seats else asked}")
    return [f"--metadata {' '.join(stated)}"] if stated else []


def _guidellm(target: Target, folder: str) -> list[str]:
    backend = f"kind=openai_http,target={target.url},model={target.model},request_format=/v1/completions"
    tokenizer = [f"--tokenizer kind=huggingface_auto,model={shlex.quote(target.tokenizer)}"] if target.tokenizer else []
    return [
        f"guidellm run --backend {shlex.quote(backend)}",
        '--profile "kind=concurrent,streams=$n" --constraint "kind=max_requests,count=$requests"',
        f"--data kind=json_file,path={_data(folder)}",
        *tokenizer,
        f'--output {shlex.quote(f"kind=json,path={folder}")}"/results/guidellm-concurrency-$n.json"',
    ]


def _aiperf(target: Target, folder: str) -> list[str]:
    tokenizer = [f"--tokenizer {shlex.quote(target.tokenizer)}"] if target.tokenizer else []
    return [
        f"aiperf profile --model {shlex.quote(target.model)} --url {shlex.quote(target.url)}",
        " ".join(["--endpoint-type completions --streaming --extra-inputs ignore_eos:true", *tokenizer]),
        f"--input-file {_data(folder)} --custom-dataset-type mooncake_trace",
        "--concurrency $n --request-count $requests --random-seed $n",
        f'--output-artifact-dir {shlex.quote(folder)}"/aiperf-concurrency-$n"',
    ]


def _data(folder: str) -> str:
    return f'{shlex.quote(folder)}"/concurrency-$n.jsonl"'
