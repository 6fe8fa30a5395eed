//! Traffic generators that are not fwdlab's own, behind one trait.
//!
//! They count in their own ways and know nothing of phases; what they have counted at
//! the window's edges is what belongs to the window. Packets that are under way then are
//! in neither count or in both: [`Capabilities::edges`] says so.

use crate::error::BenchError;
use fwdlab_model::record::Counter;
use fwdlab_packet::template::FlowRange;
use fwdlab_packet::{Family, Template};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is to be sent, and from where to where.
#[derive(Clone, Debug)]
pub struct Load {
    /// Frames as they must look: family, MACs, addresses, size.
    pub template: Template,
    /// Address family.
    pub family: Family,
    /// Bytes of a frame with FCS.
    pub frame_size: u16,
    /// Sources and destinations.
    pub flows: FlowRange,
    /// MAC of the sending interface.
    pub source_mac: [u8; 6],
    /// MAC that frames are sent to: the DUT's, or the receiver's for the ceiling.
    pub next_hop_mac: [u8; 6],
    /// Packets per second of this sender; none for as fast as possible.
    pub rate_pps: Option<f64>,
    /// Longest time that the traffic may take: a generator whose controller has died
    /// ends by then.
    pub at_most: Duration,
}

/// What a generator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// It keeps a rate that is asked for.
    pub paced: bool,
    /// It sends IPv6.
    pub inet6: bool,
    /// Its counters are exact for the moment at which they are asked for; otherwise they
    /// are those of its last report.
    pub edges: Edges,
}

/// How exactly a generator's counts can be divided among phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// Each packet says its phase.
    Exact,
    /// Counters are read at the edge.
    Read,
    /// Counters come once in so many milliseconds.
    Reported(u32),
}

/// Counters of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets that the receiver itself had no room for.
    pub receiver_dropped: u64,
    /// Packets that were to be sent and could not be.
    pub unsent: u64,
}

/// What a generator leaves when it has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Final counters.
    pub counted: Counted,
    /// Its own counters beside the interfaces', with what they should be.
    pub counters: Vec<Counter>,
    /// What is worth keeping: version, build, options, ...
    pub facts: BTreeMap<String, String>,
    /// Remarks for the user: what it complained about.
    pub remarks: Vec<String>,
}

/// A traffic generator, its sender and its receiver.
pub trait Generator {
    /// Name as in experiment files.
    fn name(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Starts what counts, then what sends, up to the moment before the first packet.
    ///
    /// # Errors
    /// When a program is missing, or one is not ready in time.
    fn prepare(&mut self, load: &Load) -> Result<(), BenchError>;

    /// Begins to send.
    ///
    /// # Errors
    /// When it can't.
    fn start(&mut self) -> Result<(), BenchError>;

    /// Counters so far.
    ///
    /// # Errors
    /// When one end has died, with its last lines.
    fn counted(&mut self) -> Result<Counted, BenchError>;

    /// Ends sending; the receiver goes on.
    ///
    /// # Errors
    /// What the sender met.
    fn stop(&mut self) -> Result<(), BenchError>;

    /// Ends the receiver, too.
    ///
    /// # Errors
    /// What it met.
    fn finish(&mut self) -> Result<Outcome, BenchError>;
}
