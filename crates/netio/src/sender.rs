//! Traits and configuration that all senders and receivers share.

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
    /// Packets after which the thread sends no more, without ending; none for no end.
    pub limit: Option<Counted>,
    /// With a rate: most packets that are sent in one go after a delay, see [`burst`].
    pub burst: u32,
    /// Write the sending time into every packet; with a rate, the time at which it was due.
    pub timestamps: bool,
    /// Transmit queues that the flows are spread over; none: queue 0, or whichever the
    /// kernel takes. AF_XDP only.
    pub spread: Option<Turns>,
    /// Packets handed over at once at the maximum rate, 1 to 256.
    pub batch: u32,
    /// What is sent beside these packets while the phase is [`Phase::Window`]. Senders in user
    /// space only: one thread keeps both rates.
    pub flood: Option<Flood>,
    /// After what is due is sent, let others on this CPU do the same: another sender, which
    /// would otherwise wait for a time slice. Senders in user space only.
    pub yields: bool,
}

/// Packets that are sent, and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Their number.
    pub packets: u64,
    /// The flow of the first one; the others follow in turn.
    pub first: u32,
}

impl Counted {
    /// So many packets from the first flow on.
    pub fn packets(packets: u64) -> Counted {
        Counted { packets, first: 0 }
    }

    /// The part of sender `number` of `senders`, which share them in turn over `flows` flows:
    /// all together send each flow as often as one sender would.
    pub fn share(self, number: usize, senders: usize, flows: u32) -> Counted {
        let (number, senders) = (number as u64, senders.max(1) as u64);
        let (each, more) = (self.packets / senders, self.packets % senders);
        let before = u64::from(self.first) + number * each + number.min(more);
        let first = (before % u64::from(flows.max(1))) as u32;
        Counted { packets: each + u64::from(number < more), first }
    }
}

/// A sending thread at work. Counters may be read at any time.
pub trait Sender: Send {
    /// Sets the phase stamped into packets from now on.
    fn set_phase(&self, phase: Phase);
    /// Packets sent in each phase so far.
    fn sent(&self) -> [u64; PHASES];
    /// Packets given up because the sender was late (paced sending only).
    fn missed(&self) -> u64;
    /// Id of the sending thread, for its CPU accounting; none if no thread of this program
    /// sends.
    fn task(&self) -> Option<u32> {
        None
    }
    /// Sends at another rate from now on, packets per second. Only where a rate was set: a
    /// sender without one has no schedule.
    fn set_rate(&self, rate_pps: f64);
    /// Begins sending. The threads exist and wait before.
    fn start(&self);
    /// Stops sending, waits until the thread has ended; returns the final count
    /// of packets sent in each phase.
    ///
    /// # Errors
    /// When the thread has failed.
    fn halt(self: Box<Self>) -> Result<[u64; PHASES], NetioError>;
}

/// What a receiver checks packets for.
#[derive(Clone, Debug)]
pub enum Watch {
    /// The stamp alone, if nothing else is known of the packets.
    Stamps {
        /// Run whose packets count.
        run_id: u32,
        /// Number of flows to distinguish, 0 for none.
        flows: u32,
    },
    /// The whole packet.
    Packets(Box<Expected>),
}

impl Watch {
    /// The counting of a receiver in user space.
    pub fn arrivals(&self) -> Arrivals {
        match self {
            Watch::Stamps { run_id, flows } => Arrivals::by_stamp(*run_id, *flows),
            Watch::Packets(expected) => {
                let flows = expected.template.flows().count();
                Arrivals::new(expected, Routes::Everywhere { flows, senders: expected.senders })
            }
        }
    }

    /// True when the packets' delays can be told: they carry times of the receiver's clock.
    pub fn has_delays(&self) -> bool {
        matches!(self, Watch::Packets(expected) if expected.timestamps && expected.same_clock)
    }

    /// True when packets carry their sending time: then it matters when they come.
    pub fn has_times(&self) -> bool {
        matches!(self, Watch::Packets(expected) if expected.timestamps)
    }
}

/// A receiver at work. Counters may be read at any time.
pub trait Receiver: Send {
    /// Counters so far.
    fn received(&self) -> Received;
    /// What arrived of each flow; none when flows are not followed.
    fn flows(&self) -> Option<FlowSummary>;
    /// How long the packets of the window took; none where their sending time is not known,
    /// or is another clock's.
    fn delays(&self) -> Option<Delays>;
    /// Packets that the receiver itself lost, as far as it knows.
    fn dropped(&self) -> u64;
}

/// Packets a second for the sender that shares a rate with `senders` others.
pub fn share_of_rate(rate_pps: Option<f64>, senders: usize) -> Option<f64> {
    rate_pps.map(|rate| rate / senders as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_that_share_counted_packets_send_each_flow_once() {
        for senders in 1..5 {
            for packets in [0, 1, 7, 60, 100] {
                let all = Counted { packets, first: 90 };
                let mut sent: Vec<u64> = Vec::new();
                for number in 0..senders {
                    let own = all.share(number, senders, 100);
                    sent.extend((0..own.packets).map(|n| (u64::from(own.first) + n) % 100));
                }
                let wanted: Vec<u64> = (0..packets).map(|n| (90 + n) % 100).collect();
                assert_eq!(sent, wanted, "{packets} packets of {senders}");
            }
        }
    }
}
