#!/bin/sh
# For builds-kernel.toml: builds the kernel of a tree, and links it twice, into target/layouts.
#
#   sh experiments/builds-kernel.sh TREE NAME
#
# TREE is a tree of Linux with a `.config` that has everything built in that a guest needs (see
# docs/VM.md). NAME-1.bzImage is the kernel as it comes; in NAME-2.bzImage there are 1,544 bytes
# that nothing executes before the code of the network stack, which so lies in other lines of
# the caches. Nothing is changed in the tree's sources, and its next `make` links it as before.
set -eu

tree=$1 name=$2
out=$PWD/target/layouts
mkdir -p "$out"

make -C "$tree" -j "$(nproc)" bzImage
cp "$tree/arch/x86/boot/bzImage" "$out/$name-1.bzImage"

cd "$tree"
trap 'rm -f vmlinux.a fwdlab-padding.o' EXIT
printf '.text\n.skip 1544, 0x90\n.section .note.GNU-stack,"",@progbits\n' | "${CC:-gcc}" -c -x assembler - -o fwdlab-padding.o
members=$(ar t vmlinux.a | awk '/^net\// && !padded { print "fwdlab-padding.o"; padded = 1 } { print }')
rm vmlinux.a
# shellcheck disable=SC2086  # members are words
ar cDPrST vmlinux.a $members
make -j "$(nproc)" bzImage
cp arch/x86/boot/bzImage "$out/$name-2.bzImage"
