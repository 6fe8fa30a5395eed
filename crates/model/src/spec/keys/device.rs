//! The device under test: what every kind of it has, what only the Linux kernel,
//! what only fwdlab's own router, and what only the DUT of a laboratory has. Which of them go together is decided
//! in [`crate::experiment`].

use super::field::{commands, field, revision, words as line};
use super::{Kind, Owner, Section, integer, key, words};
use crate::settings::{
    DutKind, FibAlgorithm, FirewallProgram, ForwardingPath, Locking, Napi, Nat, Reboot, Rewrites,
    RouterPort, STATES_MAX, StateTable,
};

/// `[dut]`.
pub const DUT: Section = Section {
    path: "dut",
    doc: "The device under test: what forwards.",
    keys: &[
        key(
            "kind",
            words(DutKind::NAMES),
            "\"linux\"",
            "`linux`: the forwarding of the Linux kernel; `router`: fwdlab's own software router, a process that forwards in place of the kernel; `freebsd`: the forwarding of the FreeBSD kernel, in laboratories; `command`: any program that forwards between two interfaces, started by `start`.",
        )
        .example("\"router\"")
        .restart(field!(word, |s| &mut s.dut.kind)),
        key(
            "routes",
            integer(2, 1_048_576),
            "2",
            "Static routes, at least one to each side; the next are host routes of the traffic's own destinations, what is left over fills the table, within 10.192.0.0/10 (/30) or 2001:2:0:c000::/56 (/80), where no packet goes.",
        )
        .unit("routes")
        .example("1000")
        .restart(field!(integer, |s| &mut s.dut.routes)),
        key(
            "firewall",
            Kind::Firewall,
            "\"none\"",
            "`none`; `stateless`: the traffic's prefixes are accepted, all else dropped, no state is kept; `stateful`: connection tracking; `rules:N`: N rules that do not match, then accept; or the path of a ruleset, relative to the experiment file: as the program that makes the firewall reads it (`nft`, `pf`, ...), or as the router reads it for the router.",
        )
        .example("\"stateful\"")
        .live(field!(firewall, |s| &mut s.dut.firewall)),
        key(
            "nat",
            words(Nat::NAMES),
            "\"none\"",
            "Address translation that packets undergo. `source`: the source address becomes that of the device's egress interface (masquerade, SNAT), from any port. Packets then count as forwarded when they arrive translated and otherwise intact. fwdlab sets no translation up: a ruleset (`firewall`) or `setup` does. IPv4, one direction, fwdlab's own packets.",
        )
        .example("\"source\"")
        .title("Address translation")
        .restart(field!(word, |s| &mut s.dut.nat)),
        key("icmp_redirect", Kind::Boolean, "false", "The DUT may send ICMP redirects.")
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
            "Receive and transmit queue pairs of each interface of the DUT; the router has a worker for each. Flows are spread over the receive queues by a Toeplitz hash; where they can't be, several queues are refused in the open arrangement.",
        )
        .unit("queue pairs")
        .example("4")
        .title("Queues of each interface of the device under test")
        .restart(field!(integer, |s| &mut s.dut.queues)),
        key(
            "bind_queues",
            Kind::Boolean,
            "false",
            "Bind the DUT's outgoing queues to its CPUs, round and round (XPS).",
        )
        .example("true")
        .of(Owner::Linux)
        .restart(field!(boolean, |s| &mut s.dut.bind_queues)),
        key(
            "napi",
            words(Napi::NAMES),
            "\"auto\"",
            "Where the receive work runs: in pinned kernel threads or in softirq context; `auto`: `threaded` in the open arrangement, `softirq` in the closed one.",
        )
        .example("\"threaded\"")
        .of(Owner::Linux)
        .restart(field!(word, |s| &mut s.dut.napi)),
        key(
            "rps",
            Kind::Mask,
            "\"\"",
            "Receive packet steering: hexadecimal mask of CPUs, groups of eight digits joined by commas; empty: off.",
        )
        .unit("CPU mask")
        .example("\"3\"")
        .of(Owner::Linux)
        .live(field!(mask, |s| &mut s.dut.rps)),
        key(
            "sysctl",
            Kind::Sysctls,
            "{}",
            "Kernel parameters of the DUT by their dotted names, each an integer or text. A level's are laid over these one by one.",
        )
        .example("{ \"net.ipv4.ip_early_demux\" = 0 }")
        .of(Owner::Kernel)
        .title("sysctl")
        .live(field!(each sysctls, |s| &mut s.dut.sysctl)),
        key(
            "fib",
            words(FibAlgorithm::NAMES),
            "\"auto\"",
            "Router: how the longest matching prefix is found. `radix`: a binary radix trie; `radix_lockless`: the same as a copy in one piece, read without locks; `bsearch`: binary search over ranges of addresses; `dir24_8`: two tables indexed by address, for inet6 a multi-bit trie; `poptrie`: a multi-bit trie of bit vectors; `auto`: the router's choice by family and number of routes.",
        )
        .example("\"poptrie\"")
        .of(Owner::Router)
        .title("Router, forwarding table")
        .restart(field!(word, |s| &mut s.dut.router.fib)),
        key(
            "locking",
            words(Locking::NAMES),
            "\"lockless\"",
            "Router: what workers hold while they look a route up. `global`: one mutex; `rwlock`: one readers-writer lock, whose counter every reader writes; `lockless`: nothing, since the table is replaced as a whole.",
        )
        .example("\"rwlock\"")
        .of(Owner::Router)
        .title("Router, locking of lookups")
        .restart(field!(word, |s| &mut s.dut.router.locking)),
        key(
            "path",
            words(ForwardingPath::NAMES),
            "\"fast\"",
            "Router: the way through its code. `full`: every packet takes every step of the input path; `fast`: packets that need nothing special are forwarded early.",
        )
        .example("\"full\"")
        .of(Owner::Router)
        .title("Router, path of packets")
        .restart(field!(word, |s| &mut s.dut.router.path)),
        key(
            "state",
            words(StateTable::NAMES),
            "\"sharded\"",
            "Router: where its stateful firewall keeps states. `none`: nowhere, the rules judge every packet; `global`: one table, one lock; `sharded`: one table in parts with a lock each; `per_worker`: a table for each worker, no locks. Except with `global`, each worker has a cache of flows before the table.",
        )
        .example("\"per_worker\"")
        .of(Owner::Router)
        .title("Router, table of states")
        .restart(field!(word, |s| &mut s.dut.router.state)),
        key(
            "state_limit",
            integer(1, STATES_MAX as i64),
            "2097152",
            "Router: most states held at a time; packets of new flows beyond it are dropped.",
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
            "Router: every packet is fed to a pool of entropy that all workers share, as kernels may do.",
        )
        .example("true")
        .of(Owner::Router)
        .title("Router, harvesting of entropy")
        .restart(field!(boolean, |s| &mut s.dut.router.entropy_harvest)),
        key(
            "port",
            words(RouterPort::NAMES),
            "\"auto\"",
            "Router on `netns`: what it receives from and sends to. AF_XDP sockets or AF_PACKET sockets; `auto`: the fastest whose probe succeeds.",
        )
        .example("\"packet\"")
        .of(Owner::Router)
        .title("Router, ports")
        .restart(field!(word, |s| &mut s.dut.router.port)),
        key(
            "routes_file",
            Kind::File,
            "",
            "Router: routes from a file in place of `routes`: lines `prefix via next-hop`, or an MRT dump of a BGP table (RFC 6396). The plan keeps a digest of its content.",
        )
        .example("\"routes.txt\"")
        .of(Owner::Router)
        .restart(field!(some routes_file, |s| &mut s.dut.router.routes_file)),
        key(
            "firewall_program",
            words(FirewallProgram::NAMES),
            "\"auto\"",
            "Laboratory: which program makes the firewall. Linux: `nft`, `iptables`; FreeBSD: `ipfw`, `pf`, `ipf`; `auto`: `nft` and `pf`.",
        )
        .example("\"ipfw\"")
        .of(Owner::Host)
        .restart(field!(word, |s| &mut s.dut.remote.firewall_program)),
        key(
            "loader",
            Kind::Variables { example: "{ \"hw.cxgbe.nrxq10g\" = 4 }" },
            "{}",
            "FreeBSD: lines of loader.conf by their names; the DUT is rebooted for them. A level's are laid over these one by one.",
        )
        .example("{ \"hw.cxgbe.nrxq10g\" = 4 }")
        .of(Owner::Freebsd)
        .title("loader.conf")
        .restart(field!(each variables, |s| &mut s.dut.remote.loader)),
        key(
            "rc",
            Kind::Variables { example: "{ powerd_enable = \"YES\" }" },
            "{}",
            "FreeBSD: lines of rc.conf by their names. A level's are laid over these one by one.",
        )
        .example("{ powerd_enable = \"YES\" }")
        .of(Owner::Freebsd)
        .title("rc.conf")
        .restart(field!(each variables, |s| &mut s.dut.remote.rc)),
        key(
            "harvest_mask",
            integer(0, u32::MAX as i64),
            "",
            "FreeBSD: which sources of entropy are harvested (`kern.random.harvest.mask`); without it: as the DUT is found.",
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
            "Laboratory: bind the interrupts of queue n of the DUT's interfaces to a CPU of its own.",
        )
        .example("true")
        .of(Owner::Host)
        .title("Interrupts bound to CPUs, queue by queue")
        .restart(field!(boolean, |s| &mut s.dut.remote.bind_interrupts)),
        key(
            "overlay",
            Kind::Directory,
            "",
            "Laboratory: a directory whose text files are laid over the DUT's: its `etc/rc.conf` becomes the DUT's /etc/rc.conf. A list of directories is a factor `overlay`. The plan keeps the files.",
        )
        .example("\"configs/base\"")
        .of(Owner::Host)
        .restart(field!(some overlay, |s| &mut s.dut.remote.overlay)),
        key(
            "reboot",
            words(Reboot::NAMES),
            "\"needed\"",
            "Laboratory: when the DUT is rebooted. `needed`: before a run whose variant needs it; `always`: before every run, so that each starts from the same state; `never`.",
        )
        .example("\"always\"")
        .of(Owner::Host)
        .restart(field!(word, |s| &mut s.dut.remote.reboot)),
        key(
            "install",
            Kind::Commands,
            "[]",
            "Laboratory: commands that install a revision on the DUT, which is rebooted after them.",
        )
        .example("[\"pkg upgrade -y router\"]")
        .of(Owner::Host)
        .restart(field!(commands, |s| &mut revision(s).install, commands)),
        key(
            "image",
            Kind::File,
            "",
            "Laboratory: an image of this machine that `upgrade` reads on the DUT, before `install`; one that ends with .xz, .gz or .zst is unpacked on the way. The plan keeps its name, not its content.",
        )
        .example("\"images/r287478.img.xz\"")
        .of(Owner::Host)
        .restart(field!(some text, |s| &mut revision(s).image)),
        key(
            "upgrade",
            Kind::Command,
            "",
            "Laboratory: the command on the DUT that reads `image` from its standard input.",
        )
        .example("\"sh /etc/upgrade\"")
        .of(Owner::Host)
        .restart(field!(command, |s| &mut revision(s).upgrade)),
        key(
            "verify",
            Kind::Command,
            "",
            "The command on the DUT whose output names what runs: the revision that was installed, or what `setup` made of it. It is recorded with each run.",
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
            "Commands before each run, when everything else is set: in the DUT's namespace, or on its host. Each must end with status 0; `verify` and `expect` read back what they did. On this machine they run where fwdlab was started.",
        )
        .example("[\"nft -f rules.nft\"]")
        .restart(field!(commands, |s| &mut s.dut.hooks.setup, commands)),
        key(
            "teardown",
            Kind::Commands,
            "[]",
            "Commands after each run, also after one that failed. They run before `setup`, too, so that what a killed run left is removed; whether they succeed there does not matter.",
        )
        .example("[\"nft flush ruleset\"]")
        .restart(field!(commands, |s| &mut s.dut.hooks.teardown, commands)),
        key(
            "start",
            Kind::Words,
            "",
            "Command: starts what forwards, as a list of arguments: the program itself, which stays, or what leaves it in the background and ends with status 0. `{ingress}`, `{egress}` (interfaces), `{ingress_mac}`, `{egress_mac}`, `{sender_mac}`, `{receiver_mac}`, `{cpus}`, `{queues}` and `{run}` (a name of this run's own) are filled in.",
        )
        .example("[\"forwarder\", \"{ingress}\", \"{egress}\"]")
        .of(Owner::Command)
        .restart(field!(words, |s| &mut s.dut.command.start, line)),
        key(
            "ready",
            Kind::Words,
            "[]",
            "Command: succeeds when it is ready; tried for a minute. In any case packets must come through before anything is measured.",
        )
        .example("[\"forwarderctl\", \"status\"]")
        .of(Owner::Command)
        .restart(field!(words, |s| &mut s.dut.command.ready, line)),
        key(
            "stop",
            Kind::Words,
            "[]",
            "Command: ends it after each run, and before the next one starts; without it `start` is ended as by Ctrl-C.",
        )
        .example("[\"forwarderctl\", \"quit\"]")
        .of(Owner::Command)
        .restart(field!(words, |s| &mut s.dut.command.stop, line)),
        key(
            "statistics",
            Kind::Words,
            "[]",
            "Command: prints what it has counted, for `counters`.",
        )
        .example("[\"forwarderctl\", \"show\"]")
        .of(Owner::Command)
        .restart(field!(words, |s| &mut s.dut.command.statistics, line)),
        key(
            "counters",
            Kind::Patterns,
            "{}",
            "Command: counters in the output of `statistics`, by a regular expression with one group (matches are added) or a JSON pointer (RFC 6901). `received` and `forwarded` are held against fwdlab's own counts; names that begin with `dropped` say where packets were lost.",
        )
        .example("{ forwarded = 'sent: (\\d+)' }")
        .of(Owner::Command)
        .restart(field!(each patterns, |s| &mut s.dut.command.counters)),
        key(
            "rewrites",
            words(Rewrites::NAMES),
            "\"route\"",
            "Command: what it changes of a packet. `route`: MAC addresses and TTL or hop limit, as a router; `mac`: MAC addresses only; `none`: nothing, as a bridge. A packet that arrives otherwise is not counted as forwarded.",
        )
        .example("\"mac\"")
        .of(Owner::Command)
        .restart(field!(word, |s| &mut s.dut.command.rewrites, if |s| !s.dut.command.start.is_empty())),
    ],
    ..Section::TABLE
};
