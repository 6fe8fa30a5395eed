#!/bin/sh
# For builds-router.toml. Without arguments: builds the router of this checkout once, and links
# it in six orders, into target/layouts. Needs ld.lld.
# As a device: builds-router.sh PROGRAM INGRESS EGRESS RECEIVER-MAC
set -eu

if [ $# -eq 0 ]; then
	mkdir -p target/layouts
	for seed in 1 2 3 4 5 6; do
		cargo rustc --release --locked -p fwdlab --bin fwdlab -- \
			-C link-arg=-fuse-ld=lld -C "link-arg=-Wl,--shuffle-sections=*=$seed"
		cp target/release/fwdlab "target/layouts/$seed"
	done
	exit
fi

exec "$1" route /dev/stdin <<END
routes = ["198.19.0.0/16 via 198.19.0.2"]
[[interface]]
name = "$2"
addresses = ["198.18.0.1/24"]
[[interface]]
name = "$3"
addresses = ["198.19.0.1/24"]
[[neighbour]]
address = "198.19.0.2"
mac = "$4"
END
