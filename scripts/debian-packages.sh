#!/bin/sh
# debian-packages.sh NAME PACKAGE...: installs those of the packages that are missing; NAME says for whom.
#
# A package that releases call by different names is given as "NAME|OTHER" (libglib2.0-0t64|libglib2.0-0): it is
# there if one of them is, and the first that this release knows is installed.
set -eu
name=$1
shift

is_installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

missing=""
for names in "$@"; do
  found=""
  for package in $(echo "$names" | tr '|' ' '); do
    if is_installed "$package"; then found=$package; break; fi
  done
  [ -n "$found" ] || missing="$missing $names"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "$name: this system has no apt-get. Install what these Debian packages hold:$missing" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "$name: these Debian packages are missing and need root to install:$missing" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Says why apt failed: in a sentence where the cause is known, else in apt's last words.
failed() { # LOG
  if grep -q 'is not valid yet' "$1"; then
    echo "$name: Debian's index is from the future by this machine's clock ($(date -u '+%F %R') UTC). Set the clock." >&2
  elif grep -qE 'Could not (resolve|connect)|Temporary failure|Connection (refused|timed out)|Failed to fetch' "$1"; then
    echo "$name: Debian's package index was not reached. Check the network, or a proxy in /etc/apt:" >&2
    grep -E '^(E|W|Err)' "$1" | head -n 2 >&2
  else
    echo "$name: apt-get could not install$missing:" >&2
    grep -v '^$' "$1" | tail -n 5 >&2
  fi
  exit 1
}

# The index first: an image without one knows no package. One that was read within the hour will do.
read_at=build/debian-index
if [ -z "$(find $read_at -mmin -60 2>/dev/null)" ]; then
  echo "$name: reading the index of Debian packages"
  apt-get update -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 >"$work/log" 2>&1 || failed "$work/log"
  mkdir -p build
  touch $read_at
fi
wanted=""
for names in $missing; do
  known=""
  for package in $(echo "$names" | tr '|' ' '); do
    if apt-cache show "$package" >/dev/null 2>&1; then known=$package; break; fi
  done
  if [ -z "$known" ]; then
    echo "$name: this release has no package called $names. Weir is tried on Debian 12 and 13 and Ubuntu 24.04" >&2
    exit 1
  fi
  wanted="$wanted $known"
done

echo "$name: installing Debian packages:$wanted"
status="$work/status"
mkfifo "$status"
progress() {
  last="" next_at=0
  while IFS=: read -r phase _ percent _; do
    case $phase in
      dlstatus) phase=fetched ;;
      pmstatus) phase=installed ;;
      *) continue ;;
    esac
    [ "$phase" = "$last" ] || next_at=20
    last=$phase
    if [ "${percent%%.*}" -ge "$next_at" ]; then
      echo "$name: Debian packages: ${percent%%.*} % $phase"
      next_at=$((${percent%%.*} + 20))
    fi
  done
}
progress <"$status" &
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 $wanted \
  >"$work/log" 2>&1 3>"$status" || failed "$work/log"
wait
