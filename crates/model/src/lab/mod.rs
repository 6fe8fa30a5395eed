//! A laboratory of several machines: `lab.toml`.
//!
//! The file lists the hosts, their roles and connections, and the cables between interfaces. It is
//! processed in two steps, as experiment files are: the raw values with their places, then their
//! meaning. All faults are reported together.
//!
//! Out of scope: the subject of the tests (part of the experiment), and whether the machines match
//! the file, which requires connecting to them.

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

/// A valid laboratory: one DUT with cables on both sides, one or two senders, one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lab {
    /// Name.
    pub name: String,
    /// Connections to the hosts.
    pub ssh: SshSetup,
    /// Notifications at the end of an experiment.
    pub notify: Notify,
    /// Lease time of each host in nanoseconds.
    pub lease_ns: u64,
    /// Places of labgrid.
    pub labgrid: Labgrid,
    /// Hosts in the order of the file, two to four.
    pub hosts: Vec<LabHost>,
    /// Cables in the order of the file.
    pub cables: Vec<Cable>,
}

/// Connections to the hosts; `None` if the file has no value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SshSetup {
    /// Configuration file of `ssh`, relative to the lab's file, in place of the user's own.
    pub config: Option<String>,
    /// Maximum time to connect in nanoseconds; whole seconds.
    pub connect_ns: Option<u64>,
    /// Silence after which the connection is probed, in nanoseconds; whole seconds.
    pub alive_ns: Option<u64>,
    /// Maximum time of a command in nanoseconds.
    pub deadline_ns: Option<u64>,
    /// Whether one shell on each host runs all its commands.
    pub one_shell: bool,
}

/// Notifications at the end of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Notify {
    /// Program on this machine with its arguments; it reads the summary from its standard input.
    /// `{title}`, `{outcome}` and `{report}` are replaced in each argument.
    pub command: Option<Vec<String>>,
    /// Address that receives the summary as JSON.
    pub url: Option<String>,
}

/// Reservation and release of labgrid places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Labgrid {
    /// Address of the coordinator, `host:port`; `None` for labgrid's default.
    pub coordinator: Option<String>,
    /// The program `labgrid-client`.
    pub client: String,
    /// Maximum wait for the reservation of a place in nanoseconds.
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
    /// Roles of the host.
    pub roles: Vec<Role>,
    /// Destination for `ssh`; `None` for this machine.
    pub ssh: Option<String>,
    /// Operating system; `None` if it must be detected.
    pub system: Option<System>,
    /// CPUs for traffic; empty if they must be chosen.
    pub cpus: Vec<u16>,
    /// Command that shows its console.
    pub console: Option<Vec<String>>,
    /// Command that switches it off and on.
    pub power_cycle: Option<Vec<String>>,
    /// Its place in labgrid.
    pub place: Option<String>,
    /// Maximum time of a reboot in nanoseconds.
    pub reboot_timeout_ns: Option<u64>,
    /// Commands on the host, split by [`crate::words::split`], that must succeed before it counts
    /// as up.
    pub online: Vec<String>,
    /// Interfaces for traffic.
    pub interfaces: Vec<LabInterface>,
}

impl LabHost {
    /// True if it has this role.
    pub fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

named! {
    /// Role of a host.
    pub enum Role {
        /// Sends traffic.
        Sender = "sender",
        /// Counts received packets.
        Receiver = "receiver",
        /// The device under test; forwards.
        Dut = "dut",
    }
}

impl From<Side> for Role {
    /// Returns the role of hosts at the far end of the DUT's interface on this side.
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
    /// MAC; `None` if the file has none.
    pub mac: Option<Mac>,
    /// Addresses with prefix lengths.
    pub addresses: Vec<InterfaceAddress>,
    /// Side of the DUT that it connects to.
    pub side: Side,
}

/// One end of a cable: names of an existing host and interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// Host.
    pub host: String,
    /// Interface of the host.
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
    /// Line rate in the file, in bits per second.
    pub speed_bps: Option<u64>,
}

/// Default lease time.
const LEASE_NS: u64 = 300_000_000_000;

impl Lab {
    /// Reads and validates a lab's file. `path` is the path given by the user.
    ///
    /// # Errors
    /// All faults of the file.
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

    /// Returns the host of this name.
    pub fn host(&self, name: &str) -> Option<&LabHost> {
        self.hosts.iter().find(|host| host.name == name)
    }
}
