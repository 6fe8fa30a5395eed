//! A FreeBSD as the DUT of a laboratory: Linux's kernel forwards, and small scripts replace
//! FreeBSD's programs with the same output (ifconfig(8), netstat(1), route(8), arp(8), ndp(8),
//! sysctl(8), pfctl(8), vmstat(8)). It boots with its own `/boot/loader.conf.local`, `/etc/rc.conf`
//! and `/etc/sysctl.conf`.
//!
//! Features that neither the archive's trees nor the tests use are missing.

use crate::program::run;
use crate::rack::Rack;
use std::collections::BTreeMap;
use std::fs;

/// All programs in one script, selected by name. `AT` is the laboratory's directory, `TOOLS` the
/// path of this machine's programs.
const PROGRAMS: &str = r#"#!/bin/sh
own=${0##*/} state=/run/freebsd
[ -n "$BOOTING" ] || printf '%s\n' "$own $*" >>AT/commands
PATH=TOOLS

sysctl_() {
    case $1 in
    -n) shift
        for name; do
            case $name in
            kern.cp_times) awk '/^cpu[0-9]/ { printf "%s %s %s %s %s ", $2, $3, $4, $7 + $8, $5 } END { print "" }' /proc/stat ;;
            *) cat "$state/$name" 2>/dev/null || { echo "sysctl: unknown oid '$name'" >&2; return 1; } ;;
            esac
        done ;;
    *) for pair; do
            name=${pair%%=*} value=${pair#*=}
            [ -e "$state/$name" ] || { echo "sysctl: unknown oid '$name'" >&2; return 1; }
            echo "$name: $(cat "$state/$name") -> $value"
            echo "$value" >"$state/$name"
            case $name in
            net.inet.ip.forwarding) echo "$value" >/proc/sys/net/ipv4/ip_forward ;;
            net.inet6.ip6.forwarding) echo "$value" >/proc/sys/net/ipv6/conf/all/forwarding ;;
            esac
        done ;;
    esac
}

ifconfig_() {
    [ "$1" != -a ] || { for each in /sys/class/net/*; do ifconfig_ "${each##*/}" || return; done; return; }
    [ "$1" = -m ] && { shift; all=yes; }
    name=$1; shift
    [ -d "/sys/class/net/$name" ] || { echo "ifconfig: interface $name does not exist" >&2; return 1; }
    if [ $# = 0 ]; then
        up=; [ "$(cat "/sys/class/net/$name/carrier" 2>/dev/null)" = 1 ] && up=UP,
        echo "$name: flags=8843<${up}BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500"
        printf '\toptions=ec07bb<RXCSUM,TXCSUM%s>\n' "$(tr -d '\n' <"$state/$name.options")"
        [ -z "$all" ] || printf '\tcapabilities=ecc7bb<RXCSUM,TXCSUM,TSO4,TSO6,LRO,VLAN_HWTSO>\n'
        printf '\tether %s\n' "$(cat "/sys/class/net/$name/address")"
        ip -o addr show dev "$name" | while read -r _ _ family address _; do
            length=${address#*/} address=${address%/*}
            case $family in
            inet) printf '\tinet %s netmask 0x%x broadcast 0.0.0.0\n' "$address" $((0xffffffff << (32 - length) & 0xffffffff)) ;;
            inet6) printf '\tinet6 %s prefixlen %s\n' "$address" "$length" ;;
            esac
        done
        printf '\tmedia: Ethernet 40Gbase-LR4 <full-duplex>\n\tstatus: active\n'
        return
    fi
    ip link set "$name" up
    while [ $# -gt 0 ]; do
        case $1 in
        inet) ip addr add "$2" dev "$name" || return; shift ;;
        inet6) [ "$2" = -ifdisabled ] || { ip addr add "$2/$4" dev "$name" nodad || return; shift 2; }; shift ;;
        -tso4 | -tso6 | -lro) grep -v -i "${1#-}" "$state/$name.options" >"$state/new"; mv "$state/new" "$state/$name.options" ;;
        -vlanhwtso) grep -v VLAN_HWTSO "$state/$name.options" >"$state/new"; mv "$state/new" "$state/$name.options" ;;
        up | alias) ;;
        *) echo "ifconfig: $1: bad value" >&2; return 1 ;;
        esac
        shift
    done
}

route_() {
    while :; do case $1 in -n | -q) shift ;; *) break ;; esac; done
    verb=${1%ete}; shift
    case $1 in -net) to=$2; shift 2 ;; *) [ "$1" = -inet6 ] && shift; to=$1/$3; shift 3 ;; esac
    ip route "$verb" "$to" ${1:+via "$1"}
}

neighbour_() {
    device=$(ip -o route get "$2" | sed 's/.* dev \([^ ]*\) .*/\1/')
    ip neigh replace "$2" lladdr "$3" nud permanent dev "$device"
}

netstat_() {
    case "$*" in
    -rnW)
        printf 'Routing tables\n\nInternet:\nDestination        Gateway            Flags       Use    Mtu      Netif Expire\n'
        { ip route; ip -6 route; } | sed -n 's/^\([^ ]*\) via \([^ ]*\) dev \([^ ]*\).*/\1 \2 UGS 0 1500 \3/p' ;;
    "-I "*)
        set -- "$2"
        count() { cat "/sys/class/net/$name/statistics/$1"; }
        name=$1
        echo "Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop"
        echo "$name 1500 <Link#1> $(cat "/sys/class/net/$name/address") $(count rx_packets) 0 $(count rx_dropped) 0 $(count tx_packets) 0 0 0 $(count tx_dropped)" ;;
    "-s -p ip")
        printf 'ip:\n'
        awk '/^Ip:/ { if (n) for (i = 2; i <= NF; i++) value[key[i]] = $i; else for (i = 2; i <= NF; i++) key[i] = $i; n = 1 }
            END { print "\t" value["InReceives"] " total packets received\n\t" value["ForwDatagrams"] " packets forwarded (0 packets fast forwarded)" }' /proc/net/snmp ;;
    "-s -p ip6")
        printf 'ip6:\n'
        awk '{ value[$1] = $2 } END { print "\t" value["Ip6InReceives"] " total packets received\n\t" value["Ip6OutForwDatagrams"] " packets forwarded" }' /proc/net/snmp6 ;;
    *) echo "netstat: illegal option -- -" >&2; return 1 ;;
    esac
}

boot() {
    mkdir -p $state
    number=$(($(wc -l <AT/boots 2>/dev/null || echo 0) + 1))
    set_() { echo "$2" >"$state/$1"; }
    set_ kern.osreldate 1002000
    set_ kern.boottime "{ sec = $((1789900651 + 300 * number)), usec = 837885 } Sun Sep 20 10:37:31 2026"
    set_ kern.clockrate '{ hz = 1000, tick = 1000, profhz = 8128, stathz = 100 }'
    set_ hw.ncpu "$(getconf _NPROCESSORS_ONLN)"
    for name in net.inet.ip.forwarding net.inet6.ip6.forwarding net.inet.icmp.drop_redirect hw.pci.do_power_nodriver; do set_ $name 0; done
    for name in net.inet.ip.redirect net.inet6.ip6.redirect; do set_ $name 1; done
    for queue in nrxq ntxq; do
        value=$(sed -n "s/^hw.cxgbe.${queue}10g=\"\\(.*\\)\"/\\1/p" /boot/loader.conf.local)
        for port in 0 1; do set_ dev.cxl.$port.$queue "${value:-8}"; done
    done
    for port in 0 1; do
        set_ dev.cxl.$port.pause_settings 3; set_ dev.cxl.$port.%parent t5nex0; set_ dev.cxl.$port.%location port=$port
        printf ',TSO4\n,TSO6\n,LRO\n,VLAN_HWTSO\n' >$state/cxl$port.options
    done
    cp /boot/loader.conf.local $state/kenv
    . /etc/rc.conf
    for name in cxl0 cxl1; do
        eval "ifconfig_ $name \$ifconfig_$name; ifconfig_ $name \$ifconfig_${name}_ipv6"
    done
    [ "$gateway_enable" != YES ] || sysctl_ net.inet.ip.forwarding=1
    [ "$ipv6_gateway_enable" != YES ] || sysctl_ net.inet6.ip6.forwarding=1
    for name in $static_routes; do eval "route_ add \$route_$name"; done
    for name in $ipv6_static_routes; do eval "route_ add -inet6 \$ipv6_route_$name"; done
    for name in $static_arp_pairs; do eval "neighbour_ -S \$static_arp_$name"; done
    for name in $static_ndp_pairs; do eval "neighbour_ -s \$static_ndp_$name"; done
    while read -r line; do case $line in '' | '#'*) ;; *) sysctl_ "$line" ;; esac; done </etc/sysctl.conf
    mkdir AT/boot.$number
    cp /boot/loader.conf.local /etc/rc.conf AT/boot.$number
    { for name in cxl0 cxl1; do ip -o addr show dev $name | sed 's/^[0-9]*: //; s/ valid_lft.*//'; done
        ip route; ip -6 route | grep -v adm0; ip neigh show nud permanent | sort
        grep . $state/net.* $state/dev.*[rt]xq; } >AT/boot.$number/state 2>&1
}

case $own in
boot) boot ;;
uname) case $1 in -s) echo FreeBSD ;; -r) echo 10.2-RELEASE-p2 ;; -m) echo amd64 ;; -v) echo 'FreeBSD 10.2-RELEASE-p2 #0 r287260M: Fri Aug 28 12:43:04 CEST 2015' ;; esac ;;
sysctl) sysctl_ "$@" ;;
ifconfig) ifconfig_ "$@" ;;
route) route_ "$@" ;;
netstat) netstat_ "$@" ;;
arp | ndp)
    case "$own $1" in
    'arp -an') ip -4 neigh show nud permanent | sed 's/\(.*\) dev \(.*\) lladdr \(.*\) PERM.*/? (\1) at \3 on \2 permanent [ethernet]/' ;;
    'ndp -an') ip -6 neigh show nud permanent | sed 's/\(.*\) dev \(.*\) lladdr \(.*\) PERM.*/\1  \3  \2 permanent R/' ;;
    *) neighbour_ "$@" ;;
    esac ;;
kenv) sed -n 's/^\([^#=]*=".*"\)[^"]*$/\1/p' $state/kenv ;;
kldstat) [ -e $state/module."$3" ] || exit 1 ;;
kldload) : >$state/module."$2" ;;
kldunload) rm "$state/module.$1"; [ "$1" != pf ] || rm -f $state/pf ;;
pfctl)
    case "$*" in
    '-s info') [ -e $state/pf ] && echo 'Status: Enabled for 0 days 00:00:10           Debug: Urgent' || echo 'Status: Disabled' ;;
    '-s rules') cat $state/rules ;;
    -f*) grep -E '^(pass|block)' "$2" >$state/rules ;;
    -e) : >$state/pf ;;
    -d) rm $state/pf ;;
    esac ;;
vmstat) printf 'interrupt                          total       rate\nirq284: t5nex0:0a0                608689        474\nirq294: t5nex0:1a0                608689        474\nTotal                            1217378        948\n' ;;
shutdown) exec AT/dut.bin/reboot ;;
esac
"#;

const NAMES: [&str; 16] = [
    "boot",
    "kenv",
    "uname",
    "sysctl",
    "ifconfig",
    "route",
    "netstat",
    "arp",
    "ndp",
    "kldstat",
    "kldload",
    "kldunload",
    "pfctl",
    "vmstat",
    "shutdown",
    "cpuset",
];

/// Turns the DUT of the laboratory into a FreeBSD with these files, with the interfaces, MACs and
/// addresses of the archive's first laboratory.
pub(crate) fn install(rack: &Rack, files: &BTreeMap<&str, String>) {
    let path = std::env::var("PATH").unwrap_or_default();
    let at = rack.at("");
    let at = at.trim_end_matches('/');
    let tools = format!("{path}:/usr/sbin:/sbin");
    let programs = PROGRAMS.replace("AT/", &format!("{at}/")).replace("TOOLS", &tools);
    for name in NAMES {
        rack.write_program(&format!("dut.bin/{name}"), &programs);
    }
    run(&["cp", "-a", "/etc", &rack.at("dut.etc")]);
    for folder in ["dut.boot.d", "dut.var/db", "dut.var/lib", "dut.var/tmp"] {
        fs::create_dir_all(rack.path(folder)).expect("a directory");
    }
    std::os::unix::fs::symlink("/run", rack.path("dut.var/run")).expect("a link");
    for (name, text) in files {
        rack.write(name, text);
    }
    // The archive's interfaces.
    for (host, script) in [
        ("dut", "ip link set in0 down; ip link set in0 name cxl0 address 00:07:43:2e:e4:70"),
        ("dut", "ip link set out0 down; ip link set out0 name cxl1 address 00:07:43:2e:e4:78"),
        ("sender", "ip link set gen0 down; ip link set gen0 address 00:07:43:2e:e5:92 up"),
        ("receiver", "ip link set cnt0 down; ip link set cnt0 address 00:07:43:2e:e5:9a up"),
    ] {
        rack.on(host, script);
    }
    let down = fs::read_to_string(rack.path("down.sh")).expect("a script");
    let down = down.replace("in0", "cxl0").replace("out0", "cxl1");
    rack.write("down.sh", &format!("PATH={tools}\n{down}"));
    let more = format!(
        "mount --bind {at}/dut.etc /etc && mount --bind {at}/dut.boot.d /boot && mount --bind \
         {at}/dut.var /var || exit 1\nBOOTING=yes {at}/dut.bin/boot >{at}/boot.out 2>&1\n"
    );
    rack.write("dut.boot", &rack.boot_script("dut", &more));
    rack.switch_off("dut");
    rack.boot("dut");
    let mut lab = rack.lab("system = \"freebsd\"").replace("in0", "cxl0").replace("out0", "cxl1");
    for (interface, addresses) in [
        ("gen0", "\"198.18.0.108/24\", \"2001:2::108/64\""),
        ("cxl0\"\nside = \"sender", "\"198.18.0.10/24\", \"2001:2::10/64\""),
        ("cxl1\"\nside = \"receiver", "\"198.19.0.10/24\", \"2001:2:0:8000::10/64\""),
        ("cnt0", "\"198.19.0.108/24\", \"2001:2:0:8000::108/64\""),
    ] {
        let line = format!("name = \"{interface}\"\n");
        lab = lab.replace(&line, &format!("{line}addresses = [{addresses}]\n"));
    }
    rack.write("lab.toml", &lab);
}

/// Command lines that the DUT received by ssh, selected by prefix.
pub(crate) fn received(rack: &Rack, beginning: &str) -> Vec<String> {
    let all = fs::read_to_string(rack.path("commands")).unwrap_or_default();
    all.lines().filter(|line| line.starts_with(beginning)).map(str::to_owned).collect()
}
