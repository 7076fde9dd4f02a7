#!/bin/sh
# setup.sh [GROUP]: makes what Weir needs on Debian 12, Debian 13 or Ubuntu 24.04, or does nothing where all is there:
# Debian packages, the virtual environment .venv (scripts/environment.py) and the compiled parts.
#
# GROUP is "run" (what make run needs), "all" (experiments, tests and lint, too), "shell" (p4runtime-shell) or "docs" (the site).
# Every make target that needs the environment begins with this, so that it notices another Python, or headers that came later.
set -eu
cd "$(dirname "$0")/.."
group=${1:-run}
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
python=/usr/bin/python3 # another python3 may come first on PATH and would not see Debian's mininet
environment="$python -I scripts/environment.py"

is_ready() { [ -x "$python" ] && $environment ready "$group"; }

is_ready && exit 0
# Two at once in one folder: the second waits, and finds everything done.
mkdir -p build
exec 9>build/setup.lock
if ! flock -n 9 2>/dev/null; then
  echo "setup: another make sets up this folder; waiting for it"
  flock 9 2>/dev/null || true # a file system without locks
fi
is_ready && exit 0

if ! { [ -x "$python" ] && $environment installed "$group"; }; then
  started=$(date +%s)
  if [ -x "$python" ]; then $environment check; fi
  sh scripts/debian-packages.sh setup python3 python3-venv
  $environment check
  # Mininet's recommended packages (Open vSwitch) are not needed: the switch is ours. libcachesim's wheel needs glib.
  packages="gcc libc6-dev python3-dev mininet iproute2 iputils-ping tcpdump ethtool procps"
  [ "$group" != all ] || packages="$packages libglib2.0-0t64|libglib2.0-0"
  # Both wait for the network and the disk by turns, so they run at the same time.
  $environment make "$group" &
  making=$!
  # shellcheck disable=SC2086 # a list of words
  if ! sh scripts/debian-packages.sh setup $packages; then
    if [ "$(id -u)" = 0 ]; then
      kill "$making" 2>/dev/null || true
      wait "$making" || true
      exit 1
    fi
    echo "setup: going on without them. make run needs mininet, and root; most tests need neither" >&2
  fi
  wait "$making"
fi
case $group in shell | docs) ;; *) $environment compile ;; esac
[ "$group" != all ] || .venv/bin/python -m hostlib.native 2>/dev/null # of the size that tests have; it was said why not
[ "$(id -u)" != 0 ] || chown -R --reference=. build # what root made in somebody's checkout is theirs
[ -z "${started:-}" ] || echo "setup: done in $(($(date +%s) - started)) s"
