#!/bin/sh
# Makes the virtual environment .venv-docs, which builds the site (requirements-docs.in).
set -eu
cd "$(dirname "$0")/.."

[ -x .venv-docs/bin/python ] || /usr/bin/python3 -m venv .venv-docs
echo "setup: installing mkdocs into .venv-docs"
.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
touch .venv-docs/.ready
