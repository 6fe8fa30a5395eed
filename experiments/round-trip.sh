#!/bin/sh
# The round trip of a ping through a router, beside the kernel's own, and what the router takes
# of a CPU when nothing comes. Two hosts and the router in namespaces, on veth pairs; as root.
#
# On a veth pair the kernel forwards, and the other host answers, within the sender's own system
# call: nobody is woken. A router that is a program has to be, on whichever CPU, as a kernel has
# whose NIC interrupts another CPU. "kernel, woken" is that: packets are handed to another CPU
# (RPS). "on one CPU" has hosts and router on the CPU that pings, so that waking is cheap.
#
#   sh experiments/round-trip.sh [PROGRAM]      another fwdlab than target/release/fwdlab
set -eu
program=${1:-target/release/fwdlab}
space=roundtrip-$$
pings=${PINGS:-2000}
times=${TIMES:-3}
router=
answers=$(mktemp)
# The CPU that pings, and the other one, as a mask.
here=0 elsewhere=2

if [ "$(nproc)" -lt 2 ]; then
	echo "one CPU: there is no other one to wake" >&2
	exit 1
fi

clean() {
	[ -z "$router" ] || kill "$router" 2>/dev/null || true
	for n in a r b; do ip netns delete "$space-$n" 2>/dev/null || true; done
	rm -f "$answers" "$answers.router"
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
	ping="taskset -c $here ip netns exec $space-a ping"
	$ping -c 20 -i 0.05 10.2.0.2 >/dev/null || true
	$ping -c "$pings" -i 0.002 10.2.0.2 >"$answers" || true
	sed -n 's/.*time=\([0-9.]*\) ms/\1/p' "$answers" | sort -n |
		awk -v of="$pings" -v name="$1" '{ v[NR] = $1 }
			END { printf "%-28s median %.3f ms, p90 %.3f ms, %d of %d answered\n",
				name, v[int((NR + 1) / 2)], v[int(NR * 0.9)], NR, of }'
}

# CPU time of the router, of one CPU, while nothing comes.
idle() {
	ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$router/stat"; }
	sleep 2
	before=$(ticks); sleep 10; after=$(ticks)
	awk -v name="$1" -v ticks="$((after - before))" -v hz="$(getconf CLK_TCK)" \
		'BEGIN { printf "%-28s idle: %.1f %% of a CPU\n", name, ticks * 100 / 10 / hz }'
}

rps() {
	for name in r0 r1; do
		ip netns exec "$space-r" sh -c "echo $1 >/sys/class/net/$name/queues/rx-0/rps_cpus"
	done
}

kernel() {
	ip -n "$space-r" addr add 10.1.0.1/24 dev r0
	ip -n "$space-r" addr add 10.2.0.1/24 dev r1
	ip netns exec "$space-r" sysctl -qw net.ipv4.ip_forward=1
	measure kernel
	rps $elsewhere
	measure "kernel, woken"
	rps 0
	ip netns exec "$space-r" sysctl -qw net.ipv4.ip_forward=0
	ip -n "$space-r" addr flush dev r0
	ip -n "$space-r" addr flush dev r1
}

# Port, and the CPUs that it may run on.
ours() {
	taskset -c "$2" ip netns exec "$space-r" "$program" route /dev/stdin >"$answers.router" 2>&1 <<END &
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
	if ! kill -0 "$router" 2>/dev/null; then
		cat "$answers.router" >&2
		exit 1
	fi
	measure "fwdlab $1, $3"
	[ "$2" = $here ] || idle "fwdlab $1"
	kill "$router"; wait "$router" || true
	router=
}

i=0
while [ $i -lt "$times" ]; do
	i=$((i + 1))
	kernel
	for port in xsk packet; do
		ours $port 0-$(($(nproc) - 1)) woken
		ours $port $here "on one CPU"
	done
done
