#!/bin/sh
# Ends what a crashed run left behind. Namespaces and interfaces go with their last process.
set -eu
cd "$(dirname "$0")/.."
if [ -d /run/weir ] && [ -x .venv/bin/python ]; then
  .venv/bin/python -m topologies.run_records
fi
