#!/bin/sh
# The inference engines' own environment, .venv-engines: vLLM on CPU, LMCache, Mooncake (2.5 GB, some minutes, once).
# Apart from the project's, whose p4runtime-shell needs a protobuf that LMCache can't be run with. Idempotent.
set -eu
cd "$(dirname "$0")/.."

. scripts/other-environment.sh
if is_ready .venv-engines requirements-engines.lock; then
  exec .venv-engines/bin/python -m hostlib.native  # for this Python, unless its core is there
fi

# Mooncake's libraries; the rest needs only what make setup installs.
sh scripts/debian-packages.sh setup-engines libibverbs1 libnuma1 "libcurl4t64|libcurl4" \
  liburing2 libnl-3-200 libnl-route-3-200

create .venv-engines "$(command -v python3.11 || command -v python3)"
total=$(grep -c == requirements-engines.lock)
echo "setup-engines: installing $total packages of requirements-engines.lock into .venv-engines"
# --no-deps: the list is complete, and what is left out of it stays out.
if ! .venv-engines/bin/python -m pip install --disable-pip-version-check --no-deps --progress-bar off \
  -r requirements-engines.lock 2>.venv-engines/pip.log |
  awk -v total="$total" '/^(Processing|Collecting|Requirement already)/ { n++ }
    n >= next_at && n { printf "setup-engines: %d of %d found\n", n, total; next_at = n + 25; fflush() }
    /^Installing/ { print "setup-engines: unpacking"; fflush() }' ||
  ! .venv-engines/bin/python -c "import torch, vllm" 2>>.venv-engines/pip.log; then
  echo "setup-engines: the packages of requirements-engines.lock could not be installed:" >&2
  grep -v '^WARNING' .venv-engines/pip.log | tail -n 5 >&2
  exit 1
fi
.venv-engines/bin/python -m hostlib.native
mark_ready .venv-engines requirements-engines.lock
