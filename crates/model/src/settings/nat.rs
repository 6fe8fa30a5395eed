//! Address translation by the DUT, and the packets on both sides of it.

use super::{DutKind, GeneratorKind, Settings};
use fwdlab_packet::stream::{DESTINATION_PORT, Endpoints};
use fwdlab_packet::{Stream, named};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

named! {
    /// Addresses that the DUT translates.
    pub enum Nat default None {
        /// No translation: packets keep their addresses.
        None = "none",
        /// The source address becomes the egress interface's (masquerade, SNAT).
        Source = "source",
        /// The destination, an address of the DUT or a virtual one, becomes the receiver's (DNAT,
        /// port forwarding).
        Destination = "destination",
        /// Both of these.
        Both = "both",
    }
}

impl Nat {
    /// True if the DUT replaces source addresses.
    pub fn is_of_sources(self) -> bool {
        matches!(self, Nat::Source | Nat::Both)
    }

    /// True if the DUT replaces destination addresses.
    pub fn is_of_destinations(self) -> bool {
        matches!(self, Nat::Destination | Nat::Both)
    }

    /// True for the default, which adds nothing to a plan's hash.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Settings {
    /// Returns the packets as sent: to [`TrafficSettings::stream`](super::TrafficSettings::stream)'s
    /// destinations, or to the addresses that the DUT translates into them. `ingress` is the DUT's
    /// address on the sender's side. Returns `None` if the destination is unknown.
    pub fn sent_stream(&self, ingress: Option<IpAddr>) -> Option<Stream> {
        let stream = self.traffic.stream();
        if !self.dut.nat.is_of_destinations() {
            return Some(stream);
        }
        if !self.has_valid_target() {
            return None;
        }
        let endpoints = Endpoints {
            destination: self.dut.nat_address.or(ingress)?,
            destination_port: self.dut.nat_port.unwrap_or(DESTINATION_PORT),
            ..stream.endpoints()
        };
        Some(Stream { endpoints: Some(endpoints), ..stream })
    }

    /// Describes the addresses along the packets' path, for reports.
    pub fn translation(&self) -> String {
        let destinations = || {
            let port = self.dut.nat_port.map(|port| format!(" port {port}")).unwrap_or_default();
            let from = match self.dut.nat_address {
                Some(address) => address.to_string(),
                None => "the device's own".to_owned(),
            };
            format!("destination (from {from}{port} to the receiver's)")
        };
        let source = "source (to the egress interface's)";
        match self.dut.nat {
            Nat::None => "unchanged".to_owned(),
            Nat::Source => format!("translated at the {source}"),
            Nat::Destination => format!("translated at the {}", destinations()),
            Nat::Both => format!("translated at the {source} and the {}", destinations()),
        }
    }

    /// Returns the fault of translation that nothing performs or checks, and the remedy; `None` if
    /// packets are translated and checked.
    pub(crate) fn lacks_translator(&self) -> Option<(&'static str, &'static str)> {
        let is_checked = self.traffic.generator == GeneratorKind::Fwdlab;
        let is_possible = is_checked && self.dut.kind != DutKind::Router;
        (self.dut.nat != Nat::None && !is_possible).then_some((
            "`nat` is for packets of fwdlab's own, through a device that is not fwdlab's router",
            "leave it out, or write it into the levels of the other devices and generators",
        ))
    }

    /// Returns the fault of destinations to which packets cannot be sent, and the remedy; `None` if
    /// they can.
    pub(crate) fn lacks_target(&self) -> Option<(&'static str, &'static str)> {
        match self.dut.nat_address {
            _ if self.has_valid_target() => None,
            None => Some((
                "`nat` needs an address for each destination to send to, and the device's own is \
                 for one destination",
                "write nat_address = \"203.0.113.0\" next to it, or flows with destinations = 1 in \
                 [traffic]",
            )),
            Some(_) => Some((
                "`nat_address` must be a unicast address of the traffic's family, with room for all \
                 destinations above it",
                "write e.g. nat_address = \"203.0.113.0\"",
            )),
        }
    }

    /// True if the DUT translates no destinations, or packets can be sent to the address before
    /// translation: a unicast address of the traffic's family, with room for all destinations. The
    /// DUT has one address, so several destinations need a virtual one.
    pub(crate) fn has_valid_target(&self) -> bool {
        match self.dut.nat_address {
            _ if !self.dut.nat.is_of_destinations() => true,
            None => self.traffic.flows.destinations == 1,
            Some(address) => {
                let (family, flows) = (self.traffic.family, self.traffic.flows);
                let endpoints = Endpoints { destination: address, ..Endpoints::planned(family) };
                let fits = endpoints.are_of(family) && endpoints.have_room_for(flows);
                fits && is_unicast(address) && is_unicast(last(address, flows.destinations))
            }
        }
    }
}

/// True if packets can be sent to an address through a router.
fn is_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !address.is_loopback() && !is_broadcast
}

/// The last of `count` addresses from the first one on.
fn last(first: IpAddr, count: u32) -> IpAddr {
    let more = count.saturating_sub(1);
    match first {
        IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().saturating_add(more)).into(),
        IpAddr::V6(first) => {
            Ipv6Addr::from_bits(first.to_bits().saturating_add(more.into())).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_stream_goes_to_the_translated_destination() {
        let own: IpAddr = "198.18.0.1".parse().expect("an address");
        let mut settings = Settings::default();
        let plain = settings.traffic.stream();
        assert_eq!(settings.sent_stream(Some(own)), Some(plain));
        settings.dut.nat = Nat::Destination;
        assert_eq!(settings.sent_stream(Some(own)), None);
        settings.traffic.flows.destinations = 1;
        assert_eq!(settings.sent_stream(None), None);
        let sent = |settings: &Settings| {
            settings.sent_stream(Some(own)).map(|stream| {
                let Endpoints { destination, destination_port, source, .. } = stream.endpoints();
                assert_eq!(source, plain.endpoints().source);
                (destination.to_string(), destination_port)
            })
        };
        assert_eq!(sent(&settings), Some(("198.18.0.1".to_owned(), 7)));
        settings.dut.nat_address = "203.0.113.0".parse().ok();
        settings.dut.nat_port = Some(8080);
        assert_eq!(sent(&settings), Some(("203.0.113.0".to_owned(), 8080)));
    }

    #[test]
    fn target_needs_family_and_room_for_all_destinations() {
        let mut settings = Settings::default();
        assert!(settings.has_valid_target());
        settings.dut.nat = Nat::Destination;
        for (address, is_valid) in [
            ("203.0.113.0", true),
            ("255.255.255.200", false),
            ("2001:2::1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("127.0.0.1", false),
            // The last destination is a group.
            ("223.255.255.250", false),
        ] {
            settings.dut.nat_address = address.parse().ok();
            assert_eq!(settings.has_valid_target(), is_valid, "{address}");
        }
        // The device has one address.
        settings.dut.nat_address = None;
        assert!(!settings.has_valid_target());
        settings.traffic.flows.destinations = 1;
        assert!(settings.has_valid_target());
    }
}
