#!/bin/sh
# The pictures of README.md and docs/TUTORIAL.md, made of real runs.
#
#   docs/images/make.sh [FWDLAB] [DIRECTORY]
#
# Runs that a store in DIRECTORY (results) lacks are measured first: as root, on a machine
# that is left alone, a few minutes. Stores that are there are only reported anew, so the
# pictures follow the looks of reports. Pages are drawn by chromium.
set -eu
cd "$(dirname "$0")/../.."
fwdlab=${1:-target/release/fwdlab}
results=${2:-results}

# Exit code 4: the machine was too busy for a verdict; the pictures say so, too.
measured() {
    test -e "$results/$1/run.sqlite" \
        || "$fwdlab" run "experiments/$1.toml" --out "$results/$1" --quiet >/dev/null \
        || test $? -eq 4
    "$fwdlab" report "$results/$1" >/dev/null
}

# The first lines of a page or drawing: FILE PICTURE WIDTH HEIGHT
drawn() {
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --window-size="$3,$4" --screenshot="$PWD/docs/images/$2" "file://$(realpath "$1")" \
        2>/dev/null
}

measured demo
cp "$results/demo/effects.svg" docs/images/demo.svg
measured tutorial
drawn "$results/tutorial/index.html" tutorial-report.png 900 655
drawn "$results/tutorial/flamegraphs/strict-against-off.svg" tutorial-flames.png 1200 440
