#!/bin/sh
# Installs what only the slow tests need: Debian's browser with its driver, Prometheus, tshark.
set -eu
cd "$(dirname "$0")/.."
if ! sh scripts/debian-packages.sh test-slow chromium chromium-driver prometheus tshark; then
  [ "$(id -u)" != 0 ] || exit 1
  echo "test-slow: tests that need them are skipped" >&2
fi
