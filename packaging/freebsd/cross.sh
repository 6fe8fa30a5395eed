#!/bin/sh
# Builds fwdlab for FreeBSD (amd64) on Linux, for tries in a virtual machine; FreeBSD itself
# needs none of this. docs/PACKAGES.md says where the two folders come from.
#
#   packaging/freebsd/cross.sh LIBRARIES HEADERS [ARGUMENTS OF cargo build]
#
# LIBRARIES has a FreeBSD's own lib and usr/lib (shared libraries, crt1.o and its kin),
# HEADERS what is /usr/include there. Needs clang, lld and a compiler with its library's
# source: RUSTC and CARGO name them if the first ones in PATH have none. FREEBSD is the
# release (13.2), CARGO_TARGET_DIR where everything goes (target/freebsd).
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
    # Links of a FreeBSD may name /lib, which here would be Linux's.
    case $(readlink "$file") in
    /*) ln -s "$libraries$(readlink "$file")" "$root/usr/lib/" ;;
    *) ln -s "$file" "$root/usr/lib/" ;;
    esac
done
# libc.so is a script of the linker, which also wants a static part that many systems lack.
[ -e "$libraries/usr/lib/libc_nonshared.a" ] || ln -sf "$root/lib/libc.so.7" "$root/usr/lib/libc.so"

target=x86_64-unknown-freebsd
cross="--target=$target${FREEBSD:-13.2} --sysroot=$root"
export CC_x86_64_unknown_freebsd="${CC:-clang}" AR_x86_64_unknown_freebsd="${AR:-ar}"
export CFLAGS_x86_64_unknown_freebsd="$cross"
export CARGO_TARGET_X86_64_UNKNOWN_FREEBSD_LINKER="${CC:-clang}"
flags=
for flag in $cross -fuse-ld=lld; do flags="$flags -Clink-arg=$flag"; done
export CARGO_TARGET_X86_64_UNKNOWN_FREEBSD_RUSTFLAGS="${flags# }"
# A standard library for this target is made on the way, which a released compiler does only
# when told to.
RUSTC_BOOTSTRAP=1 exec "${CARGO:-cargo}" build --release --locked -p fwdlab --target "$target" \
    -Zbuild-std=std,panic_unwind "$@"
