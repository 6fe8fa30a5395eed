//! External traffic generators, behind one trait.
//!
//! Their packets carry no phase, so the counts of the window are the differences between readings
//! at its edges. Packets in flight at an edge are in neither count or in both:
//! [`Capabilities::edges`] describes the accuracy.

mod flow_pattern;
pub mod interface;
mod load_check;
pub mod otg;
pub mod pkt_gen;
pub mod pktgen;
mod process;
mod shaper;
pub mod testpmd;
pub mod trex;

pub use flow_pattern::FlowPattern;
pub use interface::{InterfaceCounter, InterfaceReading};
pub use otg::Otg;
pub use pkt_gen::PktGen;
pub use pktgen::Pktgen;
pub use testpmd::Testpmd;
pub use trex::Trex;

use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::Counter;
use fwdlab_model::settings::GeneratorKind;
use fwdlab_packet::{Stream, Template};
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

/// The load to send: frames, flows, rate.
#[derive(Clone, Debug)]
pub struct Load {
    /// Template of the frames: family, MACs, addresses, size.
    pub template: Template,
    /// The packets. Their size may be smaller than the template's, which has room for a stamp.
    pub stream: Stream,
    /// MAC of the sending interface.
    pub source_mac: [u8; 6],
    /// Destination MAC of frames: the DUT's, or the receiver's when measuring the ceiling.
    pub next_hop_mac: [u8; 6],
    /// Packets per second of this sender; `None` for as fast as possible.
    pub rate_pps: Option<f64>,
    /// Maximum duration of the traffic: a generator stops by then if its controller has died.
    pub at_most: Duration,
}

/// Capabilities of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Supports a paced rate.
    pub paced: bool,
    /// Supports IPv6.
    pub inet6: bool,
    /// Accuracy of dividing its counts among phases.
    pub edges: Edges,
}

/// Accuracy of dividing a generator's counts among phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// Each packet carries its phase.
    Exact,
    /// Counters are read at the edge.
    Read,
    /// Counters are reported periodically; interval in milliseconds.
    Reported(u32),
}

impl Edges {
    /// Accuracy of the window's counts as text for a report.
    pub fn describe(self) -> String {
        match self {
            Edges::Exact => "exact: each packet carries its phase".to_owned(),
            Edges::Read => "counters are read there: packets in transit may be counted on either \
                            side"
                .to_owned(),
            Edges::Reported(ms) => format!(
                "counters are from reports {ms} ms apart: packets in transit may be counted on \
                 either side"
            ),
        }
    }
}

/// Counters of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets that the receiver dropped.
    pub receiver_dropped: u64,
    /// Intended packets that could not be sent.
    pub unsent: u64,
}

/// Results of a generator that has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Final counters.
    pub counted: Counted,
    /// The generator's own and the interfaces' counters, with expected values.
    pub counters: Vec<Counter>,
    /// Facts for the record: version, build, options, ...
    pub facts: BTreeMap<String, String>,
    /// Remarks for the user, such as its error messages.
    pub remarks: Vec<String>,
}

/// Hosts, interfaces and CPUs of a generator's sender and receiver.
#[derive(Clone)]
pub struct GeneratorHosts<'a> {
    /// Sending host.
    pub sender: &'a dyn Host,
    /// Sending interface (also a PCI address for testpmd, a port name for a server).
    pub sender_interface: String,
    /// Sending CPUs; empty for the generator's own choice.
    pub sender_cpus: Vec<u16>,
    /// Receiving host.
    pub receiver: &'a dyn Host,
    /// Receiving interface.
    pub receiver_interface: String,
    /// Receiving CPUs.
    pub receiver_cpus: Vec<u16>,
    /// Address of a server: `host:port` of TRex, the URL of an OTG server.
    pub server: Option<String>,
    /// Further options; their meaning depends on the generator.
    pub options: Vec<String>,
}

impl fmt::Debug for GeneratorHosts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |host: &dyn Host, interface: &str| format!("{interface} on {}", host.name());
        f.debug_struct("Ends")
            .field("sender", &end(self.sender, &self.sender_interface))
            .field("receiver", &end(self.receiver, &self.receiver_interface))
            .field("server", &self.server)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Creates a generator of this kind without starting anything.
///
/// # Errors
/// Fails for fwdlab's own senders, which do not implement [`Generator`], and if a required server
/// is not named.
pub fn open<'a>(
    kind: GeneratorKind,
    ends: GeneratorHosts<'a>,
) -> Result<Box<dyn Generator + 'a>, BenchError> {
    Ok(match kind {
        GeneratorKind::PktGen => Box::new(PktGen::new(ends)),
        GeneratorKind::Pktgen => Box::new(Pktgen::new(ends)),
        GeneratorKind::Trex => Box::new(Trex::new(ends)?),
        GeneratorKind::Testpmd => Box::new(Testpmd::new(ends)),
        GeneratorKind::Otg => Box::new(Otg::new(ends)?),
        GeneratorKind::Fwdlab => {
            let why = "fwdlab's own senders count each packet's phase themselves: they are \
                       opened by their testbed";
            return Err(BenchError::Refused(why.into()));
        }
    })
}

/// Formats six bytes as `02:00:00:00:00:01`.
pub fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

/// Reads counters of a server with periodic updates: repeats until they change, for at most
/// `longest`.
fn until_changed(
    longest: Duration,
    mut read: impl FnMut() -> Result<Counted, BenchError>,
) -> Result<Counted, BenchError> {
    let (first, begin) = (read()?, Instant::now());
    loop {
        let now = read()?;
        let has_changed = (now.sent, now.received) != (first.sent, first.received);
        if has_changed || begin.elapsed() >= longest {
            return Ok(now);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A traffic generator, its sender and its receiver.
pub trait Generator {
    /// Name as in experiment files.
    fn name(&self) -> &'static str;

    /// Capabilities of the generator.
    fn capabilities(&self) -> Capabilities;

    /// Starts the receiver, then the sender, up to the moment before the first packet.
    ///
    /// # Errors
    /// Fails if a program is missing or not ready in time.
    fn prepare(&mut self, load: &Load) -> Result<(), BenchError>;

    /// Starts sending.
    ///
    /// # Errors
    /// Fails if sending cannot start.
    fn start(&mut self) -> Result<(), BenchError>;

    /// Counters so far.
    ///
    /// # Errors
    /// Fails if one end has died; the error quotes its last lines.
    fn counted(&mut self) -> Result<Counted, BenchError>;

    /// Counters newer than this call: a generator with periodic reports waits for the next report
    /// of both ends, so that two such calls enclose a whole number of reports.
    ///
    /// # Errors
    /// The errors of [`Generator::counted`].
    fn fresh(&mut self) -> Result<Counted, BenchError> {
        self.counted()
    }

    /// Stops sending; the receiver continues.
    ///
    /// # Errors
    /// Fails if the sender has failed.
    fn stop(&mut self) -> Result<(), BenchError>;

    /// Stops the receiver.
    ///
    /// # Errors
    /// Fails if the receiver has failed.
    fn finish(&mut self) -> Result<Outcome, BenchError>;
}
