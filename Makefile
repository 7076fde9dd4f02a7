# Weir: `make` alone prints help. Variables of make's command line (make run REQUESTS=200) reach the programs as
# WEIR_REQUESTS; the environment's own REQUESTS does not. docs/reference.md has all of them.

PYTHON := .venv/bin/python
# What `weir` is to those who came by pip.
WEIR := $(PYTHON) -m experiments
# What make run needs; and what experiments, tests and lint need besides.
READY := setup
READY_ALL := setup-all
SHELL_READY := setup-shell
# libcachesim makes a folder for data sets wherever it is imported; not in the user's home, then.
export LCS_HUB_CACHE ?= $(CURDIR)/build/libcachesim
# `su` leaves these out, and Mininet, tc and ethtool are there.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

FIRST := run topo incast policies study test check clean setup help-all

# What the command line says, for the check and for the programs.
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
EMPTY := $(firstword $(foreach name,$(GIVEN),$(if $($(name)),,$(name))))
$(foreach name,$(GIVEN),$(if $(findstring -,$(name)),,$(eval override export WEIR_$(name) := $$($(name)))))

.DEFAULT_GOAL := help
.PHONY: help help-all checked reference bench setup setup-all setup-shell setup-docs run simulate topo shell policies tiers incast engines kv-conformance blocks test-blocks faults soak intruders simulate-faults compiled validate study claims worth stf testgen corpus test test-slow test-cluster test-bmv2 test-engines fuzz mutate check lint docs format clean distclean lock protos

help: ## the ten targets to begin with
	@echo "Weir: a testbed for caching LLM KV blocks inside a P4 switch. As root, on Debian 12, 13 or Ubuntu 24.04:"
	@echo
	@awk -F ':.*## ' -v first="$(FIRST)" '/^[a-z0-9-]+:.*## / { said[$$1] = $$2 } \
	  END { count = split(first, names, " "); \
	    for (n = 1; n <= count; n++) printf "  make %-10s %s\n", names[n], said[names[n]] }' $(MAKEFILE_LIST)
	@echo
	@echo "For example: make run HOSTS=4 POLICY=lru RUNS=5. All targets and variables: make help-all"

help-all: ## all targets, and the variables of the main ones
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Variables of run, topo and incast: TOPO=star|leafspine|tree|fattree ENGINE=embedded|bmv2 SCALE SEED LIVE=1"
	@echo "  LEAVES SPINES PODS PLACEMENT   e.g.  make topo TOPO=leafspine LEAVES=2"
	@echo "Of run and topo: TRACE=file|folder SESSIONS_PER_HOUR HOURS BLOCK_TOKENS LOOP REQUESTS START SPEED HOSTS STORES SCHEDULER POLICY POOL_BLOCKS"
	@echo "  TTFT_SLO EVICTION TIERS GATE HINTS PUSH JOINING REQUESTS_FIRST RUNS TENANTS SECURE"
	@echo "  METRICS TRACES PCAP SERVERS    e.g.  make run HOSTS=4 POLICY=lru RUNS=5"
	@echo "  MODES: what is compared, of"
	@echo "    no_pool (the switch forwards), merging (it merges), pool (it merges and pools), phantom (a pool that no GET finds)"
	@echo "Of incast: NODES PATTERNS MODES BLOCKS BURSTS QUICK"
	@echo "                                 e.g.  make incast NODES=1,16 MODES=none,both PATTERNS=same"
	@echo "Each program explains its own:  .venv/bin/weir run --help"

# Before anything is installed or compiled: names, numbers and choices. It needs awk alone.
checked: export GOALS = $(MAKECMDGOALS)
checked: export GIVEN := $(GIVEN)
checked: export EMPTY := $(EMPTY)
checked:
	@awk -f scripts/variables.awk commands/variables.tsv $(MAKEFILE_LIST)

setup-shell: | checked
	@sh scripts/setup.sh shell

# Before what a command needs besides is compiled or installed: all that it is told, as it will read it.
told-%: $(READY_ALL)
	@$(PYTHON) -m experiments.check $*

compiled: $(READY_ALL) ## compile the simulator, about a minute and once for each version of it: it runs twice as fast
	@sh scripts/one-at-a-time.sh compile $(PYTHON) -m experiments.simulate.compile

setup: | checked ## install what make run needs: Debian packages, .venv, pinned Python packages
	@sh scripts/setup.sh run

setup-all: | checked ## the same and what experiments, tests and lint need
	@sh scripts/setup.sh all

run: $(READY) ## play a trace on a Mininet star: forwarding, merging, with the pool; the table at the end compares
	@$(WEIR) run

topo: $(READY) ## start a topology with switch and controller, and give Mininet's CLI
	@$(WEIR) topo

simulate: $(READY) ## simulate the scenario of make run, or of a file, at real scale (SCENARIO=file.toml JSON=1)
	@$(WEIR) simulate

shell: $(READY) $(SHELL_READY) ## p4runtime-shell on a running switch (ADDRESS, DEVICE_ID)
	@$(WEIR) shell

policies: $(READY_ALL) ## replay a trace through all admission and eviction policies (TRACE, BLOCKS, POLICIES)
	@$(WEIR) policies

tiers: $(READY_ALL) ## simulate a trace in the whole hierarchy: tier rules, gate, prefetch (TRACE, TIERS, GATE)
	@$(WEIR) tiers

incast: $(READY) ## many nodes ask one storage node for the same blocks: merging, pool, push (TOPO, QUICK)
	@$(WEIR) incast

engines: told-engines ## vLLM on the pool: recomputing, storage nodes, the pool, compared (sets up .venv-engines: 2.5 GB)
	@nice -n 10 sh scripts/one-at-a-time.sh engines sh scripts/setup-engines.sh
	@$(WEIR) engines

kv-conformance: told-kv-conformance ## any KV connector against recomputing: keys, failures, races, bounds (CONNECTORS, CASES, SEED, MINUTES)
	@nice -n 10 sh scripts/one-at-a-time.sh engines sh scripts/setup-engines.sh
	@.venv-engines/bin/python -m engines.conformance

blocks: told-blocks ## KV codecs and chunk reuse on a real transformer, trained once (MODEL=folder, SAMPLES, RECORD; .venv-blocks: 1.3 GB)
	@nice -n 10 sh scripts/one-at-a-time.sh blocks sh scripts/setup-blocks.sh
	@OMP_WAIT_POLICY=PASSIVE .venv-blocks/bin/python -m experiments blocks
	@case "$(RECORD)" in ""|0|no|false|off) $(WEIR) worth --shapes=chat,passages --blocks=300,3000 \
	  --requests=300 --seeds=2 --results=results/blocks/worth ;; esac

faults: $(READY) ## parts of a network killed, stopped, cut off under load: what fails, is wrong, is lost (CASES, TOPOS)
	@$(WEIR) faults

soak: $(READY) ## one network for long, under load and random faults: does anything leak? (MINUTES)
	@$(WEIR) soak

intruders: $(READY) ## one port floods the network while others work: what succeeds, whom it slows down (ATTACKS)
	@$(WEIR) intruders

validate: told-validate compiled ## the simulator against the emulator and the literature
	@$(WEIR) validate

study: told-study compiled ## when does the pool pay? sweeps and an HTML report (QUICK, MINUTES, SWEEPS, POINTS, SCHEDULER)
	@$(WEIR) study

claims: $(READY_ALL) compiled ## what merging and pools are worth where many readers need the same blocks (TRAFFIC, SYSTEMS, TRACE, SEEDS)
	@$(WEIR) claims

simulate-faults: $(READY) ## whole systems in virtual time, with random faults: are all promises kept? (SEEDS, OPERATIONS, SEED, HOURS)
	@$(WEIR) simulate-faults

worth: told-worth compiled ## when is compressing better than a larger pool, and blending than recomputing? (SHAPES, TRACE, BLOCKS, SEEDS)
	@$(WEIR) worth

bench: $(READY) ## measure one part: WHAT=switch, tables, hosts, emulation or values
	@$(WEIR) bench

stf: $(READY) ## run STF conformance tests below DIR (EXTERNS=file.c: the C of their externs)
	@$(WEIR) stf $(DIR) $(if $(EXTERNS),--externs $(EXTERNS))

testgen: $(READY) ## P4Testgen's tests of each v1model program below DIR (p4testgen on PATH)
	@$(WEIR) testgen $(DIR)

corpus: $(READY) ## what the compiler says of every v1model program below DIR
	@$(WEIR) corpus $(DIR)

test: $(READY_ALL) $(SHELL_READY) ## every test that this machine can run
	@$(PYTHON) -m pytest -n 3 --dist loadfile --no-loadscope-reorder -rR --durations=20 tests

test-slow: $(READY_ALL) ## the tests that take long (Prometheus, tshark, a browser, from Debian), and made-up examples by the hundred
	@sh scripts/test-slow-setup.sh
	@HYPOTHESIS_PROFILE=thorough $(PYTHON) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=20 -m "(slow or hypothesis) and not cluster" tests

test-cluster: $(READY_ALL) ## the tests of SERVERS, on two and three servers that they make (root, openssh-server)
	@$(PYTHON) -m pytest -n 0 -m "cluster and not slow" -rs tests/cluster/live

test-bmv2: $(READY_ALL) $(SHELL_READY) ## the conformance and differential tests against BMv2 (p4c-bm2-ss, simple_switch_grpc on PATH)
	@$(PYTHON) -m pytest -m bmv2 tests

test-engines: $(READY_ALL) ## the tests with vLLM, LMCache, SGLang and transformers, in .venv-engines
	@nice -n 10 sh scripts/setup-engines.sh
	@.venv-engines/bin/python -m pytest -W ignore tests/engines/live

test-blocks: $(READY_ALL) ## the tests of make blocks that need torch, transformers or LMCache, in .venv-blocks
	@nice -n 10 sh scripts/setup-blocks.sh
	@.venv-blocks/bin/python -m pytest -n 0 tests/experiments/blocks/live

mutate: $(READY_ALL) ## small changes of what keeps the promises: what share do tests notice? (MUTATIONS, SEED, MODULES, MINUTES)
	@$(WEIR) mutate

fuzz: $(READY_ALL) ## a million hostile packets, requests and texts, with ASan and UBSan (PACKETS, REQUESTS, TEXTS, PROGRAMS)
	@$(WEIR) fuzz

lint: $(READY_ALL)
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache
	@.venv/bin/lint-imports --no-cache --config v1model/pyproject.toml
	@$(PYTHON) scripts/prose.py

docs: setup-docs ## build the site in build/site: every link and anchor checked
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict
	@echo "Written to build/site/index.html"

setup-docs: | checked
	@sh scripts/setup.sh docs

format: $(READY_ALL) ## format the Python code
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

check: lint test ## lint, types and tests: what CI runs

LOCK := .venv/bin/pip-compile -q --generate-hashes --strip-extras --allow-unsafe \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

lock: $(READY_ALL) ## renew the requirements*.lock from pyproject.toml and requirements-*.in
	@$(PYTHON) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w build/wheels ./v1model
	@$(LOCK) --find-links build/wheels --extra experiments --extra dev -o requirements-all.lock pyproject.toml
	@cp requirements-all.lock requirements.lock  # the same versions
	@$(LOCK) --find-links build/wheels --build-deps-for editable -o requirements.lock pyproject.toml
	@sed -i '/^weir-switch==/,/^ *# via/d' requirements.lock requirements-all.lock  # the folder itself is installed
	@# pip-compile leaves out the markers of extras.
	@sed -i -E 's/^(libcachesim|constriction)==([^ ]+) /\1==\2 ; platform_machine == "x86_64" /' requirements-all.lock
	@$(LOCK) -o requirements-shell.lock requirements-shell.in
	@$(LOCK) -o requirements-docs.lock requirements-docs.in

reference: $(READY) ## write docs/reference.md and the table of variables from their declarations
	@$(PYTHON) -m experiments.reference

protos: $(READY_ALL) ## generate the Python modules of v1model/protos/ from the .proto files there
	@sh scripts/protos.sh

clean: ## end what a crashed run left: namespaces, interfaces, processes, captures; remove results and caches
	@sh scripts/clean.sh
	@rm -rf results .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info v1model/build v1model/*.egg-info

distclean: clean ## also remove all that set-up made: the virtual environments
	@rm -rf .venv .venv-docs .venv-shell .venv*.part .venv*.old .venv-blocks .venv-engines
