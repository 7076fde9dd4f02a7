#!/bin/sh
# The environment of make blocks, .venv-blocks: torch and transformers on a CPU and LMCache's coder (1.2 GB, once) on
# top of the project's .venv. Apart from .venv, which stays small; smaller than .venv-engines, which has vLLM. Idempotent.
set -eu
cd "$(dirname "$0")/.."

. scripts/other-environment.sh
if is_ready .venv-blocks requirements-blocks.lock; then exit 0; fi
create .venv-blocks /usr/bin/python3
# What .venv has is seen behind what is installed here.
packages=lib/python3.$(.venv-blocks/bin/python -c "import sys; print(sys.version_info.minor)")/site-packages
echo "$PWD/.venv/$packages" >".venv-blocks/$packages/weir-environment.pth"
echo "$PWD" >>".venv-blocks/$packages/weir-environment.pth"
echo "setup-blocks: installing $(grep -c == requirements-blocks.lock) packages of requirements-blocks.lock into .venv-blocks"
if ! .venv-blocks/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
  -r requirements-blocks.lock >.venv-blocks/pip.log 2>&1 ||
  ! .venv-blocks/bin/python -c "import torch, transformers" 2>>.venv-blocks/pip.log; then
  echo "setup-blocks: the packages of requirements-blocks.lock could not be installed:" >&2
  grep -v '^WARNING' .venv-blocks/pip.log | tail -n 5 >&2
  exit 1
fi
mark_ready .venv-blocks requirements-blocks.lock
