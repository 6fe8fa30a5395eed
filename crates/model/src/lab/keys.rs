//! All keys of a lab file: rows of the same kind as those of experiment files, from which the
//! reader, the JSON Schema and the reference in `docs/LABS.md` are generated.

use super::{Role, Side, System};
use crate::schema;
use crate::spec::keys::{Form, Section, duration, integer, key, words};
use crate::spec::kind::Kind;
use serde_json::Value;

const SECOND_NS: u64 = 1_000_000_000;

/// All tables, in the order of the documentation.
pub const SECTIONS: &[Section] = &[TOP, SSH, NOTIFY, LABGRID, HOST, INTERFACE, CABLE];

/// Top of the file.
pub(super) const TOP: Section = Section {
    doc: "The machines of a laboratory, and the cables between them.",
    keys: &[
        key("version", integer(1, 1), "", "Version of this format; required.")
            .example("1")
            .required(),
        key("name", Kind::Name, "", "Name of the laboratory.").example("\"rack\"").required(),
        key(
            "allow_addresses",
            Kind::Boolean,
            "false",
            "Permit addresses outside 198.18.0.0/15 and 2001:2::/48, which are reserved for test traffic (RFC 2544 appendix C.2.2, RFC 5180): packets that leak from the laboratory reach no one.",
        )
        .example("true"),
        key(
            "lease",
            duration(SECOND_NS),
            "\"5min\"",
            "Lease time of each host, renewed after a third of it. If a controller dies, its hosts are free within this time.",
        )
        .example("\"2min\""),
    ],
    ..Section::TABLE
};

/// `[ssh]`.
pub(super) const SSH: Section = Section {
    path: "ssh",
    doc: "Connections to the hosts, on top of OpenSSH's own configuration.",
    keys: &[
        key(
            "config",
            Kind::Text,
            "",
            "Configuration file in place of the user's own (`ssh -F`), relative to this file.",
        )
        .example("\"ssh_config\""),
        key("connect", Kind::Seconds, "\"10s\"", "Maximum time to connect.").example("\"5s\""),
        key(
            "alive",
            Kind::Seconds,
            "\"5s\"",
            "Silence after which the connection is probed.",
        )
        .example("\"10s\""),
        key("deadline", duration(SECOND_NS), "\"60s\"", "Maximum time of a command.")
            .example("\"2min\""),
        key(
            "one_shell",
            Kind::Boolean,
            "false",
            "Run all commands of a host in one shell, instead of one session each: for machines that start programs slowly, such as emulated ones.",
        )
        .example("true"),
    ],
    ..Section::TABLE
};

/// `[notify]`.
pub(super) const NOTIFY: Section = Section {
    path: "notify",
    doc: "Notifications at the end of `fwdlab run` in this laboratory, finished or failed. A notification that fails causes a remark and changes no exit code; `fwdlab run --notify-command` does the same without a laboratory.",
    keys: &[
        key(
            "command",
            Kind::Arguments,
            "",
            "Program on this machine that reads the summary from its standard input. `{title}`, `{outcome}` and `{report}` are replaced by the experiment's title, `finished` or `failed`, and the report's file.",
        )
        .example("[\"mail\", \"-s\", \"fwdlab: {title} {outcome}\", \"root\"]"),
        key(
            "url",
            Kind::Text,
            "",
            "Address that receives `{\"title\", \"outcome\", \"report\", \"summary\"}` as JSON, by curl(1).",
        )
        .example("\"https://example.org/hook\""),
    ],
    ..Section::TABLE
};

/// `[labgrid]`.
pub(super) const LABGRID: Section = Section {
    path: "labgrid",
    doc: "Reservation, acquisition and release, by `labgrid-client`, of the places of hosts with a `place`.",
    keys: &[
        key(
            "coordinator",
            Kind::Text,
            "",
            "Address of the coordinator, `host:port`. Default: `LG_COORDINATOR`, or labgrid's default.",
        )
        .example("\"labgrid.example.org:20408\""),
        key(
            "client",
            Kind::Text,
            "\"labgrid-client\"",
            "The program `labgrid-client`; its path if it is not in `PATH`.",
        )
        .example("\"/opt/labgrid/bin/labgrid-client\""),
        key(
            "wait",
            duration(SECOND_NS),
            "\"30s\"",
            "Maximum wait for the reservation of a place.",
        )
        .example("\"10min\""),
    ],
    ..Section::TABLE
};

/// `[[host]]`.
pub(super) const HOST: Section = Section {
    path: "host",
    form: Form::List,
    required: true,
    doc: "A machine.",
    keys: &[
        key("name", Kind::Name, "", "Name of the host in the other tables.")
            .example("\"dut\"")
            .required(),
        key("roles", Kind::List(&words(Role::NAMES)), "", "Roles of the host.")
            .example("[\"dut\"]")
            .required(),
        key(
            "ssh",
            Kind::Text,
            "",
            "Destination: a name of ssh's configuration, `user@host`, or `ssh://user@host:port`. Default: this machine.",
        )
        .example("\"root@dut\""),
        key(
            "system",
            words(System::NAMES),
            "",
            "Operating system. Default: detected on the host.",
        )
        .example("\"linux\""),
        key("cpus", Kind::List(&integer(0, u16::MAX as i64)), "", "CPUs for traffic.")
            .example("[2, 3]"),
        key(
            "console",
            Kind::Arguments,
            "",
            "Command on this machine that shows the host's console.",
        )
        .example("[\"ipmitool\", \"-H\", \"dut-bmc\", \"sol\", \"activate\"]"),
        key(
            "power_cycle",
            Kind::Arguments,
            "",
            "Command on this machine that switches the host off and on; run for a DUT that does not come back.",
        )
        .example("[\"ipmitool\", \"-H\", \"dut-bmc\", \"power\", \"cycle\"]"),
        key(
            "place",
            Kind::Name,
            "",
            "Place of the host in labgrid, reserved and acquired before connecting and released at the end. Without `power_cycle`, the place's power is cycled.",
        )
        .example("\"rack1-dut\""),
        key(
            "reboot_timeout",
            duration(SECOND_NS),
            "",
            "Maximum time of a reboot. Default: five times `deadline`.",
        )
        .example("\"10min\""),
        key(
            "online",
            Kind::Commands,
            "[]",
            "Commands on the host, each on one line and without a shell, that must succeed before it counts as up after a reboot, e.g. pings that fill the tables of switches.",
        )
        .example("[\"ping -c 2 198.18.0.1\"]"),
    ],
};

/// `[[host.interface]]`.
pub(super) const INTERFACE: Section = Section {
    path: "host.interface",
    form: Form::List,
    required: true,
    doc: "An interface for traffic, after its host.",
    keys: &[
        key("name", Kind::Name, "", "Name of the interface on the host.").example("\"eth1\"").required(),
        key(
            "side",
            words(Side::NAMES),
            "",
            "Side of the DUT that the interface connects to. Required on the DUT, and on a host that is sender and receiver.",
        )
        .example("\"sender\""),
        key("mac", Kind::Mac, "", "MAC address; checked if present.")
            .example("\"02:00:00:00:00:01\""),
        key(
            "addresses",
            Kind::List(&Kind::Address),
            "[]",
            "Addresses with prefix lengths.",
        )
        .example("[\"198.18.0.2/24\"]"),
    ],
};

/// `[[cable]]`.
pub(super) const CABLE: Section = Section {
    path: "cable",
    form: Form::List,
    required: true,
    doc: "A cable between two interfaces, of which one is the DUT's.",
    keys: &[
        key("a", Kind::Text, "", "One end, `host:interface`.")
            .example("\"sender:eth1\"")
            .required(),
        key("b", Kind::Text, "", "The other end.").example("\"dut:eth1\"").required(),
        key(
            "switch",
            Kind::Name,
            "",
            "Name of a switch in between. Required for an interface with more than one cable: two senders then share an interface of the DUT.",
        )
        .example("\"s1\""),
        key(
            "speed",
            Kind::BitRate,
            "",
            "Line rate of the cable; reports show rates as shares of it. Default: the rate that the DUT's interface has negotiated, unless the DUT is a virtual machine, whose cards have no line rate.",
        )
        .example("\"10Gbit/s\""),
    ],
};

/// Returns the JSON Schema (draft 2020-12) of a lab file.
pub fn schema() -> Value {
    schema::of_file(SECTIONS, "fwdlab laboratory", TOP.doc)
}

/// Returns the reference of all keys as Markdown.
pub fn reference() -> String {
    schema::reference_of(SECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lab;

    /// A valid lab with every key.
    const FULL: &str = r#"
version = 1
name = "two"
allow_addresses = false
lease = "1min"
[ssh]
config = "ssh_config"
connect = "5s"
alive = "5s"
deadline = "1min"
one_shell = true
[notify]
command = ["mail", "-s", "{title}", "root"]
url = "https://example.org/hook"
[labgrid]
coordinator = "localhost:20408"
client = "labgrid-client"
wait = "1min"
[[host]]
name = "peer"
roles = ["sender", "receiver"]
ssh = "peer"
system = "linux"
cpus = [1, 2]
console = ["console", "peer"]
power_cycle = ["power", "peer"]
place = "peer-place"
reboot_timeout = "10min"
online = ["ping -c 2 198.18.0.1"]
[[host.interface]]
name = "eth1"
mac = "02:00:00:00:00:01"
addresses = ["198.18.0.2/24"]
side = "sender"
[[host.interface]]
name = "eth2"
side = "receiver"
[[host]]
name = "dut"
roles = ["dut"]
[[host.interface]]
name = "eth1"
side = "sender"
[[host.interface]]
name = "eth2"
side = "receiver"
[[cable]]
a = "peer:eth1"
b = "dut:eth1"
switch = "s1"
speed = "10Gbit/s"
[[cable]]
a = "peer:eth2"
b = "dut:eth2"
"#;

    #[test]
    fn reader_accepts_all_keys_and_requires_required_ones() {
        let lab = Lab::parse("lab.toml", FULL).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(lab.hosts[0].reboot_timeout_ns, Some(600_000_000_000));
        assert_eq!(lab.hosts[0].online, ["ping -c 2 198.18.0.1"]);
        assert_eq!(lab.notify.url.as_deref(), Some("https://example.org/hook"));
        assert_eq!(lab.notify.command.as_ref().map(Vec::len), Some(4));
        assert_eq!((lab.lease_ns, lab.labgrid.wait_ns), (60_000_000_000, 60_000_000_000));
        assert_eq!(lab.hosts[0].place.as_deref(), Some("peer-place"));
        for section in SECTIONS {
            assert!(section.path.is_empty() || FULL.contains(&section.header()));
            for key in section.keys {
                let written = format!("\n{} = ", key.name);
                let start = FULL.find(&section.header()).expect("the table is tried");
                let at = FULL[start..].find(&written).map(|at| start + at);
                let at = at.unwrap_or_else(|| panic!("`{}` is not tried", key.name));
                // Without the line with the key's first occurrence.
                let end = FULL[at + 1..].find('\n').map_or(FULL.len(), |end| at + 1 + end);
                let without = format!("{}{}", &FULL[..at], &FULL[end..]);
                let missing = Lab::parse("lab.toml", &without)
                    .is_err_and(|faults| faults.to_string().contains("is missing"));
                // `side` is required if roles permit two, which no schema can express.
                assert_eq!(missing, key.required, "{} {}", key.name, section.place());
            }
        }
    }

    /// Every example is a value that the reader accepts for its key.
    #[test]
    fn examples_are_valid() {
        for section in SECTIONS {
            for key in section.keys.iter().filter(|key| key.kind != Kind::Text) {
                let start = FULL.find(&section.header()).expect("the table is tried");
                let written = format!("\n{} = ", key.name);
                let at = start + FULL[start..].find(&written).expect("the key is tried") + 1;
                let end = FULL[at..].find('\n').map_or(FULL.len(), |end| at + end);
                let line = format!("{} = {}", key.name, key.example);
                let text = format!("{}{line}{}", &FULL[..at], &FULL[end..]);
                let faults =
                    Lab::parse("lab.toml", &text).map_or_else(|f| f.to_string(), |_| String::new());
                assert!(!faults.contains("must be"), "{line}: {faults}");
            }
        }
    }

    #[test]
    fn schema_has_exactly_the_keys_of_the_tables() {
        let schema = schema();
        let host = &schema["properties"]["host"]["items"];
        let places = [
            &schema,
            &schema["properties"]["ssh"],
            &schema["properties"]["notify"],
            &schema["properties"]["labgrid"],
            host,
            &host["properties"]["interface"]["items"],
            &schema["properties"]["cable"]["items"],
        ];
        for (section, place) in SECTIONS.iter().zip(places) {
            assert_eq!(place["additionalProperties"], false);
            let names: Vec<&String> = place["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
                .collect();
            let below = section.below(SECTIONS).map(Section::name);
            let mut names_of_section: Vec<&str> =
                section.keys.iter().map(|key| key.name).chain(below).collect();
            names_of_section.sort_unstable();
            assert_eq!(names, names_of_section);
        }
        assert_eq!(schema["required"], serde_json::json!(["version", "name", "host", "cable"]));
        for key in SECTIONS.iter().flat_map(|section| section.keys) {
            assert!(key.doc.ends_with('.'), "{}", key.doc);
            assert_ne!(key.example, key.default, "{}", key.name);
        }
    }

    #[test]
    fn unknown_keys_are_refused() {
        for (after, place) in [
            ("version = 1\n", "at the top"),
            ("[ssh]\n", "in [ssh]"),
            ("[notify]\n", "in [notify]"),
            ("[labgrid]\n", "in [labgrid]"),
            ("[[host]]\n", "in [[host]]"),
            ("[[host.interface]]\n", "in [[host.interface]]"),
            ("[[cable]]\n", "in [[cable]]"),
        ] {
            let text = FULL.replacen(after, &format!("{after}zzzzzzzz = 1\n"), 1);
            let faults = Lab::parse("lab.toml", &text).expect_err(place).to_string();
            assert!(faults.contains(&format!("unknown key `zzzzzzzz` {place}")), "{faults}");
        }
    }
}
