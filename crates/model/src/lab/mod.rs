//! A laboratory of several machines: `lab.toml`.
//!
//! The file says which hosts there are, what each is for, how it is reached, and which
//! cable joins which interfaces. It is read twice, as an experiment is: what was written,
//! value by value with its place, and then what it means. Every fault is found at once.
//!
//! Left out on purpose: what is tested (that is the experiment's), and whether the
//! machines are as the file says, for which they must be asked.

mod address;
mod draw;
pub mod keys;
mod raw;
mod validate;

pub use address::{AddressError, InterfaceAddress, Mac};
pub use fwdlab_packet::Side;
pub use keys::{reference, schema};

pub use crate::system::System;

use crate::diagnostic::Diagnostics;
use fwdlab_packet::named;
use serde::Serialize;
use std::fmt;

/// A laboratory that may be relied upon: one DUT with cables on both sides, one or two
/// senders, one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lab {
    /// Name.
    pub name: String,
    /// How hosts are reached.
    pub ssh: SshSetup,
    /// Notifications at the end of an experiment.
    pub notify: Notify,
    /// Time for which each host is held, nanoseconds.
    pub lease_ns: u64,
    /// How places of labgrid are had.
    pub labgrid: Labgrid,
    /// Hosts in the order of the file, two to four.
    pub hosts: Vec<LabHost>,
    /// Cables in the order of the file.
    pub cables: Vec<Cable>,
}

/// How hosts are reached, where the file says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SshSetup {
    /// Configuration file of `ssh`, relative to the lab's file, instead of the user's own.
    pub config: Option<String>,
    /// Time to connect, nanoseconds; whole seconds.
    pub connect_ns: Option<u64>,
    /// Silence after which a host is asked whether it lives, nanoseconds; whole seconds.
    pub alive_ns: Option<u64>,
    /// Time that a command may take, nanoseconds.
    pub deadline_ns: Option<u64>,
    /// Whether one shell on each host runs all its commands.
    pub one_shell: bool,
}

/// Notifications at the end of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Notify {
    /// Program of this machine with its arguments; it gets the summary on its standard
    /// input. `{title}`, `{outcome}` and `{report}` are replaced in each argument.
    pub command: Option<Vec<String>>,
    /// Address that gets the summary as JSON.
    pub url: Option<String>,
}

/// How places of labgrid are reserved and given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Labgrid {
    /// Address of the coordinator, `host:port`; none: what labgrid takes.
    pub coordinator: Option<String>,
    /// The program `labgrid-client`.
    pub client: String,
    /// Time to wait for the reservation of a place, nanoseconds.
    pub wait_ns: u64,
}

impl Default for Labgrid {
    fn default() -> Labgrid {
        Labgrid { coordinator: None, client: "labgrid-client".into(), wait_ns: 30_000_000_000 }
    }
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabHost {
    /// Name in this file.
    pub name: String,
    /// What it is for.
    pub roles: Vec<Role>,
    /// Destination for `ssh`; none: this machine.
    pub ssh: Option<String>,
    /// Operating system; none: to be found out.
    pub system: Option<System>,
    /// CPUs for traffic; none: to be chosen.
    pub cpus: Vec<u16>,
    /// Command that shows its console.
    pub console: Option<Vec<String>>,
    /// Command that switches it off and on.
    pub power_cycle: Option<Vec<String>>,
    /// Its place in labgrid.
    pub place: Option<String>,
    /// Longest time that a reboot may take, nanoseconds.
    pub reboot_timeout_ns: Option<u64>,
    /// Commands on the host, as [`crate::words::split`] reads them, that must succeed
    /// before it counts as up.
    pub online: Vec<String>,
    /// Interfaces for traffic.
    pub interfaces: Vec<LabInterface>,
}

impl LabHost {
    /// True when it has this role.
    pub fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

named! {
    /// What a host is for.
    pub enum Role {
        /// Sends traffic.
        Sender = "sender",
        /// Counts what arrives.
        Receiver = "receiver",
        /// Is tested: forwards.
        Dut = "dut",
    }
}

impl From<Side> for Role {
    /// The role of hosts at the far end of a DUT's interface of this side.
    fn from(side: Side) -> Role {
        match side {
            Side::Sender => Role::Sender,
            Side::Receiver => Role::Receiver,
        }
    }
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabInterface {
    /// Name on its host.
    pub name: String,
    /// MAC, when the file says it.
    pub mac: Option<Mac>,
    /// Addresses with the lengths of their prefixes.
    pub addresses: Vec<InterfaceAddress>,
    /// Which traffic it sees.
    pub side: Side,
}

/// One end of a cable: names that are found among the hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// Host.
    pub host: String,
    /// Its interface.
    pub interface: String,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.interface)
    }
}

/// A cable between the DUT and another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cable {
    /// At the DUT.
    pub dut: End,
    /// At the sender or receiver.
    pub far: End,
    /// Name of a switch between the ends.
    pub switch: Option<String>,
    /// Line rate that the file states, bits per second.
    pub speed_bps: Option<u64>,
}

/// Time for which a host is held where the file does not say it.
const LEASE_NS: u64 = 300_000_000_000;

impl Lab {
    /// Reads and judges a lab's file. `path` is what the user called it.
    ///
    /// # Errors
    /// Every fault of the file at once.
    pub fn parse(path: &str, text: &str) -> Result<Lab, Diagnostics> {
        let (written, mut faults) = raw::read(text);
        let lab = written.map(|written| {
            let (lab, more) = validate::judge(&written);
            faults.extend(more);
            lab
        });
        match lab {
            Some(lab) if faults.is_empty() => Ok(lab),
            _ => Err(Diagnostics::new(path, text, faults)),
        }
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&LabHost> {
        self.hosts.iter().find(|host| host.name == name)
    }
}
