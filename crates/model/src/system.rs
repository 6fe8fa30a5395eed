//! Operating systems of hosts.

use fwdlab_packet::named;

named! {
    /// Operating system of a host.
    pub enum System {
        /// Linux.
        Linux = "linux",
        /// FreeBSD.
        FreeBsd = "freebsd",
    }
}

impl System {
    /// Returns the name that uname(1) prints.
    pub fn uname(self) -> &'static str {
        match self {
            System::Linux => "Linux",
            System::FreeBsd => "FreeBSD",
        }
    }
}
