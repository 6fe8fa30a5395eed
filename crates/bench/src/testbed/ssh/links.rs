//! Interfaces and addresses on the DUT's two sides: from the lab file, completed by the hosts
//! (MACs) and by the benchmark's address plan.

use super::rack::Rack;
use crate::error::BenchError;
use crate::host::connected::ConnectedHost;
use crate::lab::protected_routes;
use crate::lab::{link, mac_of};
use crate::links::ProtectedRoute;
use crate::links::{self, Link, Links, Peer};
use fwdlab_model::lab::{InterfaceAddress, LabHost, LabInterface, Side};
use fwdlab_packet::Family;
use fwdlab_packet::address::{self, flow_address};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Queries the hosts for details that the lab file leaves out.
///
/// # Errors
/// Returns an error if an interface is missing, or if addresses conflict with each other or with
/// the test's flows.
pub(super) fn resolve(rack: &Rack) -> Result<Links, BenchError> {
    let (ingress, egress) = (side(rack, Side::Sender)?, side(rack, Side::Receiver)?);
    let mut links = Links { ingress, egress, ways: Vec::new() };
    for reached in rack.all() {
        links.ways.extend(protected_routes::ends(reached.host(), &reached.described.name)?);
    }
    let dut = rack.dut()?;
    let more = protected_routes::networks(dut.host(), dut.system, &dut.described.name, &links)?;
    let link_routes = links.both().into_iter().flat_map(|link| {
        let whose = format!("the other end of {}", link.interface);
        link.addresses.iter().map(move |&network| ProtectedRoute { network, whose: whose.clone() })
    });
    let link_routes: Vec<ProtectedRoute> = link_routes.collect();
    links.ways.extend(more.into_iter().chain(link_routes));
    Ok(links)
}

fn side(rack: &Rack, side: Side) -> Result<Link, BenchError> {
    let dut = rack.dut()?;
    let (name, own) = (&dut.described.name, &dut.described);
    let described = own.interfaces.iter().find(|interface| interface.side == side);
    let described = described.ok_or_else(|| {
        BenchError::Refused(format!("{name} has no interface on the {}'s side", side.name()))
    })?;
    let mut addresses = Vec::new();
    for family in [Family::Inet, Family::Inet6] {
        let written = of_family(&described.addresses, family);
        let plan = links::prefix(address::dut_address(family, side));
        addresses.extend(written.map(|a| (a.address, a.length)).or(plan));
    }
    check_flows(name, &addresses)?;
    let mut peers = Vec::new();
    for cable in rack.lab.cables.iter().filter(|cable| cable.dut.interface == described.name) {
        let far = rack.named(&cable.far.host)?;
        let interface = interface_of(&far.described, &cable.far.interface)?;
        peers.push(Peer {
            host: far.described.name.clone(),
            interface: interface.name.clone(),
            mac: mac(far, interface)?,
            addresses: peer_addresses(interface, &addresses, side, peers.len(), far)?,
        });
    }
    Ok(Link { interface: described.name.clone(), mac: mac(dut, described)?, addresses, peers })
}

/// Line rate of the slower side of the DUT, bits per second: as stated in the lab file, otherwise
/// as negotiated by the interfaces; `None` if either is unknown.
pub(super) fn line_rate_bps(rack: &Rack, links: &Links) -> Option<u64> {
    let dut = rack.dut().ok()?;
    let of = |link: &Link| {
        let cables = rack.lab.cables.iter().filter(|cable| cable.dut.interface == link.interface);
        let stated = cables.filter_map(|cable| cable.speed_bps).min();
        stated.or_else(|| link::line_rate_bps(dut.host(), dut.system, &link.interface))
    };
    let [ingress, egress] = links.both();
    Some(of(ingress)?.min(of(egress)?))
}

fn interface_of<'a>(host: &'a LabHost, name: &str) -> Result<&'a LabInterface, BenchError> {
    let interface = host.interfaces.iter().find(|interface| interface.name == name);
    interface.ok_or_else(|| BenchError::Refused(format!("{} has no interface {name}", host.name)))
}

/// Returns the MAC of an interface as reported by the host; it must match the MAC in the lab file,
/// if given.
fn mac(reached: &ConnectedHost, interface: &LabInterface) -> Result<[u8; 6], BenchError> {
    let live = mac_of(reached.host(), reached.system, &interface.name)?;
    match interface.mac {
        Some(written) if written.0 != live => Err(BenchError::environment(
            format!(
                "the MAC of {} on {} is another than in the lab's file, {written}",
                interface.name, reached.described.name
            ),
            "correct the file, or see whether names of interfaces have changed places",
        )),
        _ => Ok(live),
    }
}

/// Returns one address per family: from the file, otherwise from the plan if it is in the DUT's
/// network.
fn peer_addresses(
    interface: &LabInterface,
    dut: &[(IpAddr, u8)],
    side: Side,
    number: usize,
    far: &ConnectedHost,
) -> Result<Vec<IpAddr>, BenchError> {
    let mut addresses = Vec::new();
    for &(own, length) in dut {
        let family = if own.is_ipv4() { Family::Inet } else { Family::Inet6 };
        if let Some(written) = of_family(&interface.addresses, family) {
            addresses.push(written.address);
            continue;
        }
        let plan = address::peer_address(family, side).parse::<IpAddr>().ok();
        let plan = plan.and_then(|address| nth(address, number));
        match plan.filter(|address| is_within(*address, own, length) && *address != own) {
            Some(address) => addresses.push(address),
            None => {
                return Err(BenchError::Refused(format!(
                    "{}:{} needs an address in {own}/{length}, the DUT's: write it into the \
                     lab's file",
                    far.described.name, interface.name
                )));
            }
        }
    }
    Ok(addresses)
}

/// Returns the address `number` after another one.
fn nth(address: IpAddr, number: usize) -> Option<IpAddr> {
    match address {
        IpAddr::V4(first) => {
            first.to_bits().checked_add(number as u32).map(|bits| Ipv4Addr::from(bits).into())
        }
        IpAddr::V6(first) => {
            first.to_bits().checked_add(number as u128).map(|bits| Ipv6Addr::from(bits).into())
        }
    }
}

fn of_family(addresses: &[InterfaceAddress], family: Family) -> Option<&InterfaceAddress> {
    addresses.iter().find(|a| a.address.is_ipv4() == (family == Family::Inet))
}

fn is_within(address: IpAddr, network: IpAddr, length: u8) -> bool {
    let of = |address| InterfaceAddress { address, length };
    of(address).shares_link_with(&of(network))
}

/// Checks that flow addresses are not on-link for the DUT: it would have to resolve the MAC of
/// each.
fn check_flows(dut: &str, addresses: &[(IpAddr, u8)]) -> Result<(), BenchError> {
    for &(network, length) in addresses {
        for family in [Family::Inet, Family::Inet6] {
            for side in [Side::Sender, Side::Receiver] {
                let flow = flow_address(family, side, 0);
                if is_within(flow, network, length) {
                    return Err(BenchError::Refused(format!(
                        "{network}/{length} of {dut} holds {flow}, an address of the test's \
                         flows: take a longer prefix, as in {}",
                        address::dut_address(family, side)
                    )));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_addresses_on_a_link_are_refused() {
        let check = |text: &str| check_flows("dut", &[links::prefix(text).expect("a prefix")]);
        for good in ["198.18.0.1/24", "10.0.0.1/24", "2001:2::1/64", "2001:2:0:8000::1/64"] {
            check(good).expect(good);
        }
        for bad in ["198.18.0.1/16", "198.19.0.1/20", "2001:2::1/48"] {
            let error = check(bad).expect_err(bad).to_string();
            assert!(error.contains("longer prefix"), "{error}");
        }
    }

    #[test]
    fn second_sender_gets_the_next_address() {
        let first: IpAddr = "198.18.0.2".parse().expect("an address");
        assert_eq!(nth(first, 1).map(|a| a.to_string()).as_deref(), Some("198.18.0.3"));
        assert!(is_within(first, "198.18.0.1".parse().expect("an address"), 24));
        assert!(!is_within(first, "198.19.0.1".parse().expect("an address"), 24));
    }
}
