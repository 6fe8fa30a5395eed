//! Raw lab file: values with their places.

use super::{InterfaceAddress, LEASE_NS, Labgrid, Mac, Notify, Role, Side, SshSetup, System, keys};
use crate::diagnostic::Diagnostic;
use crate::spec::{self, Reader, Section};
use toml::Spanned;
use toml::de::DeTable;

/// A lab's file before validation.
#[derive(Debug, Default)]
pub(super) struct RawLab {
    pub(super) name: Option<String>,
    pub(super) ssh: SshSetup,
    pub(super) notify: Notify,
    pub(super) lease_ns: u64,
    pub(super) labgrid: Labgrid,
    pub(super) allow_addresses: bool,
    pub(super) hosts: Vec<Host>,
    pub(super) cables: Vec<Cable>,
    /// True if a host or interface could not be read: missing names may be valid.
    pub(super) hosts_incomplete: bool,
    /// True if a cable could not be read: an interface without a cable may have one.
    pub(super) cables_incomplete: bool,
}

#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: Spanned<String>,
    /// `None` if they could not be read.
    pub(super) roles: Option<Vec<Spanned<Role>>>,
    pub(super) ssh: Option<Spanned<String>>,
    pub(super) system: Option<System>,
    pub(super) cpus: Vec<u16>,
    pub(super) console: Option<Vec<String>>,
    pub(super) power_cycle: Option<Vec<String>>,
    pub(super) place: Option<Spanned<String>>,
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
    /// True if `side` is present and could not be read.
    pub(super) side_faulty: bool,
}

#[derive(Debug)]
pub(super) struct Cable {
    pub(super) a: Spanned<String>,
    pub(super) b: Spanned<String>,
    pub(super) switch: Option<String>,
    pub(super) speed_bps: Option<u64>,
}

/// Reads a file. Returns everything readable and every fault; `None` only if the text cannot be
/// parsed.
pub(super) fn read(text: &str) -> (Option<RawLab>, Vec<Diagnostic>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    // No value of these tables names a file whose content is read here.
    let loader = |_: &str| Err(String::new());
    let mut reader = Reader { file: keys::SECTIONS, loader: &loader, faults: Vec::new() };
    let written = reader.laboratory(root.get_ref());
    let mut faults = spec::merge(text, &errors, reader.faults);
    if !errors.is_empty() && faults.is_empty() {
        faults.push(Diagnostic::new(0..0, "the file can't be read as TOML"));
    }
    (errors.is_empty().then_some(written), faults)
}

impl Reader<'_> {
    fn laboratory(&mut self, root: &DeTable) -> RawLab {
        let top = self.top(root);
        self.version(&top);
        let mut written = RawLab {
            name: self.required(&top, "name", Reader::name).map(Spanned::into_inner),
            ssh: self.ssh(&top),
            notify: self.notify(&top),
            lease_ns: top
                .read("lease", |key, node| self.duration_ns(key, node))
                .unwrap_or(LEASE_NS),
            labgrid: self.labgrid(&top),
            allow_addresses: top
                .read("allow_addresses", |key, node| self.boolean(key, node))
                .unwrap_or(false),
            ..RawLab::default()
        };
        match self.tables(&top, &keys::HOST) {
            None => written.hosts_incomplete = true,
            Some(hosts) => {
                for host in hosts {
                    match host.and_then(|host| self.host(&host, &mut written.hosts_incomplete)) {
                        Some(host) => written.hosts.push(host),
                        None => written.hosts_incomplete = true,
                    }
                }
            }
        }
        let before = self.faults.len();
        let cables = self.tables(&top, &keys::CABLE).unwrap_or_default();
        written.cables.extend(cables.into_iter().flatten().filter_map(|table| self.cable(&table)));
        written.cables_incomplete = self.faults.len() > before;
        written
    }

    fn ssh(&mut self, top: &Section) -> SshSetup {
        let ssh = self.table(top, &keys::SSH);
        let mut time = |name| ssh.read(name, |key, node| self.duration_ns(key, node));
        SshSetup {
            connect_ns: time("connect"),
            alive_ns: time("alive"),
            deadline_ns: time("deadline"),
            config: ssh.read("config", |key, node| self.text(key, node)),
            one_shell: ssh
                .read("one_shell", |key, node| self.boolean(key, node))
                .unwrap_or_default(),
        }
    }

    fn notify(&mut self, top: &Section) -> Notify {
        let notify = self.table(top, &keys::NOTIFY);
        let url = notify.read_spanned("url", |key, node| self.text(key, node));
        if let Some(url) = &url
            && !["http://", "https://"].iter().any(|scheme| url.get_ref().starts_with(scheme))
        {
            self.faults.push(
                Diagnostic::new(url.span(), "`url` must be an address of the web")
                    .help("write url = \"https://...\""),
            );
        }
        Notify {
            command: notify.read("command", |key, node| self.arguments(key, node)),
            url: url.map(Spanned::into_inner),
        }
    }

    fn labgrid(&mut self, top: &Section) -> Labgrid {
        let labgrid = self.table(top, &keys::LABGRID);
        let default = Labgrid::default();
        Labgrid {
            coordinator: labgrid.read("coordinator", |key, node| self.text(key, node)),
            client: labgrid
                .read("client", |key, node| self.text(key, node))
                .unwrap_or(default.client),
            wait_ns: labgrid
                .read("wait", |key, node| self.duration_ns(key, node))
                .unwrap_or(default.wait_ns),
        }
    }

    fn host(&mut self, host: &Section, incomplete: &mut bool) -> Option<Host> {
        let name = self.required(host, "name", Reader::name);
        let roles =
            self.required(host, "roles", |reader, key, node| reader.list(key, node, Reader::word));
        let roles = roles.map(Spanned::into_inner);
        let ssh = host.read_spanned("ssh", |key, node| self.text(key, node));
        let system = host.read("system", |key, node| self.word(key, node));
        let cpus = host.read("cpus", |key, node| self.list(key, node, Reader::integer));
        let console = host.read("console", |key, node| self.arguments(key, node));
        let power_cycle = host.read("power_cycle", |key, node| self.arguments(key, node));
        let place = host.read_spanned("place", |key, node| self.name(key, node));
        let timeout = host.read("reboot_timeout", |key, node| self.duration_ns(key, node));
        let online = host.read("online", |key, node| self.commands(key, node));
        let mut interfaces = Vec::new();
        match self.tables(host, &keys::INTERFACE) {
            None => *incomplete = true,
            Some(tables) => {
                for table in tables {
                    match table.and_then(|table| self.interface(&table)) {
                        Some(interface) => interfaces.push(interface),
                        None => *incomplete = true,
                    }
                }
            }
        }
        Some(Host {
            name: name?,
            roles,
            ssh,
            system,
            cpus: cpus.into_iter().flatten().map(Spanned::into_inner).collect(),
            console,
            power_cycle,
            place,
            reboot_timeout_ns: timeout,
            online: online.unwrap_or_default(),
            interfaces,
        })
    }

    fn interface(&mut self, interface: &Section) -> Option<Interface> {
        let name = self.required(interface, "name", Reader::name);
        let mac = interface.read_spanned("mac", |key, node| self.parsed(key, node));
        let addresses =
            interface.read("addresses", |key, node| self.list(key, node, Reader::parsed));
        let side = interface.read_spanned("side", |key, node| self.word(key, node));
        let side_faulty = side.is_none() && interface.get("side").is_some();
        let addresses = addresses.unwrap_or_default();
        Some(Interface { name: name?, mac, addresses, side, side_faulty })
    }

    fn cable(&mut self, cable: &Section) -> Option<Cable> {
        let a = self.required(cable, "a", Reader::text);
        let b = self.required(cable, "b", Reader::text);
        let switch = cable.read("switch", |key, node| self.name(key, node));
        let speed_bps = cable.read("speed", |key, node| self.bit_rate(key, node));
        Some(Cable { a: a?, b: b?, switch, speed_bps })
    }
}
