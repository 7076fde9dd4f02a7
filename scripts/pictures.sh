#!/bin/sh
# pictures.sh [PAGE]: docs/pictures/report.png from results/run/report.html, or another page of a `make run` that
# kept up; or docs/pictures/purchases.png from the page of a `make study`. Needs Debian's chromium, as make test-slow
# does, which installs it.
set -eu
cd "$(dirname "$0")/.."
page=${1:-results/run/report.html}
[ -f "$page" ] || { echo "pictures: there is no $page; make run leaves it" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Headless, the browser draws the top of a page only; so the part that is wanted becomes the top of a copy.
sed '$ s|</body>|<script>addEventListener("load", () => {\
  let first = document.getElementById(new URLSearchParams(location.search).get("from"));\
  while (first \&\& first.parentElement !== document.body) first = first.parentElement;\
  while (first \&\& first.previousElementSibling) first.previousElementSibling.remove();\
});</script></body>|' "$page" >"$work/page.html"

picture() { # NAME WIDTH HEIGHT QUERY
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
    --virtual-time-budget=10000 --window-size="$2,$3" --screenshot="docs/pictures/$1.png" \
    "file://$work/page.html?$4" 2>/dev/null
}
if grep -q '<title>When does a pool in the switch pay?</title>' "$page"; then
  picture purchases 1100 860 'from=plot1'
else
  grep -q 'The machine kept up' "$page" || { echo "pictures: the machine did not keep up in $page" >&2; exit 1; }
  picture report 1100 1370 ''
fi
