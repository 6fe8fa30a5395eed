//! The device under test: keys of every kind, and keys of the Linux kernel, of fwdlab's own router
//! and of a laboratory's DUT. [`crate::experiment`] checks their combinations.

use super::field::{commands, field, revision, words as line};
use super::{Kind, Owner, Section, integer, key, words};
use crate::settings::{
    DutKind, FibAlgorithm, FirewallProgram, ForwardingPath, Locking, Napi, Nat, Reboot, Rewrites,
    RouterPort, STATES_MAX, StateTable,
};

/// `[dut]`.
pub const DUT: Section = Section {
    path: "dut",
    doc: "The device under test, which forwards the packets.",
    keys: &[
        key(
            "kind",
            words(DutKind::NAMES),
            "\"linux\"",
            "`linux`: forwarding by the Linux kernel; `router`: fwdlab's own software router, a process that forwards in place of the kernel; `freebsd`: forwarding by the FreeBSD kernel, in laboratories and guests; `command`: any program that forwards between two interfaces, started by `start`.",
        )
        .example("\"router\"")
        .restart(field!(word, |s| &mut s.dut.kind)),
        key(
            "routes",
            integer(2, 1_048_576),
            "2",
            "Static routes: at least one to each side, then host routes of the traffic's destinations, then unused routes within 10.192.0.0/10 (/30) or 2001:2:0:c000::/56 (/80).",
        )
        .unit("routes")
        .example("1000")
        .restart(field!(integer, |s| &mut s.dut.routes)),
        key(
            "firewall",
            Kind::Firewall,
            "\"none\"",
            "`none`; `stateless`: accepts the traffic's prefixes, drops all else, keeps no state; `stateful`: connection tracking; `rules:N`: N rules that do not match, then accept; or the path of a ruleset, relative to the experiment file, in the syntax of the firewall program (`nft`, `pf`, ...) or of the router.",
        )
        .example("\"stateful\"")
        .live(field!(firewall, |s| &mut s.dut.firewall)),
        key(
            "nat",
            words(Nat::NAMES),
            "\"none\"",
            "Address translation of forwarded packets; they count as forwarded if they arrive translated and otherwise intact. `source`: the source address becomes the address of the device's egress interface (masquerade, SNAT), from any port that a flow keeps. `destination`: packets are sent to `nat_address`, the destination becomes the receiver's address and port 7 (DNAT, port forwarding), and the source stays. `both`: both of these. fwdlab does not set up translation: a ruleset (`firewall`) or `setup` does. fwdlab's own packets; with `directions = \"both\"` only `destination`, whose answers must return from `nat_address`.",
        )
        .example("\"source\"")
        .title("Address translation")
        .restart(field!(word, |s| &mut s.dut.nat)),
        key(
            "nat_address",
            Kind::HostAddress,
            "",
            "First address that packets are sent to if `nat` translates destinations; destination number n of the flows is sent to this address plus n. Default: the device's address on the sender's side, for `flows` with one destination.",
        )
        .example("\"203.0.113.0\"")
        .title("Address before translation")
        .restart(field!(some parsed, |s| &mut s.dut.nat_address)),
        key(
            "nat_port",
            integer(1, 65_535),
            "",
            "UDP port that packets are sent to if `nat` translates destinations. Default: 7, the port that they arrive at.",
        )
        .example("8080")
        .title("UDP port before translation")
        .restart(field!(some integer, |s| &mut s.dut.nat_port)),
        key("icmp_redirect", Kind::Boolean, "false", "Permit the DUT to send ICMP redirects.")
            .example("true")
        .title("ICMP redirect")
        .live(field!(boolean, |s| &mut s.dut.icmp_redirect)),
        key(
            "offloads",
            Kind::Boolean,
            "false",
            "Generic receive and segmentation offloads of the DUT's interfaces.",
        )
        .example("true")
        .of(Owner::Kernel)
        .title("Receive and segmentation offloads")
        .restart(field!(boolean, |s| &mut s.dut.offloads)),
        key(
            "queues",
            integer(1, 64),
            "1",
            "Receive and transmit queue pairs of each interface of the DUT; the router has one worker per pair. A Toeplitz hash spreads flows over the receive queues; where it cannot, several queues are refused in the open arrangement.",
        )
        .unit("queue pairs")
        .example("4")
        .title("Queues of each interface of the device under test")
        .restart(field!(integer, |s| &mut s.dut.queues)),
        key(
            "bind_queues",
            Kind::Boolean,
            "false",
            "Bind the DUT's transmit queues to its CPUs in turn (XPS).",
        )
        .example("true")
        .of(Owner::Linux)
        .restart(field!(boolean, |s| &mut s.dut.bind_queues)),
        key(
            "napi",
            words(Napi::NAMES),
            "\"auto\"",
            "Context of the receive work: pinned kernel threads or softirqs. `auto`: `threaded` in the open arrangement, `softirq` in the closed one.",
        )
        .example("\"threaded\"")
        .of(Owner::Linux)
        .restart(field!(word, |s| &mut s.dut.napi)),
        key(
            "rps",
            Kind::Mask,
            "\"\"",
            "Receive packet steering: hexadecimal mask of CPUs, in groups of eight digits joined by commas; empty: off.",
        )
        .unit("CPU mask")
        .example("\"3\"")
        .of(Owner::Linux)
        .live(field!(mask, |s| &mut s.dut.rps)),
        key(
            "sysctl",
            Kind::Sysctls,
            "{}",
            "Kernel parameters of the DUT by dotted name, each an integer or text. The table of a level replaces single entries.",
        )
        .example("{ \"net.ipv4.ip_early_demux\" = 0 }")
        .of(Owner::Kernel)
        .title("sysctl")
        .live(field!(each sysctls, |s| &mut s.dut.sysctl)),
        key(
            "fib",
            words(FibAlgorithm::NAMES),
            "\"auto\"",
            "Router: algorithm of the longest-prefix match. `radix`: binary radix trie; `radix_lockless`: the same trie as one contiguous copy, read without locks; `bsearch`: binary search over address ranges; `dir24_8`: two tables indexed by address, for inet6 a multi-bit trie; `poptrie`: multi-bit trie of bit vectors; `auto`: the router's choice by family and number of routes.",
        )
        .example("\"poptrie\"")
        .of(Owner::Router)
        .title("Router, forwarding table")
        .restart(field!(word, |s| &mut s.dut.router.fib)),
        key(
            "locking",
            words(Locking::NAMES),
            "\"lockless\"",
            "Router: lock that workers hold during a route lookup. `global`: one mutex; `rwlock`: one readers-writer lock, whose counter every reader writes; `lockless`: none, since the table is replaced as a whole.",
        )
        .example("\"rwlock\"")
        .of(Owner::Router)
        .title("Router, locking of lookups")
        .restart(field!(word, |s| &mut s.dut.router.locking)),
        key(
            "path",
            words(ForwardingPath::NAMES),
            "\"fast\"",
            "Router: path of packets through its code. `full`: every packet takes every step of the input path; `fast`: packets that need no special treatment are forwarded early; `xdp`: as `fast`, and an XDP program forwards packets of known flows before they reach the router's process (needs AF_XDP ports).",
        )
        .example("\"full\"")
        .of(Owner::Router)
        .title("Router, path of packets")
        .restart(field!(word, |s| &mut s.dut.router.path)),
        key(
            "state",
            words(StateTable::NAMES),
            "\"sharded\"",
            "Router: table of states of its stateful firewall. `none`: no states, every packet is matched against the rules; `global`: one table, one lock; `sharded`: one table in parts with one lock each; `per_worker`: one table per worker, no locks. Except with `global`, each worker has a cache of flows in front of the table.",
        )
        .example("\"per_worker\"")
        .of(Owner::Router)
        .title("Router, table of states")
        .restart(field!(word, |s| &mut s.dut.router.state)),
        key(
            "state_limit",
            integer(1, STATES_MAX as i64),
            "2097152",
            "Router: maximum number of states; packets of further new flows are dropped.",
        )
        .unit("states")
        .example("65536")
        .of(Owner::Router)
        .title("Router, most states")
        .restart(field!(integer, |s| &mut s.dut.router.state_limit)),
        key(
            "entropy_harvest",
            Kind::Boolean,
            "false",
            "Router: feed every packet to an entropy pool that all workers share, as kernels may do.",
        )
        .example("true")
        .of(Owner::Router)
        .title("Router, harvesting of entropy")
        .restart(field!(boolean, |s| &mut s.dut.router.entropy_harvest)),
        key(
            "port",
            words(RouterPort::NAMES),
            "\"auto\"",
            "Router on `netns`: sockets that it receives from and sends to, AF_XDP or AF_PACKET. `auto`: the fastest whose probe succeeds.",
        )
        .example("\"packet\"")
        .of(Owner::Router)
        .title("Router, ports")
        .restart(field!(word, |s| &mut s.dut.router.port)),
        key(
            "routes_file",
            Kind::File,
            "",
            "Router: routes from a file in place of `routes`: lines `prefix via next-hop`, or an MRT dump of a BGP table (RFC 6396). The plan contains a digest of its content.",
        )
        .example("\"routes.txt\"")
        .of(Owner::Router)
        .restart(field!(some routes_file, |s| &mut s.dut.router.routes_file)),
        key(
            "firewall_program",
            words(FirewallProgram::NAMES),
            "\"auto\"",
            "Laboratory or guest: firewall program. Linux: `nft`, `iptables`; FreeBSD: `ipfw`, `pf`, `ipf`; `auto`: `nft` and `pf`.",
        )
        .example("\"ipfw\"")
        .of(Owner::Host)
        .restart(field!(word, |s| &mut s.dut.remote.firewall_program)),
        key(
            "loader",
            Kind::Variables { example: "{ \"hw.cxgbe.nrxq10g\" = 4 }" },
            "{}",
            "FreeBSD: lines of loader.conf by name; the DUT is rebooted to apply them. The table of a level replaces single entries.",
        )
        .example("{ \"hw.cxgbe.nrxq10g\" = 4 }")
        .of(Owner::Freebsd)
        .title("loader.conf")
        .restart(field!(each variables, |s| &mut s.dut.remote.loader)),
        key(
            "rc",
            Kind::Variables { example: "{ powerd_enable = \"YES\" }" },
            "{}",
            "FreeBSD: lines of rc.conf by name. The table of a level replaces single entries.",
        )
        .example("{ powerd_enable = \"YES\" }")
        .of(Owner::Freebsd)
        .title("rc.conf")
        .restart(field!(each variables, |s| &mut s.dut.remote.rc)),
        key(
            "harvest_mask",
            integer(0, u32::MAX as i64),
            "",
            "FreeBSD: sources of entropy to harvest (`kern.random.harvest.mask`). Default: unchanged on the DUT.",
        )
        .unit("bit mask")
        .example("351")
        .of(Owner::Freebsd)
        .title("Mask of harvested entropy")
        .restart(field!(some integer, |s| &mut s.dut.remote.harvest_mask)),
        key(
            "bind_interrupts",
            Kind::Boolean,
            "false",
            "Laboratory or guest: bind the interrupts of each queue of the DUT's interfaces to a separate CPU.",
        )
        .example("true")
        .of(Owner::Host)
        .title("Interrupts bound to CPUs, queue by queue")
        .restart(field!(boolean, |s| &mut s.dut.remote.bind_interrupts)),
        key(
            "overlay",
            Kind::Directory,
            "",
            "Laboratory or guest: directory of text files that replace files of the DUT: its `etc/rc.conf` becomes the DUT's /etc/rc.conf. A list of directories is a factor `overlay`. The plan contains the files.",
        )
        .example("\"configs/base\"")
        .of(Owner::Host)
        .restart(field!(some overlay, |s| &mut s.dut.remote.overlay)),
        key(
            "reboot",
            words(Reboot::NAMES),
            "\"needed\"",
            "Laboratory or guest: reboots of the DUT. `needed`: before a run whose variant requires it; `always`: before every run, so that each starts from the same state; `never`.",
        )
        .example("\"always\"")
        .of(Owner::Host)
        .restart(field!(word, |s| &mut s.dut.remote.reboot)),
        key(
            "install",
            Kind::Commands,
            "[]",
            "Laboratory or guest: commands that install a revision on the DUT, which is rebooted after them.",
        )
        .example("[\"pkg upgrade -y router\"]")
        .of(Owner::Host)
        .restart(field!(commands, |s| &mut revision(s).install, commands)),
        key(
            "image",
            Kind::File,
            "",
            "Laboratory or guest: an image on this machine that `upgrade` reads on the DUT, before `install`; .xz, .gz and .zst files are decompressed in transit. The plan contains its name, not its content.",
        )
        .example("\"images/r287478.img.xz\"")
        .of(Owner::Host)
        .restart(field!(some text, |s| &mut revision(s).image)),
        key(
            "upgrade",
            Kind::Command,
            "",
            "Laboratory or guest: command on the DUT that reads `image` from its standard input.",
        )
        .example("\"sh /etc/upgrade\"")
        .of(Owner::Host)
        .restart(field!(command, |s| &mut revision(s).upgrade)),
        key(
            "verify",
            Kind::Command,
            "",
            "Command on the DUT whose output identifies the running software: the installed revision, or the result of `setup`. It is recorded with each run.",
        )
        .example("\"uname -v\"")
        .restart(field!(command, |s| &mut revision(s).verify)),
        key(
            "expect",
            Kind::Text,
            "",
            "Text that the output of `verify` must contain; otherwise nothing is measured.",
        )
        .example("\"r287478\"")
        .restart(field!(text, |s| &mut revision(s).expect)),
        key(
            "setup",
            Kind::Commands,
            "[]",
            "Commands before each run, after all other settings are applied: in the DUT's namespace, or on its host. Each must exit with status 0; `verify` and `expect` check their effect. On this machine they run in fwdlab's working directory.",
        )
        .example("[\"nft -f rules.nft\"]")
        .restart(field!(commands, |s| &mut s.dut.hooks.setup, commands)),
        key(
            "teardown",
            Kind::Commands,
            "[]",
            "Commands after each run, even a failed one. They also run before `setup`, to clean up after a killed run; failures there are ignored.",
        )
        .example("[\"nft flush ruleset\"]")
        .restart(field!(commands, |s| &mut s.dut.hooks.teardown, commands)),
        key(
            "start",
            Kind::Words,
            "",
            "Command: starts the forwarder, as a list of arguments: the program itself, which keeps running, or a command that leaves it in the background and exits with status 0. `{ingress}`, `{egress}` (interfaces), `{ingress_mac}`, `{egress_mac}`, `{sender_mac}`, `{receiver_mac}`, `{cpus}`, `{queues}` and `{run}` (a unique name of this run) are filled in.",
        )
        .example("[\"forwarder\", \"{ingress}\", \"{egress}\"]")
        .of(Owner::Command)
        .restart(field!(words, |s| &mut s.dut.command.start, line)),
        key(
            "ready",
            Kind::Words,
            "[]",
            "Command: succeeds when the forwarder is ready; tried for a minute. In any case packets must come through before anything is measured.",
        )
        .example("[\"forwarderctl\", \"status\"]")
        .of(Owner::Command)
        .restart(field!(words, |s| &mut s.dut.command.ready, line)),
        key(
            "stop",
            Kind::Words,
            "[]",
            "Command: stops the forwarder after each run, and before the next one starts. Default: `start` is interrupted as by Ctrl-C.",
        )
        .example("[\"forwarderctl\", \"quit\"]")
        .of(Owner::Command)
        .restart(field!(words, |s| &mut s.dut.command.stop, line)),
        key(
            "statistics",
            Kind::Words,
            "[]",
            "Command: prints the forwarder's counters, for `counters`.",
        )
        .example("[\"forwarderctl\", \"show\"]")
        .of(Owner::Command)
        .restart(field!(words, |s| &mut s.dut.command.statistics, line)),
        key(
            "counters",
            Kind::Patterns,
            "{}",
            "Command: counters in the output of `statistics`, by a regular expression with one group (matches are added) or a JSON pointer (RFC 6901). `received` and `forwarded` are compared with fwdlab's own counts; names that begin with `dropped` identify places of loss.",
        )
        .example("{ forwarded = 'sent: (\\d+)' }")
        .of(Owner::Command)
        .restart(field!(each patterns, |s| &mut s.dut.command.counters)),
        key(
            "rewrites",
            words(Rewrites::NAMES),
            "\"route\"",
            "Command: header fields that the forwarder changes. `route`: MAC addresses and TTL or hop limit, as a router; `mac`: MAC addresses only; `none`: nothing, as a bridge. A packet that arrives with other changes is not counted as forwarded.",
        )
        .example("\"mac\"")
        .of(Owner::Command)
        .restart(field!(word, |s| &mut s.dut.command.rewrites, if |s| !s.dut.command.start.is_empty())),
    ],
    ..Section::TABLE
};
