//! Keys of the test set-up, in the order of the documentation: testbed, factors, traffic. The
//! device is in `device.rs`, the measurement in `method.rs`.

use super::field::{bytes, field, words as line};
use super::{Form, Kind, Owner, Section, integer, key, number, words};
use crate::settings::{Arrangement, Checks, Directions, Engine, Family, GeneratorKind};

/// Top of the file.
pub const ROOT: Section = Section {
    path: "",
    doc: "Keys before the first table.",
    keys: &[
        key("version", integer(1, 1), "", "Version of this format; required.")
            .example("1")
            .required(),
        key("title", Kind::Text, "", "Title of the report. Default: the file's name.")
            .example("\"Impact of queue number on forwarding performance\""),
    ],
    ..Section::TABLE
};

/// `[testbed]`.
pub const TESTBED: Section = Section {
    path: "testbed",
    doc: "The machines, namespaces or simulation that send, forward and receive the packets.",
    keys: &[
        key(
            "kind",
            words(&["auto", "netns", "memory", "ssh", "vm", "sim"]),
            "\"auto\"",
            "`netns`: network namespaces of this machine, joined by veth pairs; `memory`: packets in memory that the router's process shares with a generator and a sink, without privileges and without forwarding by a kernel; `ssh`: the hosts of a laboratory; `vm`: a QEMU guest, described in `[vm]`; `sim`: a simulated device; `auto`: `netns` if this machine permits it, else `sim`.",
        )
        .example("\"netns\""),
        key(
            "lab",
            Kind::File,
            "",
            "With `ssh`: the file that describes the laboratory. Its content is not part of the plan: one plan runs in any laboratory.",
        )
        .example("\"lab.toml\""),
        key(
            "arrangement",
            words(Arrangement::NAMES),
            "\"open\"",
            "`open`: sender and DUT have separate CPUs, as in a rack; `closed`: each sending CPU generates, forwards and counts its own packets, and the rate is 1 / (cost of all three). Both count losses, and the report states them.",
        )
        .example("\"closed\"")
        .restart(field!(word, |s| &mut s.testbed.arrangement)),
        key(
            "senders",
            integer(1, 256),
            "1",
            "Sending threads, one CPU each. The open arrangement has one.",
        )
        .unit("threads")
        .example("2")
        .restart(field!(integer, |s| &mut s.testbed.senders)),
        key(
            "engine",
            words(Engine::NAMES),
            "\"auto\"",
            "Sender: XDP live frames, an AF_XDP socket or an AF_PACKET socket. `auto`: the fastest whose probe succeeds; AF_XDP for all variants if any has several queues, because nothing else spreads flows over the queues of a veth device.",
        )
        .example("\"packet\"")
        .restart(field!(word, |s| &mut s.testbed.engine)),
    ],
    ..Section::TABLE
};

/// `[testbed.sim]`.
pub const SIM: Section = Section {
    path: "testbed.sim",
    doc: "Behaviour of the simulated device; only with `kind = \"sim\"`.",
    keys: &[
        key("capacity", Kind::PacketRate, "1.6e6", "Forwarding rate of the device in the base variant.")
            .unit("pps")
            .example("\"2Mpps\""),
        key("noise", number(0.0, 1.0), "0.02", "Coefficient of variation between runs.")
            .unit("ratio")
            .example("0.05"),
        key(
            "drift",
            number(0.0, 1.0),
            "0.0",
            "Share of the noise's variance that drifts from run to run (AR(1)).",
        )
        .unit("ratio")
        .example("0.5"),
        key(
            "phi",
            number(0.0, 0.999),
            "0.9",
            "Correlation of that drift between consecutive runs.",
        )
        .example("0.5"),
        key(
            "jitter",
            number(0.0, 1.0),
            "0.03",
            "Coefficient of variation of the samples within a run.",
        )
        .unit("ratio")
        .example("0.1"),
        key("loss", number(0.0, 1.0), "0.0", "Loss ratio below capacity.")
            .unit("ratio")
            .example("0.001"),
        key(
            "buffer",
            integer(0, 1_000_000_000),
            "0",
            "Packets that its buffer holds while more arrive than it forwards.",
        )
        .unit("packets")
        .example("512"),
        key(
            "reverse",
            number(0.0, 1.0),
            "1.0",
            "With `directions = \"both\"`: capacity from the receiver to the sender, as a share of the capacity in the other direction.",
        )
        .unit("ratio")
        .example("0.5"),
        key("ceiling", Kind::PacketRate, "5e6", "Maximum rate of the simulated sender.")
            .unit("pps")
            .example("\"10Mpps\""),
        key(
            "link_speed",
            Kind::BitRate,
            "",
            "Line rate of its links (L1, with preamble and gap). It limits the sender, and reports show rates as shares of it. Default: none.",
        )
        .unit("bit/s")
        .example("\"10Gbit/s\""),
        key(
            "states",
            integer(1, 16_777_216),
            "262144",
            "Connections that its stateful firewall holds.",
        )
        .unit("connections")
        .example("50000"),
        key(
            "establishment",
            Kind::PacketRate,
            "400e3",
            "Connections per second that its stateful firewall sets up in the base variant; effects and noise are the same as for the capacity.",
        )
        .unit("pps")
        .example("\"200kpps\""),
        key(
            "tear_down",
            Kind::PacketRate,
            "2e6",
            "Connections per second that its stateful firewall removes.",
        )
        .unit("pps")
        .example("\"1Mpps\""),
        key(
            "effect",
            Kind::Effects,
            "{}",
            "Factors on the capacity, each named by a setting or factor and one of its labels, joined by `=`.",
        )
        .unit("ratio")
        .example("{ \"firewall=none\" = 0.8 }"),
        key(
            "realtime",
            Kind::Boolean,
            "false",
            "`true`: a run takes its real time; `false`: it returns immediately.",
        )
        .example("true"),
        key(
            "contamination",
            number(0.0, 0.5),
            "0.0",
            "Share of the runs that a bad start degrades from start to end.",
        )
        .unit("ratio")
        .example("0.05"),
        key(
            "contamination_depth",
            number(0.0, 0.99),
            "0.04",
            "Share of the capacity that a degraded run loses.",
        )
        .unit("ratio")
        .example("0.1"),
    ],
    ..Section::TABLE
};

/// `[[factor]]`.
pub const FACTOR: Section = Section {
    path: "factor",
    form: Form::List,
    doc: "A setting that is varied. Without factors there is one variant, called `all`.",
    keys: &[
        key(
            "name",
            Kind::Text,
            "",
            "A setting, a sysctl (its dotted name), or a custom name for bundles of settings.",
        )
        .example("\"queues\"")
        .required(),
        key(
            "levels",
            Kind::Levels,
            "",
            "Values of the setting of that name, or tables that bundle settings under a label.",
        )
        .example("[1, 2, 4, 8]")
        .required(),
    ],
    ..Section::TABLE
};

/// A level that is a table: these keys, and every setting that can be varied.
pub const LEVEL: Section = Section {
    path: "factor.level",
    form: Form::Inline,
    doc: "A level written as a table: a label, and any settings that can be varied.",
    keys: &[
        key("label", Kind::Text, "", "Name of the level in reports; unique in its factor.")
            .example("\"patched\"")
            .required(),
        key(
            "build_of",
            Kind::Text,
            "",
            "The revision that this level is a build of. Builds of a revision differ only in code layout: the placement of code by the compiler or linker. Revisions are compared across their builds, whose scatter is the effect of layout.",
        )
        .example("\"patched\""),
    ],
    ..Section::TABLE
};

/// `[traffic]`.
pub const TRAFFIC: Section = Section {
    path: "traffic",
    doc: "The test traffic.",
    keys: &[
        key("family", words(Family::NAMES), "\"inet\"", "Address family: IPv4 or IPv6.")
            .example("\"inet6\"")
        .restart(field!(word, |s| &mut s.traffic.family)),
        key(
            "protocol",
            Kind::Word { words: &["udp"], absent: &["tcp", "icmp", "sctp"] },
            "\"udp\"",
            "Transport protocol of the packets.",
        ),
        key(
            "frame_size",
            Kind::FrameSize,
            "64",
            "Frame size from destination MAC through FCS; or a mix of sizes, `\"imix\"` (64, 594, 1518 bytes, 7 : 4 : 1), `\"imix-570\"` or `\"genome:aafg\"` (RFC 6985), sent by fwdlab itself; a list is a factor `frame_size`. inet6 needs 84 (66 from other generators, which write no stamp): smaller sizes are raised, and the plan reports it.",
        )
        .unit("bytes")
        .example("128")
        .restart(field!(frame_size, |s| &mut s.traffic.frame_size, bytes)),
        key(
            "flows",
            Kind::Flows,
            "{ sources = 20, destinations = 100 }",
            "Flows as a product of address ranges, at most 1 000 000 in total.",
        )
        .unit("addresses")
        .example("{ sources = 50, destinations = 100 }")
        .restart(field!(flows, |s| &mut s.traffic.flows)),
        key(
            "rate",
            Kind::Rate,
            "\"max\"",
            "Intended load: `max`, packets per second (`10e6`, `\"10Mpps\"`), a share of the calibrated ceiling (`\"50%\"`), or L2 bits per second (`\"1Gbit/s\"`).",
        )
        .unit("pps, %, bit/s")
        .example("\"10Mpps\"")
        .restart(field!(rate, |s| &mut s.traffic.rate)),
        key(
            "timestamps",
            Kind::Boolean,
            "false",
            "Write the sending time into every packet; costs the sender part of its rate.",
        )
        .example("true")
        .restart(field!(boolean, |s| &mut s.traffic.timestamps)),
        key(
            "directions",
            words(Directions::NAMES),
            "\"one\"",
            "`one`: from the sender to the receiver; `both`: also from the receiver to the sender at the same time (RFC 2544, 14), with the addresses and ports of every flow swapped. `rate` and the loads of [method] then apply per direction, and results are sums of both.",
        )
        .example("\"both\"")
        .restart(field!(word, |s| &mut s.traffic.directions)),
        key(
            "checks",
            words(Checks::NAMES),
            "\"auto\"",
            "Packets that a receiver in the kernel (XDP) checks in full; it checks stamp and order of every packet. `all`; `sample`: the first 65,536 of a run and one in 4 of the others; `auto`: all at a rate of at most 1 Mpps, a sample above. Receivers in user space check all.",
        )
        .example("\"all\"")
        .restart(field!(word, |s| &mut s.traffic.checks)),
        key(
            "generator",
            words(GeneratorKind::NAMES),
            "\"fwdlab\"",
            "Laboratory: sender and counter of the traffic. `fwdlab`: its own senders and receiver; `pkt-gen`: netmap's; `pktgen`: the Linux kernel's, with fwdlab as receiver; `trex`: a TRex server; `testpmd`: DPDK's; `otg`: a server of the Open Traffic Generator API.",
        )
        .example("\"pkt-gen\"")
        .of(Owner::Generator)
        .restart(field!(word, |s| &mut s.traffic.generator)),
        key(
            "generator_server",
            Kind::Text,
            "",
            "Laboratory: address of a generator that is a server (`trex`, `otg`). Default: the sending host.",
        )
        .example("\"trex.example.org:4501\"")
        .of(Owner::Generator)
        .restart(field!(text, |s| &mut s.traffic.generator_server)),
        key(
            "generator_options",
            Kind::Words,
            "[]",
            "Laboratory: additional options of any generator except `fwdlab`, passed unchanged: command-line arguments (`pkt-gen`, `testpmd`), commands of the device (`pktgen`), `force` (`trex`) or `insecure` (`otg`).",
        )
        .example("[\"-p\", \"4\"]")
        .of(Owner::Generator)
        .restart(field!(words, |s| &mut s.traffic.generator_options, line)),
    ],
    ..Section::TABLE
};

/// Maximum number of addresses on one side. They come from 198.18.0.0/16 and 198.19.0.0/16, whose
/// first 256 belong to the interfaces, so the limit would be 65 280.
pub const ADDRESSES_MAX: i64 = 65_000;
/// Maximum number of flows of an experiment.
pub const FLOWS_MAX: i64 = 1_000_000;

/// `flows = { ... }`.
pub const FLOWS: Section = Section {
    path: "traffic.flows",
    doc: "Addresses on each side; every source sends to every destination.",
    keys: &[
        key("sources", integer(1, ADDRESSES_MAX), "20", "Number of source addresses.")
            .unit("addresses")
            .example("40"),
        key("destinations", integer(1, ADDRESSES_MAX), "100", "Number of destination addresses.")
            .unit("addresses")
            .example("200"),
    ],
    ..Section::TABLE
};
