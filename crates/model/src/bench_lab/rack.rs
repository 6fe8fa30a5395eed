//! Machines and connections: from the variables, and from the diagram if only the diagram has them.

use super::Source;
use super::diagram::{DiagramBox, DrawnInterface};
use crate::diagnostic::Diagnostic;
use crate::lab::{InterfaceAddress, Mac, Role, Side};
use crate::words;
use std::net::IpAddr;

/// Seconds that the harness counts as one.
const REBOOT_UNIT_S: u64 = 5;

/// The machines and their cables.
#[derive(Debug)]
pub(super) struct Rack {
    /// Senders, DUT, receiver; a machine with two roles appears once.
    pub(super) machines: Vec<Machine>,
    pub(super) cables: Vec<Cable>,
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) admin: String,
    pub(super) roles: Vec<Role>,
    pub(super) ports: Vec<Port>,
    pub(super) reboot_timeout_s: Option<u64>,
    pub(super) online: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) mac: Option<Mac>,
    pub(super) addresses: Vec<InterfaceAddress>,
    pub(super) side: Side,
}

#[derive(Debug)]
pub(super) struct Cable {
    /// Machine and interface.
    pub(super) far: (String, String),
    pub(super) dut: (String, String),
    pub(super) switch: Option<String>,
}

impl Rack {
    /// Returns the MAC of the DUT's interface towards the senders.
    pub(super) fn mac_of_dut(&self) -> Option<Mac> {
        self.ports(Role::Dut).find(|port| port.side == Side::Sender)?.mac
    }

    /// Returns the interfaces of machines with this role, on its side.
    pub(super) fn ports(&self, role: Role) -> impl Iterator<Item = &Port> {
        let machines = self.machines.iter().filter(move |machine| machine.roles.contains(&role));
        machines.flat_map(|machine| &machine.ports).filter(move |port| match role {
            Role::Dut => true,
            role => Role::from(port.side) == role,
        })
    }
}

/// The variables for one end.
struct Names {
    role: Role,
    admin: &'static str,
    interface: &'static str,
    address: &'static str,
    macs: &'static [&'static str],
}

const SENDER: Names = Names {
    role: Role::Sender,
    admin: "SENDER_ADMIN",
    interface: "SENDER_LAB_IF",
    address: "SENDER_LAB_IP",
    macs: &["SENDER_LAB_IF_MAC", "SENDER_MAC", "PKTGEN_IF_MAC_SENDER"],
};
const SECOND: Names = Names {
    role: Role::Sender,
    admin: "SENDER_ADMIN_2",
    interface: "SENDER_LAB_2_IF",
    address: "SENDER_LAB_2_IP",
    macs: &["SENDER_LAB_2_IF_MAC"],
};
const RECEIVER: Names = Names {
    role: Role::Receiver,
    admin: "RECEIVER_ADMIN",
    interface: "RECEIVER_LAB_IF",
    address: "RECEIVER_LAB_IP",
    macs: &["RECEIVER_LAB_IF_MAC"],
};

/// Builds the rack.
pub(super) fn of(source: &mut Source, drawn: &[DiagramBox]) -> Result<Rack, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let dut_admin = source.required("DUT_ADMIN", &mut faults);
    let mut ends = Vec::new();
    for names in [SENDER, SECOND, RECEIVER] {
        if names.admin == SECOND.admin && source.get(SECOND.admin).is_none() {
            continue;
        }
        let admin = source.required(names.admin, &mut faults);
        let interface = source.required(names.interface, &mut faults);
        ends.push((names.role, admin, port(source, drawn, &names, interface)));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut machines: Vec<Machine> = Vec::new();
    for (role, admin, (port, name)) in &ends {
        add(&mut machines, admin, *role, port, name.as_deref());
    }
    let dut_drawn = drawn.iter().find(|drawn| drawn.is(Role::Dut));
    let senders = ends.iter().filter(|(role, ..)| *role == Role::Sender);
    let sender = senders.flat_map(|(_, _, (port, _))| port.addresses.clone()).collect::<Vec<_>>();
    for port in dut_ports(source, dut_drawn, &sender) {
        add(&mut machines, dut_admin, Role::Dut, &port, dut_drawn.and_then(DiagramBox::name));
    }
    let machine = machines.iter_mut().find(|machine| machine.roles.contains(&Role::Dut));
    if let Some(dut) = machine {
        readiness(source, dut, dut_admin);
    }
    let mut rack = Rack { machines, cables: Vec::new() };
    cables(source, drawn, &mut rack);
    others(source, drawn);
    Ok(rack)
}

/// Returns one interface of a sender or receiver, and the name of its machine in the diagram.
fn port(
    source: &mut Source,
    drawn: &[DiagramBox],
    names: &Names,
    interface: &str,
) -> (Port, Option<String>) {
    let address = source.get(names.address);
    let parsed: Option<IpAddr> = address.and_then(|address| address.parse().ok());
    let found = drawn_port(drawn, names.role, interface, parsed);
    let mut port = Port {
        name: interface.to_owned(),
        mac: found.and_then(|(_, interface)| interface.mac),
        addresses: found.map_or_else(Vec::new, |(_, interface)| interface.addresses.clone()),
        side: if names.role == Role::Receiver { Side::Receiver } else { Side::Sender },
    };
    for &name in names.macs {
        let Some(variable) = source.variable(name) else { continue };
        match (variable.value.parse::<Mac>(), port.mac) {
            (Ok(mac), Some(other)) if mac != other => {
                source.remark(format!(
                    "line {}: {name} is {mac}, the diagram has {other}: using {mac}",
                    variable.line
                ));
                port.mac = Some(mac);
            }
            (Ok(mac), _) => port.mac = Some(mac),
            (Err(why), _) => source.remark(format!("line {}: {name}: {why}", variable.line)),
        }
    }
    match parsed {
        Some(address) => take_address(source, drawn, names, &mut port, address),
        None => {
            if let Some(address) = address {
                source.remark(format!("{}=\"{address}\" is no address", names.address));
            }
        }
    }
    (port, found.and_then(|(drawn, _)| drawn.name()).map(str::to_owned))
}

/// Returns the interface in the diagram: the one with the address, else one of a machine with this
/// role.
fn drawn_port<'a>(
    drawn: &'a [DiagramBox],
    role: Role,
    name: &str,
    address: Option<IpAddr>,
) -> Option<(&'a DiagramBox, &'a DrawnInterface)> {
    let far = drawn.iter().filter(|drawn| !drawn.is(Role::Dut) && !drawn.is_endpoint());
    let named: Vec<_> = far.filter_map(|drawn| Some((drawn, drawn.interface(name)?))).collect();
    let has = |interface: &DrawnInterface| {
        interface.addresses.iter().any(|one| Some(one.address) == address)
    };
    let by_address = named.iter().find(|(_, interface)| has(interface));
    by_address.or_else(|| named.iter().find(|(drawn, _)| drawn.is(role))).copied()
}

/// Sets the address; the variable takes precedence over the diagram.
fn take_address(
    source: &mut Source,
    drawn: &[DiagramBox],
    names: &Names,
    port: &mut Port,
    address: IpAddr,
) {
    if port.addresses.iter().any(|known| known.address == address) {
        return;
    }
    let owner = drawn.iter().find_map(|drawn| {
        let all = drawn.interfaces.iter();
        let interface =
            all.clone().find(|i| i.addresses.iter().any(|one| one.address == address))?;
        Some((drawn.name().unwrap_or("another machine").to_owned(), interface.name.clone()))
    });
    if let Some((machine, interface)) = owner {
        return source.remark(format!(
            "{} {address} belongs to {machine}'s {interface} in the diagram, not to {}: left out",
            names.address, port.name
        ));
    }
    let is_family = |known: &&InterfaceAddress| known.address.is_ipv4() == address.is_ipv4();
    let length = match port.addresses.iter().find(is_family) {
        Some(known) => {
            source.remark(format!(
                "{} is {address}, the diagram has {known}: using {address}",
                names.address
            ));
            known.length
        }
        None => {
            let length = if address.is_ipv4() { 24 } else { 64 };
            source.remark(format!(
                "nothing says the length of the prefix of {} {address}: /{length} is assumed",
                names.address
            ));
            length
        }
    };
    port.addresses.retain(|known| known.address.is_ipv4() != address.is_ipv4());
    port.addresses.insert(0, InterfaceAddress { address, length });
}

/// Returns the DUT's two interfaces, which only the diagram names.
fn dut_ports(
    source: &mut Source,
    drawn: Option<&DiagramBox>,
    sender: &[InterfaceAddress],
) -> [Port; 2] {
    let mut mac = |name: &str| source.get(name).and_then(|mac| mac.parse::<Mac>().ok());
    let macs = [mac("DUT_LAB_IF_MAC_SENDER_SIDE"), mac("DUT_LAB_IF_MAC_RECEIVER_SIDE")];
    let interfaces = drawn.map_or(&[][..], |drawn| &drawn.interfaces);
    let with = |mac: Option<Mac>| {
        interfaces.iter().position(|interface| mac.is_some() && interface.mac == mac)
    };
    let faces = |interface: &DrawnInterface| {
        interface.addresses.iter().any(|one| sender.iter().any(|other| one.shares_link_with(other)))
    };
    let near = with(macs[0]).or_else(|| interfaces.iter().position(faces));
    let far = with(macs[1]).or_else(|| (0..interfaces.len()).find(|&at| Some(at) != near));
    let near = near.or_else(|| (0..interfaces.len()).find(|&at| Some(at) != far));
    let sides = [(near, macs[0], Side::Sender), (far, macs[1], Side::Receiver)];
    let ports = sides.map(|(at, mac, side)| {
        let found = at.and_then(|at| interfaces.get(at));
        let unknown = if side == Side::Sender { "unknown0" } else { "unknown1" };
        Port {
            name: found.map_or(unknown, |interface| &interface.name).to_owned(),
            mac: mac.or(found.and_then(|interface| interface.mac)),
            addresses: found.map_or_else(Vec::new, |interface| interface.addresses.clone()),
            side,
        }
    });
    for port in &ports {
        if port.name.starts_with("unknown") {
            source.remark(format!(
                "nothing names the DUT's interface on the side of the {}: replace {} in lab.toml",
                port.side.name(),
                port.name
            ));
        }
    }
    for extra in interfaces.iter().filter(|one| ports.iter().all(|port| port.name != one.name)) {
        source.remark(format!("the DUT's {} in the diagram has no part in this", extra.name));
    }
    ports
}

/// Sets the boot timeout of the DUT, and the checks that must succeed before it counts as up.
fn readiness(source: &mut Source, dut: &mut Machine, dut_admin: &str) {
    if let Some(variable) = source.variable("REBOOT_TIMEOUT") {
        match variable.value.parse::<u64>().ok().and_then(|n| n.checked_mul(REBOOT_UNIT_S)) {
            Some(seconds @ 1..=86_400) => dut.reboot_timeout_s = Some(seconds),
            _ => source.remark(format!(
                "line {}: REBOOT_TIMEOUT=\"{}\" is no number of {REBOOT_UNIT_S} seconds",
                variable.line, variable.value
            )),
        }
    }
    let target = source.get("IS_DUT_ONLINE_TARGET").unwrap_or(dut_admin);
    let Some(variable) = source.variable("IS_DUT_ONLINE_CMD") else { return };
    let commands: Vec<&str> = variable.value.split("&&").map(str::trim).collect();
    let is_plain =
        |command: &&str| words::split(command).is_ok() && !command.contains(char::is_control);
    if target == dut_admin && commands.iter().all(is_plain) {
        dut.online = commands.into_iter().map(str::to_owned).collect();
    } else {
        source.remark(format!(
            "line {}: IS_DUT_ONLINE_CMD=\"{}\" on {target}: `online` has commands without a \
             shell, on the DUT",
            variable.line, variable.value
        ));
    }
}

/// Adds a role and an interface to the machine with this address.
fn add(machines: &mut Vec<Machine>, admin: &str, role: Role, port: &Port, drawn: Option<&str>) {
    if let Some(machine) = machines.iter_mut().find(|machine| machine.admin == admin) {
        if !machine.roles.contains(&role) {
            machine.roles.push(role);
        }
        if machine.ports.iter().all(|known| known.name != port.name) {
            machine.ports.push(port.clone());
        }
        return;
    }
    let is_name = |name: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain)
    };
    let name = drawn.filter(is_name).or(Some(admin).filter(is_name)).unwrap_or(role.name());
    let taken = machines.iter().filter(|machine| machine.name == name).count();
    let name = if taken == 0 { name.to_owned() } else { format!("{name}-{}", role.name()) };
    machines.push(Machine {
        name,
        admin: admin.to_owned(),
        roles: vec![role],
        ports: vec![port.clone()],
        reboot_timeout_s: None,
        online: Vec::new(),
    });
}

/// Adds a cable from every sender and receiver to the DUT, through any device in between.
fn cables(source: &mut Source, drawn: &[DiagramBox], rack: &mut Rack) {
    let Some(dut) = rack.machines.iter().find(|machine| machine.roles.contains(&Role::Dut)) else {
        return;
    };
    let (dut_name, dut_ports) = (dut.name.clone(), dut.ports.clone());
    let switch = drawn.iter().find(|drawn| drawn.is_switch());
    let switch = switch.map(|drawn| plain_name(&drawn.labels.join("-"), "switch"));
    let endpoint = endpoint(source, drawn);
    let many = rack.ports(Role::Sender).count() > 1;
    for machine in &mut rack.machines {
        if machine.roles.contains(&Role::Dut) {
            continue;
        }
        for port in &mut machine.ports {
            let Some(near) = dut_ports.iter().find(|near| near.side == port.side) else { continue };
            let switch = match port.side {
                Side::Receiver => endpoint.clone().or_else(|| switch.clone()),
                Side::Sender if many => Some(switch.clone().unwrap_or("switch".to_owned())),
                Side::Sender => switch.clone(),
            };
            let kept = |address: &InterfaceAddress| {
                let family = |other: &&InterfaceAddress| {
                    other.address.is_ipv4() == address.address.is_ipv4()
                };
                let mut near = near.addresses.iter().filter(family).peekable();
                near.peek().is_none() || near.any(|other| other.shares_link_with(address))
            };
            for lost in port.addresses.iter().filter(|address| !kept(address)) {
                source.remark(format!(
                    "{lost} of {}'s {} is in another network than the DUT's {}: left out",
                    machine.name, port.name, near.name
                ));
            }
            port.addresses.retain(kept);
            rack.cables.push(Cable {
                far: (machine.name.clone(), port.name.clone()),
                dut: (dut_name.clone(), near.name.clone()),
                switch,
            });
        }
    }
}

/// Returns the name of a tunnel's endpoint between DUT and receiver, which has no role: it takes
/// the place of a switch.
fn endpoint(source: &mut Source, drawn: &[DiagramBox]) -> Option<String> {
    let admin = source.get("REF_ADMIN");
    let drawn = drawn.iter().find(|drawn| drawn.is_endpoint());
    if admin.is_none() && drawn.is_none() {
        return None;
    }
    let name = plain_name(drawn.and_then(DiagramBox::name).unwrap_or_default(), "endpoint");
    let at = admin.map(|admin| format!(" ({admin})")).unwrap_or_default();
    let ports: Vec<String> = drawn
        .into_iter()
        .flat_map(|drawn| &drawn.interfaces)
        .map(|interface| {
            let addresses: Vec<String> =
                interface.addresses.iter().map(ToString::to_string).collect();
            format!("{} {}", interface.name, addresses.join(" "))
        })
        .collect();
    let ports = if ports.is_empty() { String::new() } else { format!(", {}", ports.join(", ")) };
    source.remark(format!(
        "{name}{at}{ports} is between DUT and receiver: a laboratory has no such role, so it is \
         written as that cable's switch and is not set up, rebooted or checked"
    ));
    Some(name)
}

/// Reports the other contents of the diagram.
fn others(source: &mut Source, drawn: &[DiagramBox]) {
    for drawn in drawn.iter().filter(|drawn| !drawn.others.is_empty()) {
        let name =
            drawn.name().unwrap_or(if drawn.is(Role::Dut) { "the DUT" } else { "a machine" });
        source.remark(format!("the diagram also lists for {name}: {}", drawn.others.join("; ")));
    }
}

/// Converts text to a name for a lab file.
fn plain_name(text: &str, otherwise: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = text.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() { otherwise.to_owned() } else { name.to_owned() }
}
