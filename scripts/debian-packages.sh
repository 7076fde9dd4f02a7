#!/bin/sh
# debian-packages.sh NAME PACKAGE...: installs those of the Debian packages that are missing; NAME says for whom.
set -eu
name=$1
shift

missing=""
for package in "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
  echo "$name: these Debian packages are missing and need root to install:$missing" >&2
  exit 1
fi
echo "$name: installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
