#!/usr/bin/env bash
# Installs a release of fwdlab and the programs that `fwdlab count` runs: a step of action.yml.
#
#   VERSION     version to install; empty for the version of ACTION_REF
#   ACTION_REF  tag of the action, e.g. v0.1.0
set -euo pipefail

version=${VERSION:-}
if [ -z "$version" ]; then
    case ${ACTION_REF:-} in
    v[0-9]*.[0-9]*.[0-9]*) version=${ACTION_REF#v} ;;
    *)
        echo "::error::the action was called by '${ACTION_REF:-}', which is no release;" \
            "next step: set the input 'version', e.g. 0.1.0"
        exit 2
        ;;
    esac
fi
case $(uname -m) in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*)
    echo "::error::fwdlab has no package for $(uname -m)"
    exit 3
    ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
package=fwdlab_${version}_$architecture.deb
releases=${FWDLAB_RELEASES:-https://github.com/fwdlab/fwdlab/releases/download}
for file in "$package" SHA256SUMS; do
    curl --fail --silent --show-error --location --retry 3 --output "$folder/$file" "$releases/v$version/$file"
done
(cd "$folder" && sha256sum --check --strict --ignore-missing SHA256SUMS)

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update --quiet
"${as_root[@]}" apt-get install --quiet --yes --no-install-recommends \
    busybox-static ethtool gcc iproute2 jq kmod libc6-dev nftables openssh-client openssh-server \
    qemu-system-x86 xz-utils zstd
"${as_root[@]}" dpkg --install "$folder/$package"
fwdlab --version
