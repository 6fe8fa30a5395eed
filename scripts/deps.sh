#!/bin/sh
# Installs the programs that builds and tests need: scripts/deps.sh LEVEL...
#
# A level is a word in the third column below, `test` for all levels of `make test`, or `ci` for
# everything. As root on Debian, the script installs missing programs with apt-get and prints each
# command. Otherwise it lists missing programs with their packages; tests that need them are
# skipped. Exits with 1 only if nothing can be built, or, with FWDLAB_CI=1, if anything is missing.
set -u
cd "$(dirname "$0")/.." || exit 1

# Columns: program, or a path if it is not in the search path; packages, either all of them (a,b) or
# the first that apt knows (a|b); levels. `venv:NAME` is a Python environment in target/NAME with
# the package of that name.
needed() {
    cat <<'LIST'
cargo               -                       build demo unit cli netns clients lab vm
cc                  gcc,libc6-dev           build demo unit cli netns clients lab vm
git                 git                     unit
cpio                cpio                    unit vm
xz                  xz-utils                unit vm
gzip                gzip                    unit
lz4                 lz4                     unit vm
zstd                zstd                    unit vm
strip               binutils                unit lab
rpmbuild            rpm                     unit
python3             python3                 unit cli lab
chromium            chromium                unit cli
dash                dash                    unit
bash                bash                    unit
ksh                 ksh|ksh93u+m|mksh       unit
zsh                 zsh                     unit
csh                 csh|tcsh                unit
tcsh                tcsh                    unit
fish                fish                    unit
busybox             busybox-static|busybox  unit vm
qemu-system-x86_64  qemu-system-x86         unit vm
qemu-img            qemu-utils              vm
depmod              kmod                    vm
mount               mount                   lab
kill                procps                  unit cli netns clients lab vm
ip                  iproute2                demo unit cli netns clients lab vm
nft                 nftables                demo cli netns lab vm
ethtool             ethtool                 demo cli netns clients lab vm
perf                linux-perf|linux-tools-generic  demo cli netns lab
iptables            iptables                cli netns lab
curl                curl                    cli netns
jq                  jq                      cli
dpdk-testpmd        dpdk-dev                cli netns lab
ovs-vswitchd        openvswitch-switch      cli
slurmctld           slurmctld               cli
slurmd              slurmd                  cli
sbatch              slurm-client            cli
munged              munge                   cli
venv:duckdb         python3-venv            cli
venv:snappi         python3-venv            cli
ping                iputils-ping            clients
arping              iputils-arping          clients
traceroute          traceroute              clients
conntrack           conntrack               clients
hping3              hping3                  clients
iperf3              iperf3                  clients
tcpdump             tcpdump                 clients
/usr/lib/frr/zebra  frr                     clients
ssh                 openssh-client          unit cli lab vm
sshd                openssh-server          lab vm
venv:labgrid        python3-venv            lab
venv:typos          python3-venv            lint ci
clang               clang                   ci
llvm-strip          llvm                    ci
/usr/include/bpf/bpf_helpers.h  libbpf-dev,linux-libc-dev  ci
mmdebstrap          mmdebstrap              ci
LIST
}

levels=
for level in "$@"; do
    case $level in
        test) levels="$levels unit cli netns clients lab vm" ;;
        ci) levels="$levels unit cli netns clients lab vm ci" ;;
        *) levels="$levels $level" ;;
    esac
done

# Prints the rows of the list for the requested levels.
rows() {
    needed | while read -r program packages of; do
        for level in $levels; do
            case " $of " in
                *" $level "*)
                    echo "$program $packages"
                    break
                    ;;
            esac
        done
    done
}

# Debian installs daemons outside the search path of ordinary users.
PATH=$PATH:/usr/sbin:/sbin

is_here() {
    case $1 in
        venv:*) [ -x "target/${1#venv:}/bin/python" ] && [ -e "target/${1#venv:}/complete" ] ;;
        */*) [ -e "$1" ] ;;
        *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing() {
    rows | while read -r program packages; do
        is_here "$program" || echo "$program $packages"
    done
}

is_known() {
    apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'
}

# Prints the packages of a row by their names in this release; reports unknown ones.
known() {
    for package in $(echo "$1" | tr , ' '); do
        found=
        for name in $(echo "$package" | tr '|' ' '); do
            if is_known "$name"; then
                found=$name
                break
            fi
        done
        if [ -n "$found" ]; then
            echo "$found"
        else
            echo "apt knows no package $package" >&2
        fi
    done
}

apt() {
    echo "+ apt-get $*"
    apt-get "$@" </dev/null
}

install_packages() {
    install_list=$(missing | while read -r program packages; do
        case $program in
            cargo) ;;
            venv:*) python3 -c 'import ensurepip' 2>/dev/null || known "$packages" ;;
            *) known "$packages" ;;
        esac
    done | sort -u | tr '\n' ' ')
    [ -n "$install_list" ] || return 0
    # shellcheck disable=SC2086
    apt install -q -y --no-install-recommends $install_list && return 0
    # Install the packages one by one, so that a failing one does not block the others.
    for package in $install_list; do
        apt install -q -y --no-install-recommends "$package"
    done
}

make_environments() {
    missing | sed -n 's/^venv:\([^ ]*\) .*/\1/p' | while read -r name; do
        echo "+ python3 -m venv target/$name && target/$name/bin/pip install --quiet $name"
        python3 -m venv "target/$name" &&
            "target/$name/bin/pip" install --quiet "$name" &&
            touch "target/$name/complete"
    done
}

if missing | grep -q -v '^cargo '; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        export DEBIAN_FRONTEND=noninteractive
        apt update -q
        install_packages
    fi
    if python3 -c 'import ensurepip' 2>/dev/null; then make_environments; fi
fi

status=0
still_missing=$(missing)
if [ -n "$still_missing" ]; then
    echo "$still_missing" | while read -r program packages; do
        case $program in
            cargo) echo "missing: cargo. Install Rust 1.95 or newer with rustup." ;;
            venv:*) echo "missing: target/${program#venv:}, the Python package of that name" \
                "(Debian: $packages)" ;;
            *) echo "missing: $program (Debian: $packages)" ;;
        esac
    done >&2
    if echo "$still_missing" | grep -q -E '^(cargo|cc) '; then status=1; fi
    [ "${FWDLAB_CI:-}" != 1 ] || status=1
fi
exit $status
