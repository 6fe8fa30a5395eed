#!/usr/bin/env bash
# Counts two kernels and writes the job summary: a step of action.yml.
#
#   BASE, PATCH  kernels
#   FAIL_ON      worse, different or never
#   MARGIN       percent of the instructions of BASE that count as equivalent
#   ARGUMENTS    additional arguments of `fwdlab count`, separated by blanks
#
# Exit codes: 0 passed, 1 FAIL_ON applies, 2 invalid inputs, otherwise the exit code of fwdlab.
set -euo pipefail

mistake() {
    echo "::error::$1"
    exit 2
}
case $FAIL_ON in
worse | different | never) ;;
*) mistake "fail-on is '$FAIL_ON'; next step: write worse, different or never" ;;
esac
[[ $MARGIN =~ ^[0-9]+(\.[0-9]+)?$ ]] || mistake "margin is '$MARGIN'; next step: write percent, e.g. 2"
for kernel in "$BASE" "$PATCH"; do
    [ -e "$kernel" ] || mistake "there is no $kernel; next step: build or download it in an earlier step"
done
# shellcheck disable=SC2153
read -r -a arguments <<<"$ARGUMENTS"

counts=${RUNNER_TEMP:-/tmp}/fwdlab-count.json
fail_on=()
[ "$FAIL_ON" = never ] || fail_on=(--fail-on "$FAIL_ON")
code=0
fwdlab count "$BASE" "$PATCH" "${arguments[@]}" --margin "$MARGIN%" "${fail_on[@]}" --json \
    >"$counts" || code=$?
found=$(jq -r '.comparisons[0].outcome.counted.verdict // empty' "$counts" 2>/dev/null || true)
if [ -z "$found" ]; then
    printf '## Forwarding\n\nNothing was counted: fwdlab ended with exit code %s. The log has the reason.\n' \
        "$code" >>"$GITHUB_STEP_SUMMARY"
    exit "$((code ? code : 3))"
fi

# Format numbers for people: one decimal, with a sign.
# shellcheck disable=SC2016
program='
def rounded: . * 10 | round | . / 10;
def signed: rounded | if . > 0 then "+\(.)" else "\(.)" end;
def name: gsub("\\|"; "\\|");
.kernels as [$base, $patch]
| .comparisons[0].outcome.counted as $found
| (if $found.within_margin or $found.verdict == "equivalent" then "equivalent"
   else {more: "worse", fewer: "better", inconclusive: "inconclusive"}[$found.verdict] end) as $verdict
| $found.functions.differing as $differing
| {$verdict, difference: $found.difference, summary: ([
    "## Forwarding: \($verdict)", "",
    "\($found.difference | signed) instructions per packet (\(10000 * $found.change | round / 100 | if . > 0 then "+\(.)" else "\(.)" end) %), margin \($margin) %: \($found.shown).", "",
    "| kernel | instructions per packet | bursts | packets | lost |",
    "|---|---:|---|---:|---:|",
    ($base, $patch | "| \(.kernel | name) | \(.instructions | rounded) | \(.least | rounded) to \(.most | rounded) | \(.packets) | \(.lost) |"),
    "",
    (if ($differing | length) == 0 then "No function differs by half an instruction per packet and more than it scatters."
     else
       "| function | base | patch | difference |", "|---|---:|---:|---:|",
       ($differing[:25][] | "| `\(.name)` | \(.before | rounded) | \(.after | rounded) | \(.difference | signed) |"),
       (if ($differing | length) > 25 then "", "\(($differing | length) - 25) more functions differ." else empty end)
     end),
    "", "Instructions are not time: caches, branches and contention between CPUs are not in them."
  ] | join("\n"))}'
result=$(jq --argjson margin "$MARGIN" "$program" "$counts")
verdict=$(jq -r .verdict <<<"$result")
jq -r .summary <<<"$result" >>"$GITHUB_STEP_SUMMARY"
{
    echo "verdict=$verdict"
    echo "difference=$(jq -r .difference <<<"$result")"
    echo "json=$counts"
} >>"$GITHUB_OUTPUT"
echo "forwarding: $verdict"
[ $code -ne 1 ] || echo "::error::the patch is $verdict: see the job summary"
exit "$code"
