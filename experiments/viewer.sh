#!/bin/sh
# Somebody who looks at the experiment that runs, for experiments/viewer.toml. It is called
# before and after each run, by fwdlab and in the directory in which fwdlab was started:
#
#   viewer.sh nobody             nobody looks
#   viewer.sh watches NAME       a server, and a page that stays open and gets every event
#   viewer.sh clicks NAME        the same, and one who asks for the report again and again
#   viewer.sh says               which of these it is, and that it is really so
#   viewer.sh stop               ends all of it; fails where somebody left before
#
# NAME is the experiment's directory below `results`. Viewers run as a user would start them
# beside the experiment: outside of its namespaces, and on any CPU. Needs root, nsenter, setsid,
# taskset (util-linux) and curl.
set -eu

place=${FWDLAB_VIEWER:-/run/fwdlab-viewer}
fwdlab=${FWDLAB:-$(readlink "/proc/$PPID/exe")}

# Starts a program of its own session, whose process group has the name $1.
start() {
	name=$1
	shift
	nsenter --target "$PPID" --net --mount --wd="$PWD" \
		taskset --cpu-list "0-$(($(nproc --all) - 1))" \
		setsid "$@" >"$place/$name.out" 2>"$place/$name.err" </dev/null &
	echo $! >"$place/$name.pid"
}

# What has ended and nobody has waited for is there no more.
is_there() {
	case $(sed -n 's/^State:[[:space:]]*//p' "/proc/$(cat "$1")/status" 2>/dev/null) in
	'' | Z*) return 1 ;;
	esac
}

# Waits for up to 20 s until a file holds something: the server lets everything else go first.
wait_for() {
	for _ in $(seq 400); do
		[ -s "$1" ] && return
		sleep 0.05
	done
	echo "nothing came within 20 s: $(cat "${1%.out}.err")" >&2
	exit 1
}

# Nobody looks yet.
alone() {
	[ ! -e "$place" ] || {
		echo "a viewer is there already ($place): \`sh $0 stop\` ends it" >&2
		exit 1
	}
}

begin() {
	alone
	mkdir "$place"
	start server "$fwdlab" serve results --listen 127.0.0.1:0
	wait_for "$place/server.out"
	read -r address <"$place/server.out"
	start page curl --silent --show-error --no-buffer "${address}events/$1"
	wait_for "$place/page.out"
}

case ${1:-} in
nobody)
	alone
	;;
watches)
	begin "$2"
	;;
clicks)
	begin "$2"
	# In turns: the report, which is computed for whoever asks, and what stands below it.
	start clicks sh -c "while curl --silent --output /dev/null '${address}store/$2/' '$address'; do sleep 0.2; done"
	;;
says)
	if [ ! -e "$place" ]; then
		echo nobody
		exit
	fi
	for pid in "$place"/*.pid; do
		is_there "$pid" || {
			echo "$(basename "$pid" .pid) has ended"
			exit
		}
	done
	[ -e "$place/clicks.pid" ] && echo clicks || echo watches
	;;
stop)
	[ -e "$place" ] || exit 1
	left=
	for pid in "$place"/*.pid; do
		is_there "$pid" || left="$left $(basename "$pid" .pid)"
		kill -- "-$(cat "$pid")" 2>/dev/null || true
	done
	rm -r "$place"
	if [ -n "$left" ]; then
		echo "ended before the run did:$left" >&2
		exit 1
	fi
	;;
*)
	echo "usage: viewer.sh nobody | watches NAME | clicks NAME | says | stop" >&2
	exit 2
	;;
esac
