//! The settings of the harness that ran a benchmark: `bench-lab-*.config`.
//!
//! The files are sh(1) scripts that assign variables. This module reads them and never runs them:
//! it resolves assignments with plain variables, and skips and counts everything else. Values that
//! the caller's environment set in place of a default (`: ${AF:="4"}`) are unknown here.

use fwdlab_model::shell::{Assignment, Form, assignments};
use serde::Serialize;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The variables of one file, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LabConfig {
    variables: Vec<Variable>,
    /// Number of statements that could not be parsed.
    pub skipped: usize,
}

/// A variable and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Name, e.g. `SENDER_ADMIN`.
    pub name: String,
    /// Value, with variables substituted.
    pub value: String,
    /// True if the caller's environment could have overridden it.
    pub default: bool,
}

impl LabConfig {
    /// Reads the text of a file.
    pub fn read(text: &str) -> LabConfig {
        let (assignments, skipped) = assignments(text);
        let mut config = LabConfig { variables: Vec::new(), skipped };
        for assignment in assignments {
            config.set(assignment);
        }
        config
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        let variable = self.variables.iter().find(|variable| variable.name == name)?;
        Some(&variable.value)
    }

    /// Returns the variables in order.
    pub fn iter(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter()
    }

    /// Returns the host that generates the packets, by its name in the admin network.
    pub fn sender(&self) -> Option<&str> {
        self.filled("SENDER_ADMIN")
    }

    /// Returns the host that counts the packets.
    pub fn receiver(&self) -> Option<&str> {
        self.filled("RECEIVER_ADMIN")
    }

    /// Returns the host under test.
    pub fn dut(&self) -> Option<&str> {
        self.filled("DUT_ADMIN")
    }

    /// Returns the host at the far end of a tunnel.
    pub fn reference(&self) -> Option<&str> {
        self.filled("REF_ADMIN")
    }

    /// Returns the sending interface.
    pub fn sender_interface(&self) -> Option<&str> {
        self.filled("SENDER_LAB_IF")
    }

    /// Returns the receiving interface.
    pub fn receiver_interface(&self) -> Option<&str> {
        self.filled("RECEIVER_LAB_IF")
    }

    /// Returns the command that generates the packets.
    pub fn sender_command(&self) -> Option<&str> {
        self.filled("SENDER_START_CMD")
    }

    /// Returns the command that counts the packets.
    pub fn receiver_command(&self) -> Option<&str> {
        self.filled("RECEIVER_START_CMD")
    }

    /// Returns the version of the Internet protocol, 4 or 6. The caller's environment may have
    /// selected the other one.
    pub fn ip_version(&self) -> Option<u8> {
        self.filled("AF")?.parse().ok().filter(|version| [4, 6].contains(version))
    }

    /// Returns the packet size in bytes as passed to pkt-gen: with the Ethernet header, without the
    /// FCS. Sizes below 60 are padded.
    pub fn packet_bytes(&self) -> Option<u32> {
        self.filled("PKT_SIZE")?.parse().ok()
    }

    /// Returns the number of flows: pairs of source and destination, by address and port, including
    /// the sources of a second generator.
    pub fn flows(&self) -> Option<u64> {
        let second = self.filled("SENDER_2_START_CMD").and(self.filled("SENDER_LAB_NET_2"));
        let sources = ends(self.filled("SENDER_LAB_NET")?)?;
        let sources = sources.checked_add(second.map_or(Some(0), ends)?)?;
        sources.checked_mul(ends(self.filled("RECEIVER_LAB_NET")?)?)
    }

    fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    fn set(&mut self, assignment: Assignment) {
        // Unset variables are empty, as in sh.
        let Ok(value) = assignment.resolved(|name| Some(self.get(name).unwrap_or_default())) else {
            self.skipped += 1;
            return;
        };
        let unset = assignment.form == Form::Unset;
        let (default, name) = (assignment.is_default(), assignment.name);
        match self.variables.iter_mut().find(|variable| variable.name == name) {
            Some(_) if unset => {}
            // Like `:=`, which also replaces an empty value.
            Some(variable) if default && !variable.value.is_empty() => {}
            Some(variable) => (variable.value, variable.default) = (value, default),
            None => self.variables.push(Variable { name, value, default }),
        }
    }
}

/// Number of flow endpoints in pkt-gen's `ADDRESS[:PORT][-ADDRESS[:PORT]]`: addresses times ports.
/// IPv6 addresses are in brackets if a port follows.
fn ends(range: &str) -> Option<u64> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let ((first, first_port), (last, last_port)) = (end(first)?, end(last)?);
    let ports = match (first_port, last_port) {
        (Some(first), Some(last)) => u64::from(last.checked_sub(first)?) + 1,
        _ => 1,
    };
    u64::try_from(last.checked_sub(first)?).ok()?.checked_add(1)?.checked_mul(ports)
}

/// Parses an address as a number, and its port.
fn end(text: &str) -> Option<(u128, Option<u16>)> {
    if let Some(inner) = text.strip_prefix('[') {
        let (address, port) = inner.split_once(']')?;
        let address: Ipv6Addr = address.parse().ok()?;
        let port = port.strip_prefix(':').map(str::parse).transpose().ok()?;
        return Some((address.to_bits(), port));
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some((address.to_bits(), None));
    }
    let (address, port) = match text.split_once(':') {
        Some((address, port)) => (address, Some(port.parse().ok()?)),
        None => (text, None),
    };
    Some((u128::from(address.parse::<Ipv4Addr>().ok()?.to_bits()), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "#!/bin/sh\n# Admin network IP\nSENDER_ADMIN=\"192.0.2.2\"\n\
        RECEIVER_ADMIN=${SENDER_ADMIN}\nDUT_ADMIN=\"192.0.2.10\"\nREF_ADMIN=\"\"\n\
        SENDER_LAB_IF=\"vcxl0\"\n: ${AF:=\"4\"}\n: ${PKT_SIZE:=\"43\"}\n\
        : ${SENDER_LAB_NET:=\"198.18.10.1:2001-198.18.10.71\"}\n\
        : ${RECEIVER_LAB_NET:=\"198.19.10.1:2001-198.19.10.70\"}\n\
        SENDER_START_CMD=\"pkt-gen -i ${SENDER_LAB_IF} -${AF} \\\n-l ${PKT_SIZE}\"\n\
        . /etc/other\nDATE=$(date)\n: ${AF:=\"6\"}\n";

    #[test]
    fn read_resolves_variables_and_counts_skipped_statements() {
        let config = LabConfig::read(CONFIG);
        assert_eq!(config.sender(), Some("192.0.2.2"));
        assert_eq!(config.receiver(), Some("192.0.2.2"));
        assert_eq!(config.dut(), Some("192.0.2.10"));
        assert_eq!(config.reference(), None, "empty");
        assert_eq!(config.sender_command(), Some("pkt-gen -i vcxl0 -4 -l 43"));
        assert_eq!(config.ip_version(), Some(4), "the first default holds");
        assert_eq!(config.packet_bytes(), Some(43));
        assert_eq!(config.flows(), Some(4970));
        assert_eq!(config.get("DATE"), None);
        assert_eq!(config.skipped, 2);
        let names: Vec<&str> = config.iter().map(|variable| variable.name.as_str()).collect();
        assert_eq!(names[..3], ["SENDER_ADMIN", "RECEIVER_ADMIN", "DUT_ADMIN"]);
    }

    #[test]
    fn ends_counts_addresses_times_ports() {
        for (range, expected) in [
            ("198.18.10.1:2001-198.18.10.20", Some(20)),
            ("198.18.2.1:2000-198.18.2.255:2200", Some(255 * 201)),
            ("198.19.0.11:2000", Some(1)),
            ("198.19.0.11", Some(1)),
            ("[2001:2:0:8001::1]:2001-[2001:2:0:8001::64]:2001", Some(100)),
            ("2001:2::1-2001:2::f", Some(15)),
            ("198.18.10.20-198.18.10.1", None),
            ("here-there", None),
            ("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None),
        ] {
            assert_eq!(ends(range), expected, "{range}");
        }
    }
}
