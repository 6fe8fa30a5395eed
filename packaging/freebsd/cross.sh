#!/bin/sh
# Builds fwdlab for FreeBSD (amd64) on Linux, for tests in a virtual machine. On FreeBSD itself this
# script is not needed. docs/PACKAGES.md explains how to obtain the two folders.
#
#   packaging/freebsd/cross.sh LIBRARIES HEADERS [ARGUMENTS OF cargo build]
#
# LIBRARIES contains lib and usr/lib of FreeBSD (shared libraries, crt1.o and related files),
# HEADERS the contents of its /usr/include. Needs clang, lld and a compiler with the source of its
# standard library: set RUSTC and CARGO if the first ones in PATH lack it. FREEBSD is the release
# (13.2), CARGO_TARGET_DIR the output folder (target/freebsd).
set -eu
[ $# -ge 2 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
libraries=$(realpath "$1") headers=$(realpath "$2")
shift 2
cd "$(dirname "$0")/../.."

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target/freebsd}"
root=$CARGO_TARGET_DIR/root
rm -rf "$root"
mkdir -p "$root/usr/lib"
ln -s "$libraries/lib" "$root/lib"
ln -s "$headers" "$root/usr/include"
for file in "$libraries"/usr/lib/*; do
    # Symbolic links of FreeBSD may point to /lib, which would be Linux's here.
    case $(readlink "$file") in
    /*) ln -s "$libraries$(readlink "$file")" "$root/usr/lib/" ;;
    *) ln -s "$file" "$root/usr/lib/" ;;
    esac
done
# libc.so is a linker script that also requires a static part, which many systems lack.
[ -e "$libraries/usr/lib/libc_nonshared.a" ] || ln -sf "$root/lib/libc.so.7" "$root/usr/lib/libc.so"

target=x86_64-unknown-freebsd
cross="--target=$target${FREEBSD:-13.2} --sysroot=$root"
export CC_x86_64_unknown_freebsd="${CC:-clang}" AR_x86_64_unknown_freebsd="${AR:-ar}"
export CFLAGS_x86_64_unknown_freebsd="$cross"
export CARGO_TARGET_X86_64_UNKNOWN_FREEBSD_LINKER="${CC:-clang}"
flags=
for flag in $cross -fuse-ld=lld; do flags="$flags -Clink-arg=$flag"; done
export CARGO_TARGET_X86_64_UNKNOWN_FREEBSD_RUSTFLAGS="${flags# }"
# The build includes a standard library for this target, which a stable compiler supports only in
# bootstrap mode.
RUSTC_BOOTSTRAP=1 exec "${CARGO:-cargo}" build --release --locked -p fwdlab --target "$target" \
    -Zbuild-std=std,panic_unwind "$@"
