# Weir: `make` alone prints help. Variables of make's command line (make run REQUESTS=200) reach the programs as
# WEIR_REQUESTS; the environment's own REQUESTS does not. docs/reference.md has all of them.

PYTHON := .venv/bin/python
INSTALLED := .venv/.ready
NATIVE := .venv/.native
READY := $(INSTALLED) $(NATIVE)
SHELL_READY := .venv-shell/.ready
# libcachesim makes a folder for data sets wherever it is imported; not in the user's home, then.
export LCS_HUB_CACHE ?= $(CURDIR)/build/libcachesim

# What the command line says, for the check and for the programs.
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
EMPTY := $(firstword $(foreach name,$(GIVEN),$(if $($(name)),,$(name))))
$(foreach name,$(GIVEN),$(if $(findstring -,$(name)),,$(eval override export WEIR_$(name) := $$($(name)))))

.DEFAULT_GOAL := help
.PHONY: help checked reference bench setup run topo shell policies tiers incast guidelines engines kv-conformance blocks test-blocks faults soak congestion intruders simulate-faults compiled routing validate study claims codecs worth stf corpus test test-slow test-bmv2 test-engines fuzz mutate check lint format clean distclean lock protos

help: ## print this help
	@echo "Weir: a switch that holds a pool of LLM KV cache. As root on Debian 12:"
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Variables of run, topo and incast: TOPO=star|leafspine|tree|fattree ENGINE=embedded|bmv2 SCALE SEED LIVE=1"
	@echo "  LEAVES SPINES PODS PLACEMENT   e.g.  make topo TOPO=leafspine LEAVES=2"
	@echo "Of run and topo: TRACE=file|folder SESSIONS_PER_HOUR HOURS BLOCK_TOKENS LOOP REQUESTS START SPEED HOSTS STORES SCHEDULER POLICY POOL_BLOCKS"
	@echo "  TTFT_SLO EVICTION TIERS GATE HINTS FETCH PUSH JOINING REQUESTS_FIRST MODES RUNS TENANTS SECURE"
	@echo "  METRICS TRACES PCAP            e.g.  make run HOSTS=4 POLICY=lru RUNS=5"
	@echo "Of incast: NODES PATTERNS MODES BLOCKS BURSTS QUICK"
	@echo "                                 e.g.  make incast NODES=1,16 MODES=none,both PATTERNS=same"
	@echo "Each program explains its own:  .venv/bin/python -m experiments.run --help"

# Before anything is installed or compiled: names, numbers and choices. It needs awk alone.
checked: export GOALS = $(MAKECMDGOALS)
checked: export GIVEN := $(GIVEN)
checked: export EMPTY := $(EMPTY)
checked:
	@awk -f scripts/variables.awk commands/variables.tsv $(MAKEFILE_LIST)

$(INSTALLED): requirements.lock pyproject.toml v1model/pyproject.toml scripts/setup.sh | checked
	@sh scripts/setup.sh

$(NATIVE): $(INSTALLED) hostlib/native/build.py $(wildcard hostlib/native/*.[ch] controller/policies/reuse/native/*.[ch])
	@$(PYTHON) -m hostlib.native
	@$(PYTHON) -m controller.policies.reuse.native
	@touch $@

$(SHELL_READY): requirements-shell.lock scripts/shell-setup.sh
	@sh scripts/shell-setup.sh

compiled: $(READY) ## compile the simulator, about a minute and once for each version of it: it runs twice as fast
	@$(PYTHON) -m experiments.simulate.compile

setup: $(READY) ## install what is missing: Debian packages, virtual environment, pinned packages

run: $(READY) ## play a trace on a Mininet star without and with the pool; the table at the end compares
	@$(PYTHON) -m experiments.run

topo: $(READY) ## start a topology with switch and controller, and give Mininet's CLI
	@$(PYTHON) -m experiments.run.topo

shell: $(READY) $(SHELL_READY) ## p4runtime-shell on a running switch (ADDRESS, DEVICE_ID)
	@$(PYTHON) -m experiments.run.shell

policies: $(READY) ## replay a trace through all admission and eviction policies (TRACE, BLOCKS)
	@$(PYTHON) -m experiments.policies

tiers: $(READY) ## simulate a trace in the whole hierarchy: tier rules, gate, prefetch (TRACE, TIERS, GATE)
	@$(PYTHON) -m experiments.tiers

incast: $(READY) ## many nodes ask one store for the same blocks: merging, pool, push (TOPO, QUICK)
	@$(PYTHON) -m experiments.incast

guidelines: $(READY) ## load through segments: batch, request and block size, interleaving, one hot page, engines (NODES)
	@$(PYTHON) -m experiments.guidelines

engines: $(READY) ## vLLM on the pool: recomputing, storage nodes, the pool, compared (sets up .venv-engines: 2.5 GB)
	@nice -n 10 sh scripts/setup-engines.sh
	@$(PYTHON) -m experiments.engines

kv-conformance: $(READY) ## any KV connector against recomputing: keys, failures, races, bounds (CONNECTORS, CASES, SEED, MINUTES)
	@nice -n 10 sh scripts/setup-engines.sh
	@.venv-engines/bin/python -m engines.conformance

blocks: $(READY) ## KV codecs and chunk reuse on a real transformer, trained once (MODEL=folder, SAMPLES, RECORD; .venv-blocks: 1.3 GB)
	@nice -n 10 sh scripts/setup-blocks.sh
	@OMP_WAIT_POLICY=PASSIVE .venv-blocks/bin/python -m experiments.blocks
	@case "$(RECORD)" in ""|0|no|false|off) $(PYTHON) -m experiments.worth --shapes=chat,passages --blocks=300,3000 \
	  --requests=300 --seeds=2 --results=results/blocks/worth ;; esac

faults: $(READY) ## parts of a network killed, stopped, cut off under load: what fails, is wrong, is lost (CASES, TOPOS)
	@$(PYTHON) -m experiments.faults

congestion: $(READY) ## links asked for more than they carry: loss, fairness, throughput (PATTERNS, MODES)
	@$(PYTHON) -m experiments.congestion

soak: $(READY) ## one network for long, under load and random faults: does anything leak? (MINUTES)
	@$(PYTHON) -m experiments.faults.soak

intruders: $(READY) ## one port floods the network while others work: what succeeds, whom it slows down (ATTACKS)
	@$(PYTHON) -m experiments.faults.intruders

routing: $(READY) compiled ## does a pool make the choice of the node unimportant: schedulers with and without it, simulated
	@$(PYTHON) -m experiments.routing

validate: $(READY) compiled ## the simulator against the emulator and the literature
	@$(PYTHON) -m experiments.validate

study: $(READY) compiled ## when does the pool pay? sweeps and an HTML report (QUICK, MINUTES, SWEEPS, POINTS, SCHEDULER)
	@$(PYTHON) -m experiments.study

claims: $(READY) compiled ## what merging and pools are worth where many readers need the same blocks (TRACE, SEEDS, REQUESTS)
	@$(PYTHON) -m experiments.claims

simulate-faults: $(READY) ## whole systems in virtual time, with random faults: are all promises kept? (SEEDS, OPERATIONS, SEED, HOURS)
	@$(PYTHON) -m experiments.simulate_faults

codecs: $(READY) compiled ## is compressing blocks worth a larger pool? replays and simulations by size, codec, link (SHAPES, BLOCKS)
	@$(PYTHON) -m experiments.codecs

worth: $(READY) compiled ## when is compressing better than a larger pool, and blending than recomputing? (SHAPES, TRACE, BLOCKS, SEEDS)
	@$(PYTHON) -m experiments.worth

bench: $(READY) ## measure one part: WHAT=switch, tables, hosts, control, slots, emulation or disturbance
	@$(PYTHON) -m experiments.bench

stf: $(READY) ## run STF conformance tests below DIR (EXTERNS=file.c: the C of their externs)
	@$(PYTHON) -m v1model.stf $(DIR) $(if $(EXTERNS),--externs $(EXTERNS))

corpus: $(READY) ## what the compiler says of every v1model program below DIR
	@$(PYTHON) -m v1model.corpus $(DIR)

test: $(READY) $(SHELL_READY) ## every test that this machine can run
	@$(PYTHON) -m pytest -n 2 --dist loadgroup -rR --durations=20 tests

test-slow: $(READY) ## the tests that take long (Prometheus, tshark, a browser, from Debian), and made-up examples by the hundred
	@sh scripts/test-slow-setup.sh
	@HYPOTHESIS_PROFILE=thorough $(PYTHON) -m pytest -n 2 --dist loadgroup --durations=20 -m "slow or hypothesis" tests

test-bmv2: $(READY) $(SHELL_READY) ## the conformance and differential tests against BMv2 (p4c-bm2-ss, simple_switch_grpc on PATH)
	@$(PYTHON) -m pytest -m bmv2 tests

test-engines: $(READY) ## the tests with vLLM, LMCache, SGLang and transformers, in .venv-engines
	@nice -n 10 sh scripts/setup-engines.sh
	@.venv-engines/bin/python -m pytest -W ignore tests/engines/live

test-blocks: $(READY) ## the tests of make blocks that need torch, transformers or LMCache, in .venv-blocks
	@nice -n 10 sh scripts/setup-blocks.sh
	@.venv-blocks/bin/python -m pytest -n 0 tests/experiments/blocks/live

mutate: $(READY) ## small changes of what keeps the promises: what share do tests notice? (MUTATIONS, SEED, MODULES, MINUTES)
	@$(PYTHON) -m experiments.mutate

fuzz: $(READY) ## a million hostile packets, requests and texts, with ASan and UBSan (PACKETS, REQUESTS, TEXTS, PROGRAMS)
	@$(PYTHON) -m hostlib.tools.fuzz
	@$(PYTHON) -m v1model.fuzz $(PROGRAMS)

lint: $(READY)
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache

format: $(READY) ## format the Python code
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

check: lint test ## lint, types and tests: what CI runs

LOCK := .venv/bin/pip-compile -q --generate-hashes --strip-extras --allow-unsafe \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

lock: $(READY) ## renew the requirements*.lock from pyproject.toml and requirements-shell.in
	@$(PYTHON) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w build/wheels ./v1model
	@$(LOCK) --find-links build/wheels --extra dev -o requirements.lock pyproject.toml
	@sed -i '/^weir-switch==/,/^ *# via/d' requirements.lock  # the folder itself is installed
	@$(LOCK) -o requirements-shell.lock requirements-shell.in

reference: $(READY) ## write docs/reference.md and the table of variables from their declarations
	@$(PYTHON) -m experiments.reference

protos: $(READY) ## generate the Python modules of v1model/protos/ from the .proto files there
	@sh scripts/protos.sh

clean: ## end what a crashed run left: namespaces, interfaces, processes; remove results and caches
	@sh scripts/clean.sh
	@rm -rf results .pytest_cache .mypy_cache .ruff_cache build *.egg-info v1model/build v1model/*.egg-info

distclean: clean ## also remove the virtual environment
	@rm -rf .venv .venv-shell .venv-blocks
