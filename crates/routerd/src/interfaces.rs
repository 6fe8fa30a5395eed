//! Interfaces and neighbours in the form of the router's path.

use super::{mistake, vlans};
use fwdlab_model::router::{
    InterfaceSetup, NeighbourSetup, PortKind, ReversePathKind, RouterSetup,
};
use fwdlab_router::fib::{Address, V4, V6};
use fwdlab_router::path::{Gateway, Interface, Neighbour, Neighbours, ReversePath, Special};
use fwdlab_router::routes::{NextHops, Via};
use std::fs;
use std::net::IpAddr;

/// MTU if neither the set-up nor a device specifies one.
const MTU: u16 = 1500;

/// An interface and its name.
#[derive(Clone, Debug)]
pub(super) struct NamedInterface {
    pub(super) name: String,
    pub(super) interface: Interface,
}

/// Reads all interfaces. Interfaces in `open` are in use and keep the MACs and MTUs with which their
/// ports were opened, also if the devices have others now.
///
/// # Errors
/// User errors, and devices that do not exist.
pub(super) fn read(
    setup: &RouterSetup,
    open: &[NamedInterface],
) -> anyhow::Result<Vec<NamedInterface>> {
    vlans::check(setup)?;
    let mut all: Vec<NamedInterface> = Vec::new();
    for entry in &setup.interfaces {
        if entry.name.is_empty() || all.iter().any(|other| other.name == entry.name) {
            return Err(mistake(format!(
                "interface `{}`: every interface needs a name of its own",
                entry.name
            )));
        }
        let carrier = vlans::carrier(setup, entry);
        let device = setup.circuits.is_empty() && carrier.port != PortKind::Pcap;
        let before = open.iter().find(|named| named.name == carrier.name);
        let before = before.map(|named| &named.interface);
        let interface = one(entry, carrier, device, before)
            .map_err(|what| mistake(format!("interface {}: {what}", entry.name)))?;
        all.push(NamedInterface { name: entry.name.clone(), interface });
    }
    Ok(all)
}

/// Reads one interface; MAC and MTU default to its carrier's, `before` if it is open.
fn one(
    entry: &InterfaceSetup,
    carrier: &InterfaceSetup,
    device: bool,
    before: Option<&Interface>,
) -> Result<Interface, String> {
    let attribute = |name: &str| -> Result<Option<String>, String> {
        if !device {
            return Ok(None);
        }
        let path = format!("/sys/class/net/{}/{name}", carrier.name);
        let text = fs::read_to_string(&path);
        let text = text.map_err(|error| format!("{path}: {error}; `ip link` lists devices"))?;
        Ok(Some(text.trim().to_owned()))
    };
    let mac = match (entry.mac.as_ref().or(carrier.mac.as_ref()), before) {
        (Some(text), _) => parse_mac(text)?,
        (None, Some(before)) => before.mac,
        (None, None) => parse_mac(&attribute("address")?.ok_or("it needs a `mac`")?)?,
    };
    let limit = match (carrier.mtu, before) {
        (Some(mtu), _) => mtu,
        (None, Some(before)) => before.mtu,
        (None, None) => attribute("mtu")?.and_then(|text| text.parse().ok()).unwrap_or(MTU),
    };
    let mtu = entry.mtu.unwrap_or(limit);
    if mtu > limit && entry.parent.is_some() {
        return Err(format!("an MTU of {mtu}, and its parent's is {limit}"));
    }
    let addresses = entry.addresses.iter().map(|text| address(text));
    Ok(Interface { mac, mtu, addresses: addresses.collect::<Result<_, _>>()? })
}

/// Adds the link-local address derived from the MAC (RFC 4291 appendix A), unless the set-up
/// contains one: IPv6 routing protocols send from link-local addresses.
pub(super) fn add_link_local(interface: &mut Interface) {
    let is_link_local = |address: &IpAddr| match V6::from_ip(*address) {
        Some(V6(address)) => address >> 118 == 0xfe80 >> 6,
        None => false,
    };
    if interface.addresses.iter().any(|(address, _)| is_link_local(address)) {
        return;
    }
    let [a, b, c, d, e, f] = interface.mac;
    let low = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    interface.addresses.push((V6(0xfe80 << 112 | u128::from(low)).to_ip(), 64));
}

/// Parses `address/length`.
pub(super) fn address(text: &str) -> Result<(IpAddr, u8), String> {
    let parsed = text
        .split_once('/')
        .and_then(|(address, length)| Some((address.parse().ok()?, length.parse().ok()?)));
    parsed.ok_or_else(|| {
        format!("address `{text}`: write it with its link's length, as 198.18.0.1/24")
    })
}

/// Parses six bytes in hexadecimal.
fn parse_mac(text: &str) -> Result<[u8; 6], String> {
    let bytes: Option<Vec<u8>> =
        text.split([':', '-']).map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    let mac = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
    mac.ok_or_else(|| format!("MAC `{text}`: write it as 02:00:00:00:00:01"))
}

/// Reads all neighbours. The MAC of any next hop on a link can be resolved; a given MAC is used as
/// it is.
///
/// # Errors
/// User errors.
pub(super) fn neighbours(
    setup: &RouterSetup,
    interfaces: &[NamedInterface],
    next_hops: &NextHops,
) -> anyhow::Result<Neighbours> {
    let mut all = Neighbours::new();
    all.may_grow();
    for via in next_hops.vias() {
        let Some(next_hop) = next_hops.get(via) else { continue };
        let fault = |what: String| mistake(format!("route `{via}`: {what}"));
        let set = match target(via, next_hops, interfaces).map_err(fault)? {
            None => continue,
            Some(Ok(gateway)) => all.set_gateway(next_hop, gateway),
            Some(Err(special)) => all.set_special(next_hop, special),
        };
        set.map_err(|error| fault(error.to_string()))?;
    }
    for entry in &setup.neighbours {
        let fault = |what: String| mistake(format!("neighbour {}: {what}", entry.address));
        let address: IpAddr =
            entry.address.parse().map_err(|_| fault("this is no address".into()))?;
        let port = port_of(entry, address, interfaces).map_err(fault)?;
        let mac = entry.mac.as_deref().map(parse_mac).transpose().map_err(fault)?;
        if let (Some(mac), Some(_)) = (mac, link_of(address, interfaces)) {
            all.set_host(Gateway { port, address }, mac);
        }
        let Some(next_hop) = next_hops.get(&Via::Address(address)) else {
            continue; // no route leads there
        };
        let set = all.set_gateway(next_hop, Gateway { port, address });
        set.map_err(|error| fault(error.to_string()))?;
        if let Some(mac) = mac {
            let set = all.set(next_hop, Neighbour { port, mac });
            set.map_err(|error| fault(error.to_string()))?;
        }
    }
    all.seal();
    Ok(all)
}

/// The target of a next hop: a gateway, or something else; `None` if no link has its address.
///
/// # Errors
/// Fails if it names an interface that does not exist.
pub(super) fn target(
    via: &Via,
    next_hops: &NextHops,
    interfaces: &[NamedInterface],
) -> Result<Option<Result<Gateway, Special>>, String> {
    Ok(Some(match via {
        Via::Address(address) => match link_of(*address, interfaces) {
            Some(port) => Ok(Gateway { port, address: *address }),
            None => return Ok(None),
        },
        Via::Scoped(address, name) => {
            Ok(Gateway { port: numbered(name, interfaces)?, address: *address })
        }
        Via::Link(name) => Err(Special::Link(numbered(name, interfaces)?)),
        Via::Limited(inner, mtu) => match next_hops.get(inner) {
            Some(number) => Err(Special::Limited(number, *mtu)),
            None => return Ok(None),
        },
        Via::Blackhole => Err(Special::Blackhole),
        Via::NoRoute => Err(Special::NoRoute),
        Via::Unreachable => Err(Special::Unreachable),
        Via::Prohibit => Err(Special::Prohibit),
        Via::Host => Err(Special::Host),
        Via::Several(several) => {
            let places = several.iter().filter_map(|(via, weight)| {
                Some(std::iter::repeat_n(next_hops.get(via)?, usize::from(*weight)))
            });
            Err(Special::Several(places.flatten().collect()))
        }
    }))
}

/// The source filter of each interface.
pub(super) fn reverse_paths(setup: &RouterSetup) -> Vec<ReversePath> {
    let of = |entry: &InterfaceSetup| match entry.reverse_path {
        ReversePathKind::Off => ReversePath::Off,
        ReversePathKind::Loose => ReversePath::Loose,
        ReversePathKind::Strict => ReversePath::Strict,
    };
    setup.interfaces.iter().map(of).collect()
}

/// Number of the interface whose link has an address.
fn link_of(address: IpAddr, interfaces: &[NamedInterface]) -> Option<u8> {
    let near = |named: &NamedInterface| {
        named.interface.addresses.iter().any(|&(own, length)| same_link(own, address, length))
    };
    interfaces.iter().position(near).and_then(|at| u8::try_from(at).ok())
}

/// Number of the interface that leads to a neighbour.
fn port_of(
    entry: &NeighbourSetup,
    address: IpAddr,
    interfaces: &[NamedInterface],
) -> Result<u8, String> {
    match &entry.interface {
        Some(name) => numbered(name, interfaces),
        None => link_of(address, interfaces)
            .ok_or_else(|| "no interface's link has this address; name its `interface`".into()),
    }
}

/// Number of the interface with this name.
fn numbered(name: &str, interfaces: &[NamedInterface]) -> Result<u8, String> {
    let known = interfaces.iter().position(|other| other.name == *name);
    let known = known.and_then(|at| u8::try_from(at).ok());
    known.ok_or_else(|| format!("there is no interface `{name}`"))
}

/// True if both are addresses of a link whose prefix has this length.
fn same_link(own: IpAddr, other: IpAddr, length: u8) -> bool {
    match (V4::from_ip(own), V4::from_ip(other), V6::from_ip(own), V6::from_ip(other)) {
        (Some(a), Some(b), ..) => length <= V4::BITS && a.masked(length) == b.masked(length),
        (.., Some(a), Some(b)) => length <= V6::BITS && a.masked(length) == b.masked(length),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(interfaces: &[(&str, &str, &str)], neighbours: &[(&str, &str)]) -> RouterSetup {
        let interface = |&(name, mac, address): &(&str, &str, &str)| InterfaceSetup {
            name: name.into(),
            mac: Some(mac.into()),
            addresses: vec![address.into()],
            ..InterfaceSetup::default()
        };
        let neighbour = |&(address, mac): &(&str, &str)| NeighbourSetup {
            address: address.into(),
            mac: Some(mac.into()),
            interface: None,
        };
        RouterSetup {
            interfaces: interfaces.iter().map(interface).collect(),
            neighbours: neighbours.iter().map(neighbour).collect(),
            circuits: vec!["x".into()],
            ..RouterSetup::default()
        }
    }

    #[test]
    fn neighbour_is_on_the_interface_of_its_link() {
        let interfaces =
            [("a", "02:00:00:00:00:01", "198.18.0.1/24"), ("b", "2-0-0-0-0-2", "2001:2::1/64")];
        let setup = setup(&interfaces, &[("2001:2::7", "02:00:00:00:00:09")]);
        let read = read(&setup, &[]).expect("interfaces");
        assert_eq!((read[1].interface.mac, read[1].interface.mtu), ([2, 0, 0, 0, 0, 2], 1500));
        let mut next_hops = NextHops::default();
        let address: IpAddr = "2001:2::7".parse().expect("one");
        let hop = next_hops.number(address).expect("a number");
        let neighbours = neighbours(&setup, &read, &next_hops).expect("neighbours");
        assert_eq!(neighbours.get(hop).map(|found| found.port), Some(1));
    }

    #[test]
    fn open_interfaces_keep_mac_and_mtu() {
        let setup = RouterSetup {
            interfaces: vec![InterfaceSetup { name: "absent".into(), ..Default::default() }],
            ..RouterSetup::default()
        };
        assert!(read(&setup, &[]).is_err(), "it is no device");
        let interface = Interface { mac: [2, 0, 0, 0, 0, 7], mtu: 1400, addresses: Vec::new() };
        let open = [NamedInterface { name: "absent".into(), interface }];
        let again = read(&setup, &open).expect("it is open");
        assert_eq!((again[0].interface.mac, again[0].interface.mtu), ([2, 0, 0, 0, 0, 7], 1400));
    }

    #[test]
    fn interface_mistakes_are_reported() {
        let fault = |interfaces: &[(&str, &str, &str)], neighbour: (&str, &str)| {
            let setup = setup(interfaces, &[neighbour]);
            let found =
                read(&setup, &[]).and_then(|read| neighbours(&setup, &read, &NextHops::default()));
            found.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let good = ("a", "02:00:00:00:00:01", "198.18.0.1/24");
        let fine = ("198.18.0.2", "02:00:00:00:00:02");
        assert_eq!(fault(&[good], fine), "");
        assert!(fault(&[good, good], fine).contains("name of its own"));
        assert!(
            fault(&[("a", "02:00", "198.18.0.1/24")], fine).contains("interface a: MAC `02:00`")
        );
        assert!(fault(&[("a", good.1, "198.18.0.1")], fine).contains("198.18.0.1/24"));
        assert!(
            fault(&[good], ("198.19.0.2", fine.1)).contains("neighbour 198.19.0.2: no interface")
        );
        assert!(fault(&[good], ("x", fine.1)).contains("no address"));
    }
}
