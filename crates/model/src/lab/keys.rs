//! Every key of a lab's file, once: the reader and the JSON Schema are made from these
//! tables.

use super::{Role, Side, System};
use serde_json::{Map, Value, json};

/// What values a key takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The integer 1.
    Version,
    /// What may stand in paths and command lines.
    Name,
    /// One line of text.
    Text,
    /// True or false.
    Boolean,
    /// Seconds at least, such as `10s`.
    Duration,
    /// List of roles.
    Roles,
    /// An operating system.
    System,
    /// A side of the DUT.
    Side,
    /// List of numbers of CPUs.
    Cpus,
    /// A program and its arguments, as a list.
    Arguments,
    /// List of commands, each in one line.
    Commands,
    /// MAC.
    Mac,
    /// List of addresses with the lengths of their prefixes.
    Addresses,
    /// A table.
    Table(&'static Section),
    /// A list of tables.
    Tables(&'static Section),
}

/// One key: name, values, whether it must be there, meaning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key(pub(super) &'static str, pub(super) Kind, bool, &'static str);

/// One table.
#[derive(Debug)]
pub(super) struct Section {
    /// Where it stands, for messages.
    pub(super) place: &'static str,
    doc: &'static str,
    pub(super) keys: &'static [Key],
}

impl Section {
    /// Names of all keys.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.0).collect()
    }
}

/// The top of the file.
pub(super) static TOP: Section = Section {
    place: "at the top of the file",
    doc: "The machines of a laboratory, and the cables between them.",
    keys: &[
        Key("version", Kind::Version, true, "Version of this format."),
        Key("name", Kind::Name, true, "Name of the laboratory."),
        Key(
            "allow_addresses",
            Kind::Boolean,
            false,
            "Permits addresses outside 198.18.0.0/15 and 2001:2::/48.",
        ),
        Key("ssh", Kind::Table(&SSH), false, "How hosts are reached."),
        Key("notify", Kind::Table(&NOTIFY), false, "Who is told when an experiment ended."),
        Key("host", Kind::Tables(&HOST), true, "The machines."),
        Key("cable", Kind::Tables(&CABLE), true, "The cables."),
    ],
};

pub(super) static SSH: Section = Section {
    place: "in [ssh]",
    doc: "How hosts are reached, over OpenSSH's own configuration.",
    keys: &[
        Key(
            "config",
            Kind::Text,
            false,
            "Configuration file instead of the user's own, relative to this file.",
        ),
        Key("connect", Kind::Duration, false, "Time to connect, whole seconds."),
        Key(
            "alive",
            Kind::Duration,
            false,
            "Silence after which a host is asked whether it lives, whole seconds.",
        ),
        Key("deadline", Kind::Duration, false, "Time that a command may take."),
    ],
};

pub(super) static NOTIFY: Section = Section {
    place: "in [notify]",
    doc: "Who is told when an experiment ended, well or not.",
    keys: &[
        Key(
            "command",
            Kind::Arguments,
            false,
            "Program of this machine that gets the summary on its standard input. {title}, {outcome} and {report} stand for the experiment's title, `finished` or `failed`, and the report's file.",
        ),
        Key("url", Kind::Text, false, "Address that gets the summary as JSON, by curl(1)."),
    ],
};

pub(super) static HOST: Section = Section {
    place: "in [[host]]",
    doc: "A machine.",
    keys: &[
        Key("name", Kind::Name, true, "As the other tables call it."),
        Key("roles", Kind::Roles, true, "What it is for."),
        Key("ssh", Kind::Text, false, "Destination for ssh; without it: this machine."),
        Key("system", Kind::System, false, "Operating system; without it the host is asked."),
        Key("cpus", Kind::Cpus, false, "CPUs for traffic."),
        Key("console", Kind::Arguments, false, "Command of this machine that shows its console."),
        Key(
            "power_cycle",
            Kind::Arguments,
            false,
            "Command of this machine that switches it off and on.",
        ),
        Key("reboot_timeout", Kind::Duration, false, "Longest time that a reboot may take."),
        Key(
            "online",
            Kind::Commands,
            false,
            "Commands on the host that must succeed before it counts as up, e.g. pings that fill the tables of switches.",
        ),
        Key("interface", Kind::Tables(&INTERFACE), true, "Its interfaces for traffic."),
    ],
};

pub(super) static INTERFACE: Section = Section {
    place: "in [[host.interface]]",
    doc: "An interface for traffic.",
    keys: &[
        Key("name", Kind::Name, true, "On the host."),
        Key("mac", Kind::Mac, false, "MAC; checked when it is written."),
        Key("addresses", Kind::Addresses, false, "Addresses with the lengths of their prefixes."),
        Key(
            "side",
            Kind::Side,
            false,
            "Whose traffic it sees; needed on the DUT, and on a host that is sender and receiver.",
        ),
    ],
};

pub(super) static CABLE: Section = Section {
    place: "in [[cable]]",
    doc: "Joins two interfaces, of which one is the DUT's.",
    keys: &[
        Key("a", Kind::Text, true, "One end, `host:interface`."),
        Key("b", Kind::Text, true, "The other end."),
        Key("switch", Kind::Name, false, "Name of a switch in between."),
    ],
};

/// JSON Schema (draft 2020-12) of a lab's file.
pub fn schema() -> Value {
    let mut root = object(&TOP);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("fwdlab laboratory");
    root
}

fn object(section: &Section) -> Value {
    let properties: Map<String, Value> = section
        .keys
        .iter()
        .map(|Key(name, kind, _, doc)| {
            let mut value = of_kind(*kind);
            value["description"] = json!(doc);
            ((*name).to_owned(), value)
        })
        .collect();
    let required: Vec<&str> = section.keys.iter().filter(|key| key.2).map(|key| key.0).collect();
    json!({
        "type": "object",
        "description": section.doc,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn of_kind(kind: Kind) -> Value {
    let list = |items: Value| json!({ "type": "array", "items": items });
    match kind {
        Kind::Version => json!({ "const": 1 }),
        Kind::Name => json!({ "type": "string", "pattern": "^[0-9A-Za-z][0-9A-Za-z._-]*$" }),
        Kind::Text => json!({ "type": "string", "minLength": 1 }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Duration => {
            json!({ "type": "string", "pattern": r"^ *[0-9._]+ *(ns|us|µs|ms|s|min) *$" })
        }
        Kind::Roles => list(json!({ "enum": Role::ALL.map(Role::name) })),
        Kind::System => json!({ "enum": System::ALL.map(System::name) }),
        Kind::Side => json!({ "enum": Side::ALL.map(Side::name) }),
        Kind::Cpus => list(json!({ "type": "integer", "minimum": 0, "maximum": u16::MAX })),
        Kind::Arguments => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
        Kind::Commands => list(json!({ "type": "string", "pattern": "[^ \\t\\n]" })),
        Kind::Mac => {
            json!({ "type": "string", "pattern": "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$" })
        }
        Kind::Addresses => list(json!({ "type": "string", "pattern": "^[0-9A-Fa-f.:]+/[0-9]+$" })),
        Kind::Table(section) => object(section),
        Kind::Tables(section) => list(object(section)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lab;

    /// A lab that is right, with every key that there is.
    const FULL: &str = r#"
version = 1
name = "two"
allow_addresses = false
[ssh]
config = "ssh_config"
connect = "5s"
alive = "5s"
deadline = "1min"
[notify]
command = ["mail", "-s", "{title}", "root"]
url = "https://example.org/hook"
[[host]]
name = "peer"
roles = ["sender", "receiver"]
ssh = "peer"
system = "linux"
cpus = [1, 2]
console = ["console", "peer"]
power_cycle = ["power", "peer"]
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
[[cable]]
a = "peer:eth2"
b = "dut:eth2"
"#;

    fn sections() -> [&'static Section; 6] {
        [&TOP, &SSH, &NOTIFY, &HOST, &INTERFACE, &CABLE]
    }

    #[test]
    fn the_reader_takes_every_key_of_the_tables_and_needs_those_that_must_be_there() {
        let lab = Lab::parse("lab.toml", FULL).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(lab.hosts[0].reboot_timeout_ns, Some(600_000_000_000));
        assert_eq!(lab.hosts[0].online, ["ping -c 2 198.18.0.1"]);
        assert_eq!(lab.notify.url.as_deref(), Some("https://example.org/hook"));
        assert_eq!(lab.notify.command.as_ref().map(Vec::len), Some(4));
        for section in sections() {
            for Key(name, kind, required, _) in section.keys {
                let header = match kind {
                    Kind::Table(_) => format!("[{name}]"),
                    Kind::Tables(section) => section.place.trim_start_matches("in ").to_owned(),
                    _ => format!("\n{name} = "),
                };
                let at = FULL.find(&header).unwrap_or_else(|| panic!("`{name}` is not tried"));
                if matches!(kind, Kind::Table(_) | Kind::Tables(_)) {
                    continue;
                }
                // Without the line that writes it first.
                let end = FULL[at + 1..].find('\n').map_or(FULL.len(), |end| at + 1 + end);
                let without = format!("{}{}", &FULL[..at], &FULL[end..]);
                let missing = Lab::parse("lab.toml", &without)
                    .is_err_and(|faults| faults.to_string().contains("is missing"));
                // `side` is needed where roles leave two, which no schema can say.
                assert_eq!(missing, *required, "{name} {}", section.place);
            }
        }
    }

    #[test]
    fn the_schema_has_the_keys_of_the_tables_and_no_others() {
        let schema = schema();
        let host = &schema["properties"]["host"]["items"];
        let places = [
            &schema,
            &schema["properties"]["ssh"],
            &schema["properties"]["notify"],
            host,
            &host["properties"]["interface"]["items"],
            &schema["properties"]["cable"]["items"],
        ];
        for (section, place) in sections().into_iter().zip(places) {
            assert_eq!(place["additionalProperties"], false);
            let names: Vec<&String> = place["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
                .collect();
            let mut own = section.names();
            own.sort_unstable();
            assert_eq!(names, own);
        }
        for Key(_, _, _, doc) in sections().into_iter().flat_map(|section| section.keys) {
            assert!(doc.ends_with('.'), "{doc}");
        }
    }

    #[test]
    fn what_the_tables_do_not_name_is_refused() {
        for (after, place) in [
            ("version = 1\n", "at the top"),
            ("[ssh]\n", "in [ssh]"),
            ("[notify]\n", "in [notify]"),
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
