#!/bin/sh
# Makes the virtual environment .venv-shell, which has p4runtime-shell and nothing else (requirements-shell.in
# says why it is apart).
set -eu
cd "$(dirname "$0")/.."

[ -x .venv-shell/bin/python ] || /usr/bin/python3 -m venv .venv-shell
echo "setup: installing p4runtime-shell into .venv-shell"
.venv-shell/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-shell.lock
touch .venv-shell/.ready
