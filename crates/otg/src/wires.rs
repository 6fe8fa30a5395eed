//! Interfaces, senders and receivers of this machine.

use fwdlab_bench::agent::protocol::{ReceiveOrder, SendOrder};
use fwdlab_bench::agent::{open, serve_receive, serve_send};
use fwdlab_bench::error::BenchError;
use fwdlab_model::settings::Engine;
use fwdlab_netio::affinity;
use std::fs;

/// State of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// True with a carrier.
    pub is_up: bool,
    /// Bits per second. `None` if the driver reports none.
    pub speed: Option<u64>,
}

/// Settings that the model lacks.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Routers between two ports.
    pub hops: u8,
    /// Mechanism of senders and receivers.
    pub engine: Engine,
}

/// Interfaces, senders and receivers of a machine; tests have their own.
pub trait Wires: Send {
    /// Returns the MAC of an interface.
    ///
    /// # Errors
    /// Fails if there is no such interface.
    fn mac(&self, interface: &str) -> Result<[u8; 6], BenchError>;
    /// Returns the state of an interface.
    fn link(&self, interface: &str) -> Link;
    /// Opens the senders of an order; they wait to be started.
    ///
    /// # Errors
    /// The errors of [`open::senders`].
    fn senders(&self, order: &SendOrder) -> Result<serve_send::Opened, BenchError>;
    /// Opens a receiver, which counts from now on.
    ///
    /// # Errors
    /// The errors of [`open::receiver`].
    fn receiver(&self, order: &ReceiveOrder) -> Result<serve_receive::Opened, BenchError>;
    /// CPUs that senders may use.
    fn cpus(&self) -> Vec<u16>;
}

/// This machine, in the network namespace of the process.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl Wires for Host {
    fn mac(&self, interface: &str) -> Result<[u8; 6], BenchError> {
        open::mac_of(interface)
    }

    fn link(&self, interface: &str) -> Link {
        let read = |name: &str| {
            let text = fs::read_to_string(format!("/sys/class/net/{interface}/{name}")).ok()?;
            text.trim().parse::<i64>().ok()
        };
        // -1 if the speed is unknown.
        let megabits = read("speed").and_then(|speed| u64::try_from(speed).ok());
        let speed = megabits.filter(|&speed| speed > 0).map(|megabits| megabits * 1_000_000);
        Link { is_up: read("carrier") == Some(1), speed }
    }

    fn senders(&self, order: &SendOrder) -> Result<serve_send::Opened, BenchError> {
        // Opening pins its thread to the other CPUs; this one has to stay free.
        std::thread::scope(|scope| {
            let opened = scope.spawn(|| open::senders(order)).join();
            opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn receiver(&self, order: &ReceiveOrder) -> Result<serve_receive::Opened, BenchError> {
        open::receiver(order)
    }

    fn cpus(&self) -> Vec<u16> {
        affinity::allowed_cpus().unwrap_or_default()
    }
}
