//! Traits and configuration shared by all senders and receivers.

pub use crate::pacing::burst;

use crate::NetioError;
use crate::flood::Flood;
use crate::netns::NetNs;
pub use fwdlab_packet::arrivals::Received;
use fwdlab_packet::arrivals::{Arrivals, Delays, Expected, FlowSummary, Routes};
use fwdlab_packet::{Phase, Template, Turns, stamp::PHASES};

/// One sending thread.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Namespace of the interface.
    pub namespace: NetNs,
    /// Interface to send through.
    pub interface: String,
    /// CPU that the thread is bound to.
    pub cpu: u16,
    /// Number of this sender, 0 to 15; stamped into its packets.
    pub number: u8,
    /// Frames.
    pub template: Template,
    /// Packets per second; `None` sends at the maximum rate.
    pub rate_pps: Option<f64>,
    /// Packets after which the thread stops sending without ending; `None` for no limit.
    pub limit: Option<Counted>,
    /// With a rate: maximum number of packets sent in one go after a delay, see [`burst`].
    pub burst: u32,
    /// Write the sending time into every packet; with a rate, the scheduled time.
    pub timestamps: bool,
    /// Transmit queues that the flows are spread over. `None` for queue 0, or the kernel's choice.
    /// AF_XDP only.
    pub spread: Option<Turns>,
    /// Packets handed over together at the maximum rate, 1 to 256.
    pub batch: u32,
    /// Flood to send in addition to these packets during [`Phase::Window`]. User-space senders
    /// only: one thread keeps both rates.
    pub flood: Option<Flood>,
    /// After sending the due packets, yield the CPU to another sender that would otherwise wait for
    /// a time slice. User-space senders only.
    pub yields: bool,
}

/// A limited number of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Number of packets.
    pub packets: u64,
    /// Flow of the first packet; the others follow in turn.
    pub first: u32,
}

impl Counted {
    /// Returns `packets` packets, beginning with the first flow.
    pub fn packets(packets: u64) -> Counted {
        Counted { packets, first: 0 }
    }

    /// Returns the part of sender `number` of `senders`, which share the packets in turn over
    /// `flows` flows: together they send each flow as often as a single sender would.
    pub fn share(self, number: usize, senders: usize, flows: u32) -> Counted {
        let (number, senders) = (number as u64, senders.max(1) as u64);
        let (each, more) = (self.packets / senders, self.packets % senders);
        let before = u64::from(self.first) + number * each + number.min(more);
        let first = (before % u64::from(flows.max(1))) as u32;
        Counted { packets: each + u64::from(number < more), first }
    }
}

/// A running sending thread. Counters may be read at any time.
pub trait Sender: Send {
    /// Sets the phase stamped into packets from now on.
    fn set_phase(&self, phase: Phase);
    /// Packets sent in each phase so far.
    fn sent(&self) -> [u64; PHASES];
    /// Packets given up because the sender was late (paced sending only).
    fn missed(&self) -> u64;
    /// Id of the sending thread, for its CPU accounting; `None` if no thread of this program sends.
    fn task(&self) -> Option<u32> {
        None
    }
    /// Changes the rate, in packets per second. Only for senders with a configured rate: others
    /// have no schedule.
    fn set_rate(&self, rate_pps: f64);
    /// Starts sending. The threads already exist and wait.
    fn start(&self);
    /// Stops sending, waits until the thread has ended, and returns the final number of packets
    /// sent in each phase.
    ///
    /// # Errors
    /// If the thread has failed.
    fn halt(self: Box<Self>) -> Result<[u64; PHASES], NetioError>;
}

/// The checks of a receiver.
#[derive(Clone, Debug)]
pub enum Watch {
    /// Checks the stamp only, if nothing else is known about the packets.
    Stamps {
        /// Run of the packets to count.
        run_id: u32,
        /// Number of flows to distinguish; 0 for none.
        flows: u32,
    },
    /// Checks whole packets.
    Packets(Box<Expected>),
}

impl Watch {
    /// Returns the counters of a receiver in user space.
    pub fn arrivals(&self) -> Arrivals {
        match self {
            Watch::Stamps { run_id, flows } => Arrivals::by_stamp(*run_id, *flows),
            Watch::Packets(expected) => {
                let flows = expected.template.flows().count();
                Arrivals::new(expected, Routes::Everywhere { flows, senders: expected.senders })
            }
        }
    }

    /// True if delays can be measured: packets carry times of the receiver's clock.
    pub fn has_delays(&self) -> bool {
        matches!(self, Watch::Packets(expected) if expected.timestamps && expected.same_clock)
    }

    /// True if packets carry their sending time, so that their arrival time matters.
    pub fn has_times(&self) -> bool {
        matches!(self, Watch::Packets(expected) if expected.timestamps)
    }
}

/// A running receiver. Counters may be read at any time.
pub trait Receiver: Send {
    /// Returns the counters so far.
    fn received(&self) -> Received;
    /// Returns the arrivals by flow; `None` if flows are not followed.
    fn flows(&self) -> Option<FlowSummary>;
    /// Returns the delays of the window's packets; `None` if the sending time is unknown or belongs
    /// to another clock.
    fn delays(&self) -> Option<Delays>;
    /// Returns the number of packets that the receiver itself lost, as far as it knows.
    fn dropped(&self) -> u64;
}

/// Returns the packet rate of a sender that shares `rate_pps` equally among `senders`.
pub fn share_of_rate(rate_pps: Option<f64>, senders: usize) -> Option<f64> {
    rate_pps.map(|rate| rate / senders as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_counted_packets_cover_each_flow_once() {
        for senders in 1..5 {
            for packets in [0, 1, 7, 60, 100] {
                let all = Counted { packets, first: 90 };
                let mut sent: Vec<u64> = Vec::new();
                for number in 0..senders {
                    let part = all.share(number, senders, 100);
                    sent.extend((0..part.packets).map(|n| (u64::from(part.first) + n) % 100));
                }
                let expected: Vec<u64> = (0..packets).map(|n| (90 + n) % 100).collect();
                assert_eq!(sent, expected, "{packets} packets of {senders}");
            }
        }
    }
}
