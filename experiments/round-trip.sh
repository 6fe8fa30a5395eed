#!/bin/sh
# The round trip of a ping through a router, beside the kernel's own, and what the router takes
# of a CPU when nothing comes. Two hosts and the router in namespaces, on veth pairs; as root.
#
#   sh experiments/round-trip.sh [PROGRAM]      another fwdlab than target/release/fwdlab
set -eu
program=${1:-target/release/fwdlab}
space=roundtrip-$$
pings=${PINGS:-2000}
router=

clean() {
	[ -z "$router" ] || kill "$router" 2>/dev/null || true
	for n in a r b; do ip netns delete "$space-$n" 2>/dev/null || true; done
}
trap clean EXIT
trap 'exit 130' INT TERM

for n in a r b; do ip netns add "$space-$n"; ip -n "$space-$n" link set lo up; done
ip link add a0 netns "$space-a" type veth peer name r0 netns "$space-r"
ip link add b0 netns "$space-b" type veth peer name r1 netns "$space-r"
ip -n "$space-a" addr add 10.1.0.2/24 dev a0
ip -n "$space-b" addr add 10.2.0.2/24 dev b0
for end in a:a0 b:b0 r:r0 r:r1; do ip -n "$space-${end%:*}" link set "${end#*:}" up; done
for end in a:a0 b:b0; do ip netns exec "$space-${end%:*}" ethtool -K "${end#*:}" tx off >/dev/null 2>&1; done
ip -n "$space-a" route add default via 10.1.0.1
ip -n "$space-b" route add default via 10.2.0.1

# Median, 90th percentile, and how many of the pings were answered.
measure() {
	ip netns exec "$space-a" ping -c 20 -i 0.05 10.2.0.2 >/dev/null || true
	ip netns exec "$space-a" ping -c "$pings" -i 0.002 10.2.0.2 |
		sed -n 's/.*time=\([0-9.]*\) ms/\1/p' | sort -n |
		awk -v of="$pings" -v name="$1" '{ v[NR] = $1 }
			END { printf "%-12s median %.3f ms, p90 %.3f ms, %d of %d answered\n",
				name, v[int((NR + 1) / 2)], v[int(NR * 0.9)], NR, of }'
}

# CPU time of the router, of one CPU, while nothing comes.
idle() {
	ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$router/stat"; }
	sleep 2
	before=$(ticks); sleep 10; after=$(ticks)
	echo "$1 idle: $(awk "BEGIN { print ($after - $before) * 100 / 10 / $(getconf CLK_TCK) }") % of a CPU"
}

kernel() {
	ip -n "$space-r" addr add 10.1.0.1/24 dev r0
	ip -n "$space-r" addr add 10.2.0.1/24 dev r1
	ip netns exec "$space-r" sysctl -qw net.ipv4.ip_forward=1
	measure kernel
	ip netns exec "$space-r" sysctl -qw net.ipv4.ip_forward=0
	ip -n "$space-r" addr flush dev r0
	ip -n "$space-r" addr flush dev r1
}

ours() {
	ip netns exec "$space-r" "$program" route --quiet /dev/stdin <<END &
[[interface]]
name = "r0"
port = "$1"
addresses = ["10.1.0.1/24"]
[[interface]]
name = "r1"
port = "$1"
addresses = ["10.2.0.1/24"]
END
	router=$!
	sleep 2
	measure "fwdlab $1"
	idle "fwdlab $1"
	kill "$router"; wait "$router" || true
	router=
}

for time in 1 2 3; do
	kernel
	ours xsk
	ours packet
done
