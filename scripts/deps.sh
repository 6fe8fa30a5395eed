#!/bin/sh
# Looks for the programs named as arguments. What is missing is installed where
# that can be done without asking (root, apt-get), and named elsewhere. Ends with
# 1 only when nothing can be built; without the rest fwdlab falls back to its
# simulated device and tests are skipped, both aloud.
set -u

# The Debian package of a program; cargo has none that is new enough.
package_of() {
    case $1 in
        cc) echo gcc libc6-dev ;;
        ip) echo iproute2 ;;
        nft) echo nftables ;;
        perf)
            # One unknown name, and apt-get installs none of the others.
            grep -qs "^ID=ubuntu" /etc/os-release && echo linux-tools-generic || echo linux-perf
            ;;
        cargo) ;;
        *) echo "$1" ;;
    esac
}

is_here() { command -v "$1" >/dev/null 2>&1; }

packages=
for program in "$@"; do
    is_here "$program" || packages="$packages $(package_of "$program")"
done
packages=$(echo $packages)

if [ -n "$packages" ] && [ "$(id -u)" = 0 ] && is_here apt-get; then
    export DEBIAN_FRONTEND=noninteractive
    for command in "update -q" "install -q -y --no-install-recommends $packages"; do
        echo "+ apt-get $command"
        apt-get $command </dev/null
    done
fi

status=0
for program in "$@"; do
    is_here "$program" && continue
    case $program in
        cargo) echo "missing: cargo. Install Rust 1.95 or newer with rustup." ;;
        *) echo "missing: $program. Install it: apt-get install $(package_of "$program")" ;;
    esac >&2
    case $program in
        cargo | cc) status=1 ;;
    esac
done
exit $status
