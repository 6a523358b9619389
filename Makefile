# Needs make, git and Python 3.11 to 3.13; everything else goes into .venv and build. `make help` lists the targets.

UV_VERSION := 0.13.9
UV := build/uv-$(UV_VERSION)/bin/uv
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/$(dir $(UV)):$(PATH)
export UV_PYTHON_DOWNLOADS := never

.PHONY: help setup demo test unit accuracy lint format snapshots recording prometheus servers clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: .venv/.ready  ## create .venv with the locked dependencies

demo: setup prometheus  ## advice for the recorded deployment in config/demo
	@config/demo/run

test: lint servers  ## everything: lint, then unit, whole-program and integration tests
	pytest

unit: setup  ## the tests that take no whole evaluation or process, in about two minutes
	pytest tests/unit -m "not slow"

accuracy: setup prometheus  ## what the estimates promise and what they reach; on your own data with DATA=FOLDER
	@python -m tests.accuracy $(DATA)

lint: setup  ## style, types and import layers
	ruff check
	ruff format --check
	mypy
	lint-imports

format: setup  ## rewrite the code in the project's style
	ruff check --fix
	ruff format

snapshots: setup servers  ## rewrite what snapshots and tests/scripts expect
	pytest --snapshot-update

recording: setup  ## make the metrics and the log in config/demo anew
	python -m tests.recording config/demo

# Without a Prometheus the demo reads the logs alone and tests are skipped; in CI its absence is an error.
prometheus: setup
	@.ci/install-prometheus || [ -z "$$CI" ]

# Tests of reading from other servers are skipped or an error in the same way. Newer releases come from suites of Debian
# that still move: where these have none, their tests are skipped everywhere.
servers: prometheus
	@.ci/install-victoria-metrics || [ -z "$$CI" ]
	@.ci/install-postgresql || [ -z "$$CI" ]
	@.ci/install-newer-releases || true

clean:  ## remove what the other targets built
	rm -rf .venv build dist

.venv/.ready: pyproject.toml uv.lock $(UV)
	@$(UV) sync --locked --quiet
	@touch $@

$(UV):
	@.ci/install-uv $(UV_VERSION) build/uv-$(UV_VERSION)
	@touch $@
