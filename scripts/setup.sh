#!/bin/sh
# Installs what Weir needs on Debian 12: packages, a virtual environment that sees Debian's
# mininet, and the pinned Python packages. Idempotent; does nothing where all is there.
set -eu
cd "$(dirname "$0")/.."

# mininet's recommended packages (Open vSwitch) are not needed: the switch is ours. libcachesim's wheel
# needs glib.
sh scripts/debian-packages.sh setup gcc libc6-dev python3 python3-dev python3-venv mininet iproute2 iputils-ping tcpdump \
  ethtool procps libglib2.0-0

# Debian's own interpreter: another python3 may come first on PATH and would not see mininet.
if [ ! -x .venv/bin/python ]; then
  echo "setup: creating the virtual environment .venv"
  /usr/bin/python3 -m venv --system-site-packages .venv
fi
echo "setup: installing the Python packages of requirements.lock"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
# setuptools warns of every editable installation. The switch comes last: an older installation of the whole
# project had its programs, and takes them with it when it goes.
for package in . v1model; do
  PYTHONWARNINGS=ignore .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation -e "$package"
done
touch .venv/.ready
