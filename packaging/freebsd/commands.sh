#!/bin/sh
# Runs the commands that must behave the same on every Unix. Run it on two systems in folders of the
# same name, then compare the folders OUT (`diff -r`). docs/PACKAGES.md lists the results.
#
#   commands.sh FWDLAB DATA OUT
#
# DATA contains archive/ (sets of the netbenches archive), sim/ (the output of `fwdlab run
# experiments/sim.toml` on Linux) and experiments/. Each command's standard output goes to
# OUT/NAME.out and its standard error to OUT/NAME.err, with the exit code on the last line.
set -u
[ $# -eq 3 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0" >&2; exit 2; }
program=$(realpath "$1") data=$(realpath "$2")
mkdir -p "$3" && out=$(realpath "$3") && cd "$data" || exit 2
export TZ=UTC LC_ALL=C COLUMNS=100

record() {
    name=$1
    shift
    "$program" "$@" >"$out/$name.out" 2>"$out/$name.err"
    echo "exit $?" >>"$out/$name.err"
}

printf '%s\n' 101.3 99.8 100.4 102.1 98.7 100.9 >"$out/before.pps"
printf '%s\n' 104.9 103.2 105.5 104.1 103.3 106.0 >"$out/after.pps"
printf '%s\n' 99.1 100.2 101.7 100.8 99.9 100.6 >"$out/again.pps"
printf 'a;b;c 60\na;b;d 25\na;e 15\n' >"$out/before.folded"
printf 'a;b;c 30\na;b;d 50\na;f 20\n' >"$out/after.folded"

record version --version
record help --help
record schema schema
for shell in bash fish zsh; do record completions-$shell completions $shell; done
record man man "$out/man"
for question in tunable commands firewall queues frame-size rate latency router kernels laboratory; do
    record new-$question new $question -
done

# Files of numbers.
for generation in fbsd10 fbsd11.0 fbsd12 fbsd14 fbsd15; do
    record ministat-$generation ministat --generation $generation -s -w 72 "$out/before.pps" "$out/after.pps" "$out/again.pps"
done
for form in text markdown html csv mail ktap json; do
    record compare-$form compare "$out/before.pps" "$out/after.pps" "$out/again.pps" --verbose --format $form
done
record compare-blocked compare "$out/before.pps" "$out/after.pps" --blocked --fail-on different
record compare-bisect compare "$out/after.pps" "$out/before.pps" --bisect
record compare-absent compare "$out/before.pps" "$out/no-such-file"

# Plans, and settings that need Linux.
for file in experiments/*.toml; do
    record plan-"$(basename "$file" .toml)" plan "$file"
done
record plan-json plan experiments/sim.toml --order --json
record plan-history plan experiments/sim.toml --history sim
record plan-bad plan experiments/sim.toml --set trial.duration=never

# The archive.
record import import archive --out "$out/stores" --jobs 2 --list
record import-json import archive --out "$out/steady" --rule steady --json
record import-lab import-lab archive/004*/machine/bench-lab-3nodes.equilibrium.config --configs archive/004*/configs --out "$out/lab"
record show-archive show "$out/stores" --full
record show-json show "$out/stores/002-firewalls-fbsd13.D27401" --json
record history history "$out/stores" --all --out "$out/history"
record compare-archive compare "$out"/stores/003*/*/run.sqlite
record report-archive report "$out/stores" --pictures
record export export "$out/stores" --parquet "$out/tables"
set -- archive/002*/results/*/*.svg
record profile-svg profile "$1" "$2"
record profile-gprof profile archive/004*/results/*/pmcstat-gprof-295802.txt --by subsystem

# Results of a Linux machine.
rm -rf "$out/sim" && cp -R sim "$out/sim"
for form in text markdown html csv mail ktap json; do record show-$form show "$out/sim" --verbose --format $form; done
record compare-sim compare "$out/sim" --fail-on worse
record report-sim report "$out/sim"
record history-sim history "$out/sim" --all --json
record export-sim export "$out/sim" --parquet "$out/sim-tables" --json

# Profiles.
record profile profile "$out/before.folded" "$out/after.folded" --packets 1000 --packets-other 900
record profile-json profile "$out/before.folded" --function b --json
record flamegraph flamegraph "$out/before.folded" "$out/after.folded" --title both --out "$out/both.svg"
