"""Manifests of our own writing, one of every kind, and what of them cannot be told."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.domain.errors import SourceError
from advisor.sources.manifests import Declared, ManifestReading, read_manifest
from advisor.sources.manifests.container import launch_of_words

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  replicas: 3
  template:
    metadata: {name: not-this}
    spec:
      initContainers:
        - {name: fetch, image: "vllm/vllm-openai:v0.11.0", args: [--model, /other]}
      containers:
        - name: proxy
          image: nginx
        - name: engine
          image: registry.example/vllm/vllm-openai:v0.11.0
          env:
            - {name: SEQS, value: "64"}
            - name: BUDGET
              valueFrom: {configMapKeyRef: {name: settings, key: budget}}
          args: [--model, /m, --served-model-name=chat, "--max-num-seqs=$(SEQS)", --max-num-batched-tokens, $(BUDGET),
                 --tensor-parallel-size, 4]
          resources: {limits: {nvidia.com/gpu: "4"}}
"""
SCRIPT = """
kind: Pod
metadata: {name: code}
spec:
  containers:
    - image: lmsysorg/sglang:v0.5.5
      command: [bash, -lc]
      args:
        - |
          # the model's own limit isn't enough
          export CONTEXT=32768
          exec python3 -m sglang.launch_server --model-path /m \\
            --context-length ${CONTEXT} --max-running-requests $SEATS 2>&1 | tee /log
"""
GROUP = """
kind: LeaderWorkerSet
metadata: {name: big}
spec:
  replicas: 2
  leaderWorkerTemplate:
    leaderTemplate:
      spec:
        containers:
          - image: vllm/vllm-openai:latest
            command: [sh, -c, "ray start --head; vllm serve /big -tp 8 -pp 2"]
            resources: {limits: {nvidia.com/gpu: 8}}
    workerTemplate:
      spec: {containers: [{image: "vllm/vllm-openai:latest", command: [sh, -c, ray start --block]}]}
"""
SERVED = """
kind: InferenceService
metadata: {name: llama}
spec:
  predictor:
    minReplicas: 1
    maxReplicas: %s
    model:
      modelFormat: {name: huggingface}
      args: [--model_name=llama, --model_id=org/llama, --max_model_len=8k]
"""
TEMPLATE = """
kind: Deployment
metadata: {name: '{{ include "name" . }}'}
spec:
  replicas: {{ .Values.replicas }}
  template:
    spec:
      {{- if .Values.enabled }}
      containers:
        - image: "vllm/vllm-openai:{{ .Values.tag }}"
          args: [--served-model-name, chat, --max-num-seqs, "{{ .Values.seqs }}", --max-model-len, 4096]
      {{- end }}
"""
VALUES = """
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.10.2
      modelURL: org/chat
      replicaCount: 2
      requestGPU: 1
      vllmConfig:
        maxModelLen: 8192
        maxNumSeqs: 32
        extraArgs: [--max-num-batched-tokens, "4096", --served-model-name, chat]
"""
COMPOSE = """
services:
  db: {image: postgres}
  llm:
    image: vllm/vllm-openai:v0.9.1
    command: --model /m --served-model-name "chat" --max-num-seqs ${SEQS:-64} --max-model-len 4096
    deploy:
      replicas: 2
      resources: {reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}}
  tgi:
    image: ghcr.io/huggingface/text-generation-inference:3.3.4
    environment: ["MODEL_ID=/t", "MAX_TOTAL_TOKENS=4096", NUM_SHARD]
"""
UNIT = """
[Service]
Environment=SEQS=48 "BUDGET=2048"
# ExecStart=/usr/bin/vllm serve /old
ExecStart=-/usr/bin/docker run --rm --gpus all -p 8000:8000 vllm/vllm-openai:v0.10.0 --model /m \\
  --max-num-seqs ${SEQS} --max-num-batched-tokens $BUDGET --max-model-len %i
"""
INSPECTED = [
    {
        "Name": "/llm",
        "Path": "vllm",
        "Args": ["serve", "/m", "--max-num-seqs", "16"],
        "Config": {"Image": "vllm/vllm-openai:v0.12.0", "Env": ["HF_TOKEN=secret"]},
    }
]


def read(folder: Path, text: str, name: str = "a.yaml") -> ManifestReading:
    (folder / name).write_text(text)
    return read_manifest(folder / name)


def only(folder: Path, text: str, name: str = "a.yaml") -> Declared:
    (one,) = read(folder, text, name).engines
    return one


def test_a_deployment_with_variables(tmp_path: Path) -> None:
    one = only(tmp_path, DEPLOYMENT)
    assert (one.name, one.replicas, one.gpus, one.version) == ("chat", 3, 4, "0.11.0")
    assert one.launch.served_names == ("chat",)
    assert one.launch.flags == {"max_num_seqs": 64, "tensor_parallel_size": 4}
    assert one.launch.unresolved == ("max_num_batched_tokens is $BUDGET, which is not told here",)


def test_a_script_is_read_and_not_run(tmp_path: Path) -> None:
    one = only(tmp_path, SCRIPT)
    assert (one.name, one.replicas, one.version, one.launch.engine) == ("code", 1, "0.5.5", "sglang")
    assert one.launch.flags == {"max_model_len": 32_768}
    assert one.launch.unresolved == ("max_running_requests is $SEATS, which is not told here",)


def test_of_a_group_the_leader_is_the_engine(tmp_path: Path) -> None:
    one = only(tmp_path, GROUP)
    assert (one.name, one.replicas, one.gpus, one.version) == ("big", 2, 8, None)
    assert one.launch.flags == {"tensor_parallel_size": 8, "pipeline_parallel_size": 2}


@pytest.mark.parametrize(("most", "replicas"), [(1, 1), (3, None)])
def test_a_served_model_and_its_autoscaler(tmp_path: Path, most: int, replicas: int | None) -> None:
    one = only(tmp_path, SERVED % most)
    assert (one.name, one.replicas, one.launch.served_names) == ("llama", replicas, ("llama",))
    assert one.launch.flags == {"max_model_len": 8000}


def test_of_a_template_nothing_is_guessed(tmp_path: Path) -> None:
    one = only(tmp_path, TEMPLATE)
    assert (one.replicas, one.version) == (None, None)
    assert one.launch.flags == {"max_model_len": 4096}
    assert one.launch.unresolved == ("max_num_seqs is .Values.seqs, which is not told here",)
    assert not one.launch.whole


def test_values_of_the_production_stack(tmp_path: Path) -> None:
    one = only(tmp_path, VALUES)
    assert (one.name, one.replicas, one.gpus, one.version) == ("chat", 2, 1, "0.10.2")
    assert one.launch.served_names == ("chat",)
    assert one.launch.flags == {
        "max_model_len": 8192,
        "max_num_seqs": 32,
        "max_num_batched_tokens": 4096,
        "enable_prefix_caching": False,  # the chart passes --no-enable-prefix-caching where the values are silent
    }


def test_services_of_a_compose_file(tmp_path: Path) -> None:
    vllm, tgi = read(tmp_path, COMPOSE).engines
    assert (vllm.name, vllm.replicas, vllm.gpus, vllm.version) == ("llm", 2, 2, "0.9.1")
    assert vllm.launch.flags == {"max_model_len": 4096}
    assert vllm.launch.unresolved == ("max_num_seqs is $SEQS, which is not told here",)
    assert (tgi.launch.flags, tgi.version) == ({"max_model_len": 4096}, "3.3.4")
    assert tgi.launch.unresolved == ("num_shard is $NUM_SHARD, which is not told here",)


def test_what_docker_inspect_prints(tmp_path: Path) -> None:
    one = only(tmp_path, json.dumps(INSPECTED), "inspect.json")
    assert (one.name, one.version, one.launch.flags) == ("llm", "0.12.0", {"max_num_seqs": 16})
    assert "secret" not in repr(one)


@pytest.mark.parametrize(("name", "replicas"), [("llm.service", 1), ("llm@.service", None)])
def test_a_unit_that_runs_a_container(tmp_path: Path, name: str, replicas: int | None) -> None:
    one = only(tmp_path, UNIT, name)
    assert (one.replicas, one.launch.served_names) == (replicas, ("/m",))
    assert one.launch.flags == {"max_num_seqs": 48, "max_num_batched_tokens": 2048}
    assert one.launch.unresolved == ("max_model_len is %i, which is not told here",)


def test_variables_from_elsewhere_leave_an_engine_open_that_reads_them(tmp_path: Path) -> None:
    container = '{image: "ghcr.io/huggingface/text-generation-inference:3", envFrom: [{configMapRef: {name: x}}]}'
    one = only(tmp_path, f"kind: Pod\nspec: {{containers: [{container}]}}")
    assert one.launch.unresolved == ("more flags may be set in envFrom, which is not told here",)


def test_a_variable_that_no_argument_carries_is_named(tmp_path: Path) -> None:
    variables = '[{name: MAX_NUM_SEQS, value: "64"}, {name: VLLM_MAX_MODEL_LEN, value: "4096"}]'
    container = f'{{image: "team/vllm:1", args: [--model, /m, --max-num-seqs, $(MAX_NUM_SEQS)], env: {variables}}}'
    one = only(tmp_path, f"kind: Pod\nspec: {{containers: [{container}]}}")
    assert one.launch.flags == {"max_num_seqs": 64}
    assert one.launch.unresolved == (
        "VLLM_MAX_MODEL_LEN is 4096, but no argument carries it: only a wrapper could pass it on",
    )
    # Nobody knows what the image of a team adds by itself, nor which release its tag means.
    assert (one.launch.whole, one.version) == (False, None)


def test_many_documents_and_one_that_cannot_be_read(tmp_path: Path) -> None:
    reading = read(tmp_path, f"{DEPLOYMENT}\n---\nvllm: [\n---\n{GROUP}")
    assert [one.name for one in reading.engines] == ["chat", "big"]
    (note,) = reading.notes
    assert "a.yaml, document 2:" in note


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("if [ $X ]; then vllm serve /a; else vllm serve /b; fi", "starts an engine in 2 places"),
        ("vllm serve /m --max-num-seqs $(( $(nproc) * 2 ))", "cannot be read: the script nests commands"),
        ("vllm serve /m --max-num-seqs 'x", "cannot be read: No closing quotation"),
        ("vllm serve /m --max-num-seqs $(cat /seqs)", "max_num_seqs is the output of a command, which"),
        (
            "A=xx; " + "".join(f"{b}=${a}${a}; " for a, b in pairwise("ABCDEFGHIJKLMNOPQRSTU")) + "vllm serve $U",
            "64 KiB",
        ),
        ("vllm serve /m $ARGS", "more arguments are in $ARGS, which"),
        ("A=1; [ $X ] && A=2; vllm serve /m --max-num-seqs $A", "max_num_seqs is $A, which"),
    ],
)
def test_what_only_a_shell_could_tell(tmp_path: Path, script: str, told: str) -> None:
    document = {"kind": "Pod", "spec": {"containers": [{"command": ["sh", "-c", script]}]}}
    one = only(tmp_path, json.dumps(document))
    assert told in one.launch.unresolved[0]
    assert (one.launch.flags, one.launch.whole) == ({}, False)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.yaml", "kind: Service", "no engine that is known is started in it; give Kubernetes objects"),
        ("a.yaml", "vllm: [", "a.yaml:1:8: not valid YAML"),
        ("a.service", "[Service]\nExecStart=/bin/vllm serve 'x", "not a systemd unit that can be read"),
        ("a.yaml", "---\n" * 1_001 + "a: 1", "more than 1,000 documents"),
        ("a.yaml", "x" * (2**20 + 1), "larger than 1 MiB"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, text: str, told: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(tmp_path, text, name)
    assert told in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_manifest(tmp_path / "none.yaml")


PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
KEYS = st.sampled_from(
    [
        "containers",
        "command",
        "args",
        "env",
        "image",
        "spec",
        "services",
        "model",
        "modelFormat",
        "replicas",
        "name",
        "servingEngineSpec",
        "modelSpec",
        "vllmConfig",
        "environment",
        "deploy",
        "resources",
        "limits",
        "metadata",
    ]
)
ANY = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ANY)
def test_any_document_is_read_or_refused_with_a_reason(tmp_path: Path, document: object) -> None:
    try:
        reading = read(tmp_path, json.dumps(document))
    except SourceError:
        return
    assert reading.engines


@given(st.text(alphabet="vllm serve$(){}`'\"\\;|&\n-x=#", max_size=200))
def test_any_script_is_read_or_left(script: str) -> None:
    launch_of_words(["sh", "-c", script], {})
