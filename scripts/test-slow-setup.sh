#!/bin/sh
# Installs what only the slow tests need: Debian's browser with its driver, Prometheus, tshark.
set -eu
missing=""
for package in chromium chromium-driver prometheus tshark; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
  echo "test-slow: these Debian packages are missing, and tests that need them are skipped:$missing" >&2
  exit 0
fi
echo "test-slow: installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
