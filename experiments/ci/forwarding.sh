#!/bin/sh
# fwdlab as one of the kernel's driver tests (tools/testing/selftests/drivers/net): KTAP on
# standard output, and the exit codes of kselftest, 0 passed, 1 failed, 4 skipped.
#
# Without NETIF the kernel that runs forwards between namespaces, as those tests run on software
# devices. A real device forwards between two links, of which NETIF names one: FWDLAB_LAB then
# names the laboratory's file (`fwdlab lab check` judges it) in which NETIF is a port of the DUT.
# Variables may also stand in net.config beside the script, as for the kernel's own.
#
#   FWDLAB_EXPERIMENT  what is compared; without it generic receive offload, off and on
#   FWDLAB_LAB         laboratory for NETIF
here=$(dirname "$0")
# NAME=value lines; what the environment says wins.
if [ -r "$here/net.config" ]; then
  while IFS='=' read -r name value; do
    case $name in
    NETIF | LOCAL_V4 | LOCAL_V6 | REMOTE_V4 | REMOTE_V6 | REMOTE_TYPE | REMOTE_ARGS | FWDLAB_*)
      eval "said=\${$name-}"
      value=${value#\"}
      [ -n "$said" ] || export "$name=${value%\"}"
      ;;
    esac
  done <"$here/net.config"
fi

skip() {
  printf 'KTAP version 1\n1..1\nok 1 forwarding # SKIP %s\n' "$1"
  printf '# Totals: pass:0 fail:0 xfail:0 xpass:0 skip:1 error:0\n'
  exit 4
}

command -v fwdlab >/dev/null || skip "there is no fwdlab"
set -- "${FWDLAB_EXPERIMENT:-$here/../commands.toml}"
if [ -n "$NETIF" ]; then
  # The one link of REMOTE_V4 is no way through the device.
  [ -n "$FWDLAB_LAB" ] || skip "$NETIF has one link to ${REMOTE_V4:-the remote}: FWDLAB_LAB must name the file of both"
  grep -q "\"$NETIF\"" "$FWDLAB_LAB" || skip "$FWDLAB_LAB has no interface $NETIF"
  set -- "$@" --lab "$FWDLAB_LAB"
fi
out=$(mktemp -d) || skip "no place for the results"
trap 'rm -rf "$out"' EXIT
fwdlab run "$@" --out "$out/results" --quiet --no-report --fail-on worse --format ktap >"$out/ktap"
code=$?
case $code in
# A measurement that can't be trusted says nothing of the device, nor does what lacks.
0 | 1 | 4) cat "$out/ktap" && exit $code ;;
3) skip "the environment lacks something: see standard error" ;;
*) echo "Bail out! fwdlab ended with $code" && exit 1 ;;
esac
