#!/bin/sh
# The pictures of results/run/report.html in docs/pictures, by Debian's chromium (make test-slow installs it).
# Run it after a `make run` that kept up.
set -eu
cd "$(dirname "$0")/.."
page=${1:-results/run/report.html}
[ -f "$page" ] || { echo "pictures: there is no $page; make run leaves it" >&2; exit 1; }
grep -q 'The machine kept up' "$page" || { echo "pictures: the machine did not keep up in $page" >&2; exit 1; }
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
picture() { # NAME WIDTH HEIGHT QUERY#PART
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$profile" \
    --virtual-time-budget=10000 --window-size="$2,$3" --screenshot="docs/pictures/$1.png" \
    "file://$(realpath "$page")$4" 2>/dev/null
}
picture report 1100 1290 ''
picture report-requests 1100 560 '?requests-by=fetch#part6'
