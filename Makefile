# One target per habit; `make help` lists them. Needs make and a Python >= 3.11, nothing else.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# The first interpreter that is new enough; `make PYTHON=...` overrides. Its own path, never that of .venv, which
# it may have to replace.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do "$$p" -c \
	'import ensurepip, sys; sys.exit(1) if sys.version_info < (3, 11) else print(sys._base_executable)' \
	2>/dev/null && break; done)

VENV := .venv
PINS := python/requirements-dev.txt
BENCH_VENV := build/bench-venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
ARGS ?=

# buf starts its plugins by name, and betterproto2's compiler starts ruff.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# buf writes its cache below the home directory, which a CI user may not have.
export BUF_CACHE_DIR ?= $(CURDIR)/$(VENV)/cache/buf

.PHONY: help setup pins generate vectors lint format format-check breaking types test fuzz test-typescript test-go \
	plugin-test conformance bench bench-pins bench-quick bench-opencode demo proto-release clean

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.installed ## Build .venv from the pinned requirements

# The environment is rebuilt only when the content of the pins differs: git touches file times at will.
$(VENV)/.pins: $(PINS)
	@if [ -z "$(PYTHON)" ]; then echo "no Python >= 3.11 found; set PYTHON=/path/to/python3" >&2; exit 1; fi
	@if ! cmp -s $(PINS) $@; then \
		echo "building $(VENV) with $(PYTHON)"; \
		"$(PYTHON)" -m venv --clear $(VENV); \
		$(PIP) install --requirement $(PINS); \
		cp $(PINS) $@; \
	fi
	@touch $@

$(VENV)/.installed: $(VENV)/.pins python/pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation --editable python
	@touch $@

pins: ## Resolve python/requirements-dev.in anew into the pinned file
	rm -rf build/pins
	"$(PYTHON)" -m venv build/pins
	build/pins/bin/python -m pip --disable-pip-version-check --quiet install --requirement python/requirements-dev.in
	{ echo "# Exact versions of everything in .venv, from requirements-dev.in by \`make pins\`; Python 3.11 to 3.13."; \
	  build/pins/bin/python -m pip --disable-pip-version-check freeze --all --exclude pip; } > $(PINS)

generate: setup ## Write all generated code from proto/, the stub of the blocking face, and the tables of docs/
	@python tools/generate.py
	@python tools/spec_tables.py
	@python tools/blocking_stub.py
	@python tools/validation_docs.py

vectors: setup ## Make tests/conformance/vectors of their sources
	@python -m tests.conformance.making

lint: setup ## Check the protos and the Python code
	buf lint
	ruff check .

format: setup ## Format the protos and the Python code
	buf format --write proto
	ruff format .

format-check: setup ## Fail if `make format` would change a file
	buf format --diff --exit-code proto
	ruff format --diff .

breaking: setup ## Compare the protos with AGAINST (default: the last tag, and main)
	@tools/breaking.sh $(AGAINST)

types: setup ## mypy --strict and pyright strict on the package
	mypy
	basedpyright

test: setup ## Run the tests; ARGS goes to pytest
	@python -m pytest $(ARGS)

fuzz: setup ## Run mutated logs through every reader for a minute; ARGS="--seconds 600", or a kept log
	@python -m tests.fuzz $(ARGS)

test-typescript: setup ## Build clients/typescript, check it and run its tests on Node and on Bun; needs Node >= 20
	cd clients/typescript && npm ci --no-audit --no-fund && npm run build && npm run lint && npm test && npm run test:bun

test-go: setup ## Build clients/go, check it and run its tests; needs Go >= 1.26
	$(MAKE) -C clients/go lint test

plugin-test: setup ## Build clients/opencode-plugin, check it and try it in the real opencode from npm; needs Node >= 20
	cd clients/typescript && npm ci --no-audit --no-fund && npm run generate && npm exec --offline -- tsc
	cd clients/opencode-plugin && npm ci --no-audit --no-fund && npm run build && npm run lint && npm test && \
		npm run test:opencode

conformance: setup ## Build the clients of all languages and run the vectors through them; ARGS go to the runner
	@python -m tests.conformance.runner $(ARGS)

bench: setup $(BENCH_VENV)/.installed ## Measure everything beside its limits and the peers; writes docs/benchmarks.md
	@python -m bench $(ARGS)

bench-quick: setup ## Compare a short run's ratios with bench/baseline.json; fails if one fell by more than 25 %
	@python -m bench --quick $(ARGS)

bench-opencode: setup ## Measure beside opencode's server, from npm
	@python -m bench.opencode $(ARGS)

# The peers' dependencies never enter .venv.
$(BENCH_VENV)/.installed: bench/requirements.txt
	@if ! cmp -s $< $@; then \
		echo "building $(BENCH_VENV)"; \
		"$(PYTHON)" -m venv --clear $(BENCH_VENV); \
		$(BENCH_VENV)/bin/python -m pip --disable-pip-version-check --quiet install --requirement $<; \
		cp $< $@; \
	fi
	@touch $@

bench-pins: ## Resolve bench/requirements.in anew into the pinned file
	rm -rf build/pins
	"$(PYTHON)" -m venv build/pins
	build/pins/bin/python -m pip --disable-pip-version-check --quiet install --requirement bench/requirements.in
	{ echo "# Exact versions of the peers' environment, from requirements.in by \`make bench-pins\`."; \
	  build/pins/bin/python -m pip --disable-pip-version-check freeze --all --exclude pip --exclude setuptools; } \
	  > bench/requirements.txt

demo: setup ## Import a real session, serve it, mutate its prompt, replay and verify it
	@python -m turnwire.demo $(ARGS)

proto-release: setup ## Write build/turnwire-proto-VERSION.tar.gz: the protos alone
	@python tools/proto_release.py

clean: ## Remove .venv, caches and build results
	rm -rf $(VENV) build python/dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	cd clients/typescript && rm -rf node_modules src/gen dist build
	$(MAKE) -C clients/go clean
	cd clients/opencode-plugin && rm -rf node_modules dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
