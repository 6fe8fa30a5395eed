//! Senders and receiver of a testbed of namespaces, as seen by a trial.

use super::steal::StealMonitor;
use crate::arrivals;
use crate::error::BenchError;
use crate::trial::{Evidence, Snapshot, Traffic};
use fwdlab_model::record::{Arrivals, Checked, Counts, Latency};
use fwdlab_netio::{Flood, Receiver, Sender};
use fwdlab_packet::Phase;

/// Senders and receiver of one run.
pub(crate) struct NetnsTraffic {
    pub(crate) senders: Vec<Box<dyn Sender>>,
    /// Final counts of the senders that have ended.
    pub(crate) sent: [u64; 4],
    /// Packets that these senders skipped.
    pub(crate) missed: u64,
    pub(crate) receiver: Box<dyn Receiver>,
    /// Packet checks of the receiver.
    pub(crate) checked: Checked,
    pub(crate) witness: StealMonitor,
    /// Flood in addition to the traffic.
    pub(crate) flood: Option<Flood>,
}

impl Traffic for NetnsTraffic {
    fn start(&mut self) -> Result<(), BenchError> {
        self.senders.iter().for_each(|sender| sender.start());
        Ok(())
    }

    fn set_phase(&mut self, phase: Phase) {
        self.senders.iter().for_each(|sender| sender.set_phase(phase));
    }

    fn set_rate(&mut self, rate_pps: f64) -> Result<(), BenchError> {
        let share = rate_pps / self.senders.len().max(1) as f64;
        self.senders.iter().for_each(|sender| sender.set_rate(share));
        Ok(())
    }

    fn snapshot(&mut self) -> Snapshot {
        // Received packets are read before sent ones: otherwise more could seem to have arrived
        // than were sent.
        let mut snapshot = snapshot(self.sent, self.receiver.as_ref());
        snapshot.missed = self.missed;
        for sender in &self.senders {
            snapshot.missed += sender.missed();
            for (sum, packets) in snapshot.sent.iter_mut().zip(sender.sent()) {
                *sum += packets;
            }
        }
        self.flood.as_ref().map_or(snapshot, |flood| snapshot.beside_flood(flood.sent()))
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        for sender in std::mem::take(&mut self.senders) {
            self.missed += sender.missed();
            let counter = sender.halt()?;
            for (sum, packets) in self.sent.iter_mut().zip(counter) {
                *sum += packets;
            }
        }
        Ok(())
    }

    fn flows_seen(&mut self) -> Option<u32> {
        self.receiver.flows().map(|flows| flows.seen)
    }

    fn arrivals(&mut self) -> Arrivals {
        arrivals::found(self.receiver.as_ref(), self.checked)
    }

    fn delays(&mut self) -> Option<Latency> {
        Latency::of(&self.receiver.delays()?)
    }

    fn evidence(&mut self) -> Evidence {
        self.witness.read()
    }
}

/// Current counters: `sent` by the senders, and the counters of a receiver on this machine.
pub(crate) fn snapshot(sent: [u64; 4], receiver: &dyn Receiver) -> Snapshot {
    let received = receiver.received();
    Snapshot {
        sent,
        received: received.packets,
        damaged: received.faults.iter().sum(),
        foreign: received.foreign,
        unstamped: received.unstamped,
        other_frames: received.others,
        receiver_dropped: receiver.dropped(),
        missed: 0,
        flood: Counts::default(),
    }
}
