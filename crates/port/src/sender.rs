//! What every way of sending and receiving has in common.

use crate::PortError;
use crate::netns::NetNs;
use fwdlab_packet::{Phase, Template, stamp::PHASES};

/// One sending thread.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Namespace that the interface lives in.
    pub namespace: NetNs,
    /// Interface to send through.
    pub interface: String,
    /// CPU that the thread is bound to.
    pub cpu: u16,
    /// Number of this sender, 0 to 15; stamped into its packets.
    pub number: u8,
    /// Frames.
    pub template: Template,
    /// Packets per second; none for as fast as possible.
    pub rate_pps: Option<f64>,
    /// Write the sending time into every packet.
    pub timestamps: bool,
    /// Packets handed over at once at the maximum rate, 1 to 256.
    pub batch: u32,
}

/// A sending thread at work. Counters may be read at any time.
pub trait Sender: Send {
    /// Sets the phase stamped into packets from now on.
    fn set_phase(&self, phase: Phase);
    /// Packets sent in each phase so far.
    fn sent(&self) -> [u64; PHASES];
    /// Packets given up because the sender was late (paced sending only).
    fn missed(&self) -> u64;
    /// Begins sending. The threads exist and wait before.
    fn start(&self);
    /// Stops sending, waits until the thread has ended; returns the final count
    /// of packets sent in each phase.
    ///
    /// # Errors
    /// What the thread met.
    fn halt(self: Box<Self>) -> Result<[u64; PHASES], PortError>;
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets of this run by the phase they were sent in.
    pub packets: [u64; PHASES],
    /// Bytes of this run's packets, without FCS.
    pub bytes: u64,
    /// Packets with another run's stamp.
    pub foreign: u64,
    /// Packets without stamp.
    pub unstamped: u64,
}

impl Received {
    /// Packets of this run in all phases.
    pub fn total(&self) -> u64 {
        self.packets.iter().sum()
    }
}

/// A receiver at work. Counters may be read at any time.
pub trait Receiver: Send {
    /// Counters so far.
    fn received(&self) -> Received;
    /// Number of distinct flows seen; none when they are not counted.
    fn flows_seen(&self) -> Option<u32>;
    /// Packets that the receiver itself lost, as far as it knows.
    fn dropped(&self) -> u64;
}

/// Packets a second for the sender that shares a rate with `senders` others.
pub fn share_of_rate(rate_pps: Option<f64>, senders: usize) -> Option<f64> {
    rate_pps.map(|rate| rate / senders as f64)
}
