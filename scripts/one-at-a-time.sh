#!/bin/sh
# one-at-a-time.sh NAME COMMAND...: runs the command when no other make of this folder runs one of that name.
set -eu
cd "$(dirname "$0")/.."
name=$1
shift
command -v flock >/dev/null || exec "$@"
exec 9>".$name.lock"
if ! flock -n 9; then
  echo "$name: another make is at it in this folder: waiting until it has ended" >&2
  flock 9
fi
exec "$@"
