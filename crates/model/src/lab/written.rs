//! What was written: a lab's file, value by value with its place.

use super::reader::{Reader, Section};
use super::{InterfaceAddress, Mac, Notify, Role, Side, SshSetup, System, keys};
use crate::diagnostic::Diagnostic;
use crate::spec;
use std::ops::Range;
use toml::Spanned;
use toml::de::DeTable;

/// A lab's file as written.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) name: Option<String>,
    pub(super) ssh: SshSetup,
    pub(super) notify: Notify,
    pub(super) allow_addresses: bool,
    pub(super) hosts: Vec<Host>,
    pub(super) cables: Vec<Cable>,
    /// A host or interface could not be read: names that are missing may be right.
    pub(super) hosts_incomplete: bool,
    /// A cable could not be read: what seems to have none may have one.
    pub(super) cables_incomplete: bool,
}

#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: Spanned<String>,
    /// None: they could not be read.
    pub(super) roles: Option<Vec<Spanned<Role>>>,
    pub(super) ssh: Option<Spanned<String>>,
    pub(super) system: Option<System>,
    pub(super) cpus: Vec<u16>,
    pub(super) console: Option<Vec<String>>,
    pub(super) power_cycle: Option<Vec<String>>,
    pub(super) reboot_timeout_ns: Option<u64>,
    pub(super) online: Vec<String>,
    pub(super) interfaces: Vec<Interface>,
}

#[derive(Debug)]
pub(super) struct Interface {
    pub(super) name: Spanned<String>,
    pub(super) mac: Option<Spanned<Mac>>,
    pub(super) addresses: Vec<Spanned<InterfaceAddress>>,
    pub(super) side: Option<Spanned<Side>>,
    /// `side` is there and could not be read.
    pub(super) side_faulty: bool,
}

#[derive(Debug)]
pub(super) struct Cable {
    pub(super) a: Spanned<String>,
    pub(super) b: Spanned<String>,
    pub(super) switch: Option<String>,
}

const SECOND: u64 = 1_000_000_000;

/// Reads a file. Gives what could be read and every fault; nothing only when the text
/// can't be taken apart.
pub(super) fn read(text: &str) -> (Option<Written>, Vec<Diagnostic>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader::default();
    let written = reader.lab(root.get_ref());
    let mut faults = spec::merge(text, &errors, reader.faults);
    if !errors.is_empty() && faults.is_empty() {
        faults.push(Diagnostic::new(0..0, "the file can't be read as TOML"));
    }
    (errors.is_empty().then_some(written), faults)
}

impl Reader {
    fn lab(&mut self, root: &DeTable) -> Written {
        let top = self.section(root, &keys::TOP);
        match top.get("version") {
            None => self.faults.push(
                Diagnostic::new(0..0, "the version of the format is missing")
                    .help("write version = 1 at the top"),
            ),
            Some(node) if node.get_ref().as_integer().is_some_and(|v| v.as_str() == "1") => {}
            Some(node) => self.faults.push(
                Diagnostic::new(node.span(), "`version` must be the integer 1")
                    .help("this fwdlab reads version 1 of the format"),
            ),
        }
        let mut written = Written {
            name: self
                .required(top, &(0..0), "name", "\"rack\"", Reader::name)
                .map(Spanned::into_inner),
            ssh: self.ssh(top),
            notify: self.notify(top),
            allow_addresses: self
                .optional(top, "allow_addresses", Reader::boolean)
                .unwrap_or(false),
            ..Written::default()
        };
        let before = self.faults.len();
        for (span, table) in self.tables(top, "host", "[[host]]") {
            match self.host(&span, table, &mut written.hosts_incomplete) {
                Some(host) => written.hosts.push(host),
                None => written.hosts_incomplete = true,
            }
        }
        written.hosts_incomplete |= written.hosts.is_empty() && self.faults.len() > before;
        let before = self.faults.len();
        let cables = self.tables(top, "cable", "[[cable]]");
        written
            .cables
            .extend(cables.into_iter().filter_map(|(span, table)| self.cable(&span, table)));
        written.cables_incomplete = self.faults.len() > before;
        written
    }

    fn ssh(&mut self, top: Section) -> SshSetup {
        let Some(node) = top.get("ssh") else { return SshSetup::default() };
        let Some(table) = node.get_ref().as_table() else {
            self.faults.push(
                Diagnostic::new(node.span(), "`ssh` must be a table here").help(
                    "write [ssh] and its keys below; a host's destination stands in [[host]]",
                ),
            );
            return SshSetup::default();
        };
        let ssh = self.section(table, &keys::SSH);
        let mut seconds = |name, whole| {
            self.optional(ssh, name, |reader, name, node| {
                reader.duration(name, node, SECOND, whole)
            })
        };
        SshSetup {
            connect_ns: seconds("connect", true),
            alive_ns: seconds("alive", true),
            deadline_ns: seconds("deadline", false),
            config: self.optional(ssh, "config", Reader::text).map(Spanned::into_inner),
        }
    }

    fn notify(&mut self, top: Section) -> Notify {
        let Some(node) = top.get("notify") else { return Notify::default() };
        let Some(table) = node.get_ref().as_table() else {
            self.faults.push(
                Diagnostic::new(node.span(), "`notify` must be a table")
                    .help("write [notify] and its keys below"),
            );
            return Notify::default();
        };
        let notify = self.section(table, &keys::NOTIFY);
        let url = self.optional(notify, "url", Reader::text);
        if let Some(url) = &url
            && !["http://", "https://"].iter().any(|scheme| url.get_ref().starts_with(scheme))
        {
            self.faults.push(
                Diagnostic::new(url.span(), "`url` must be an address of the web")
                    .help("write url = \"https://...\""),
            );
        }
        Notify {
            command: self.optional(notify, "command", Reader::command),
            url: url.map(Spanned::into_inner),
        }
    }

    fn host(
        &mut self,
        span: &Range<usize>,
        table: &DeTable,
        incomplete: &mut bool,
    ) -> Option<Host> {
        let host = self.section(table, &keys::HOST);
        let name = self.required(host, span, "name", "\"dut\"", Reader::name);
        let roles = self.required(host, span, "roles", "[\"dut\"]", |reader, name, node| {
            reader.list(name, node, |reader, name, node| {
                reader.word(name, node, Role::ALL.map(|role| (role.name(), role)))
            })
        });
        let ssh = self.optional(host, "ssh", Reader::text);
        let system = self.optional(host, "system", |reader, name, node| {
            reader.word(name, node, System::ALL.map(|system| (system.name(), system)))
        });
        let cpus = self
            .optional(host, "cpus", |reader, name, node| reader.list(name, node, Reader::cpu))
            .unwrap_or_default();
        let console = self.optional(host, "console", Reader::command);
        let power_cycle = self.optional(host, "power_cycle", Reader::command);
        let reboot_timeout_ns = self.optional(host, "reboot_timeout", |reader, name, node| {
            reader.duration(name, node, SECOND, false)
        });
        let online = self
            .optional(host, "online", |reader, name, node| {
                reader.list(name, node, Reader::command_line)
            })
            .unwrap_or_default();
        let mut interfaces = Vec::new();
        for (span, table) in self.tables(host, "interface", "[[host.interface]]") {
            match self.interface(&span, table) {
                Some(interface) => interfaces.push(interface),
                None => *incomplete = true,
            }
        }
        let system = system.map(Spanned::into_inner);
        Some(Host {
            name: name?,
            roles,
            ssh,
            system,
            cpus,
            console,
            power_cycle,
            reboot_timeout_ns,
            online,
            interfaces,
        })
    }

    fn interface(&mut self, span: &Range<usize>, table: &DeTable) -> Option<Interface> {
        let interface = self.section(table, &keys::INTERFACE);
        let name = self.required(interface, span, "name", "\"eth1\"", Reader::name);
        let mac = self.optional(interface, "mac", Reader::parsed);
        let addresses = self
            .optional(interface, "addresses", |reader, name, node| {
                reader.list(name, node, Reader::parsed)
            })
            .unwrap_or_default();
        let side = self.optional(interface, "side", |reader, name, node| {
            reader.word(name, node, Side::ALL.map(|side| (side.name(), side)))
        });
        let side_faulty = side.is_none() && interface.get("side").is_some();
        Some(Interface { name: name?, mac, addresses, side, side_faulty })
    }

    fn cable(&mut self, span: &Range<usize>, table: &DeTable) -> Option<Cable> {
        let cable = self.section(table, &keys::CABLE);
        let a = self.required(cable, span, "a", "\"sender:eth1\"", Reader::text);
        let b = self.required(cable, span, "b", "\"dut:eth1\"", Reader::text);
        let switch = self.optional(cable, "switch", Reader::name).map(Spanned::into_inner);
        Some(Cable { a: a?, b: b?, switch })
    }
}
