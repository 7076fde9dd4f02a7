# Weir: `make` alone prints help. Variables given to make (make run REQUESTS=200) reach the
# programs through the environment; each program's --help has their meaning and defaults.

PYTHON := .venv/bin/python
READY := .venv/.ready
# libcachesim makes a folder for data sets wherever it is imported; not in the user's home, then.
export LCS_HUB_CACHE ?= $(CURDIR)/build/libcachesim

.DEFAULT_GOAL := help
.PHONY: help setup run topo shell policies tiers incast validate study bench-switch bench-hosts stf test test-bmv2 fuzz check lint format clean distclean lock

help: ## print this help
	@echo "Weir: a switch that holds a pool of LLM KV cache. As root on Debian 12:"
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Variables of run, topo and incast: TOPO=star|leafspine|tree|fattree ENGINE=embedded|bmv2 SCALE SEED"
	@echo "  LEAVES SPINES PODS PLACEMENT   e.g.  make topo TOPO=leafspine LEAVES=2"
	@echo "Of run and topo: TRACE=file.jsonl REQUESTS START SPEED HOSTS STORES SCHEDULER POLICY POOL_BLOCKS"
	@echo "  EVICTION TIERS GATE PUSH       e.g.  make run HOSTS=4 POLICY=lru SEED=7"
	@echo "Of incast: NODES PATTERNS MODES BLOCKS BURSTS QUICK"
	@echo "                                 e.g.  make incast NODES=1,16 MODES=none,both PATTERNS=same"
	@echo "Each program explains its own:  .venv/bin/python -m experiments.run --help"

$(READY): requirements.lock pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh

setup: $(READY) ## install what is missing: Debian packages, virtual environment, pinned packages

run: $(READY) ## play a trace on a Mininet star without and with the pool; the table at the end compares
	@$(PYTHON) -m experiments.run

topo: $(READY) ## start a topology with switch and controller, and give Mininet's CLI
	@$(PYTHON) -m experiments.run.topo

shell: $(READY) ## p4runtime-shell on a running switch (ADDRESS, DEVICE_ID)
	@$(PYTHON) -m experiments.run.shell

policies: $(READY) ## replay a trace through all admission and eviction policies (TRACE, BLOCKS)
	@$(PYTHON) -m experiments.policies

tiers: $(READY) ## replay a trace through the whole hierarchy: tier rules, gate, prefetch (TRACE, TIERS, GATE)
	@$(PYTHON) -m experiments.tiers

incast: $(READY) ## many nodes ask one store for the same blocks: merging, pool, push (TOPO, QUICK)
	@$(PYTHON) -m experiments.incast

validate: $(READY) ## the simulator against the emulator and the literature
	@$(PYTHON) -m experiments.validate

study: $(READY) ## when does the pool pay? sweeps and an HTML report (QUICK, SCHEDULER)
	@$(PYTHON) -m experiments.study

bench-switch: $(READY) ## packets per second of the switch, against a bare echo and BMv2 where present
	@$(PYTHON) -m experiments.bench_switch

bench-hosts: $(READY) ## CPU and latency per block of client and storage node
	@$(PYTHON) -m hostlib.bench

stf: $(READY) ## run STF conformance tests below DIR
	@$(PYTHON) -m v1model.stf $(DIR)

test: $(READY) ## every test that this machine can run
	@$(PYTHON) -m pytest -n 2 --dist loadgroup tests

test-bmv2: $(READY) ## the conformance and differential tests against BMv2 (p4c-bm2-ss, simple_switch_grpc on PATH)
	@$(PYTHON) -m pytest -m bmv2 tests

fuzz: $(READY) ## a million hostile packets through the switch, built with ASan and UBSan (PACKETS)
	@$(PYTHON) -m v1model.fuzz

lint: $(READY)
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

format: $(READY) ## format the Python code
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

check: lint test ## lint, types and tests: what CI runs

lock: $(READY) ## renew requirements.lock from pyproject.toml
	@.venv/bin/pip-compile -q --extra dev --generate-hashes --strip-extras --allow-unsafe \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host -o requirements.lock pyproject.toml

clean: ## end what a crashed run left: namespaces, interfaces, processes; remove results and caches
	@sh scripts/clean.sh
	@rm -rf results .pytest_cache .mypy_cache .ruff_cache build *.egg-info

distclean: clean ## also remove the virtual environment
	@rm -rf .venv
