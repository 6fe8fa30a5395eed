//! A flood: packets of another run, each in its own flow, that one thread sends along with the
//! measured packets. A second thread on the same CPU would alternate with the first every few
//! milliseconds, and both would send in bursts.

use crate::clock;
use crate::pacing::Pacer;
use fwdlab_packet::rss::queues_of_flows;
use fwdlab_packet::{FrameWriter, Phase, Template, Turns};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Additional packets sent while the phase of the measured packets is [`Phase::Window`].
#[derive(Clone, Debug)]
pub struct Flood {
    template: Template,
    rate_pps: f64,
    /// Flow of the first packet.
    first: u32,
    /// Transmit queues that the flows are spread over.
    spread: Option<Turns>,
    sent: Arc<AtomicU64>,
}

impl Flood {
    /// Creates a flood of `packets` packets next to those of `template`, at a rate in packets per
    /// second. After `packets` packets the flows repeat.
    pub fn beside(template: &Template, packets: u64, rate_pps: f64) -> Flood {
        let (template, sent) = (template.flood(packets), Arc::default());
        Flood { template, rate_pps, first: 0, spread: None, sent }
    }

    /// Frames of the flood, as large as the measured frames.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Returns the part of sender `number` of `senders`: a share of the rate, and separate flows.
    /// If senders are divided by queues, each sender skips the flows of the others.
    pub fn share(&self, number: usize, senders: usize, spread: Option<Turns>) -> Flood {
        let senders = senders.max(1);
        let flows = self.template.flows().count() as usize;
        let first = if spread.is_some() { 0 } else { flows * number / senders };
        let rate_pps = self.rate_pps / senders as f64;
        Flood { rate_pps, first: first as u32, spread, ..self.clone() }
    }

    /// Spreads the flood over `queues` queues by the receive-side scaling of a network card.
    pub fn over_queues(self, queues: u16) -> Flood {
        let by_flow = || queues_of_flows(&self.template, queues).into();
        let turns = || Turns { queues: by_flow(), own: (0..queues).collect() };
        let spread = (queues > 1).then(turns);
        Flood { spread, ..self }
    }

    /// Packets sent by all senders so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }
}

/// The part of a flood that one thread sends.
#[derive(Debug)]
pub(crate) struct Flooding {
    pub(crate) writer: FrameWriter,
    flood: Flood,
    /// Schedule, which begins with the window.
    pacer: Option<Pacer>,
    burst: u32,
}

impl Flooding {
    /// Creates the flood of sender `number`; `burst`: maximum number of packets in one go, see
    /// [`burst`](crate::pacing::burst).
    pub(crate) fn new(flood: Flood, number: u8, burst: u32) -> Flooding {
        let writer = FrameWriter::new(flood.template.clone(), number);
        let mut writer = writer.beginning_with(flood.first);
        if let Some(turns) = &flood.spread {
            writer = writer.with_turns(turns.clone());
        }
        Flooding { writer, flood, pacer: None, burst }
    }

    /// Frames of the flood.
    pub(crate) fn template(&self) -> &Template {
        &self.flood.template
    }

    /// Returns the number of packets to send now, at most `most`.
    pub(crate) fn due(&mut self, phase: Phase, most: usize) -> usize {
        if phase != Phase::Window {
            return 0;
        }
        let now_ns = clock::monotonic_ns();
        let new = || Pacer::new(self.flood.rate_pps, now_ns, self.burst);
        self.pacer.get_or_insert_with(new).due(now_ns, most)
    }

    /// Records that `count` packets were sent.
    pub(crate) fn sent(&mut self, count: usize) {
        if let Some(pacer) = &mut self.pacer {
            pacer.sent(count);
        }
        self.flood.sent.fetch_add(count as u64, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_packet::Stream;
    use fwdlab_packet::{Family, Flows};

    #[test]
    fn shares_of_flood_have_distinct_flows() {
        let flows = Flows { sources: 2, destinations: 5 };
        let template = Template::new(&Stream::new(Family::Inet, 64, flows), 1, [2; 6], [4; 6]);
        for senders in 1..5 {
            let flood = Flood::beside(&template, 1000, 1e6);
            let all = flood.template().flows().count();
            let shares: Vec<Flood> = (0..senders).map(|n| flood.share(n, senders, None)).collect();
            let rates: f64 = shares.iter().map(|share| share.rate_pps).sum();
            assert!((rates / 1e6 - 1.0).abs() < 1e-9);
            let each = all / senders as u32;
            for pair in shares.windows(2) {
                assert!(pair[1].first - pair[0].first >= each, "{senders}");
            }
            shares.iter().for_each(|share| Flooding::new(share.clone(), 0, 1).sent(3));
            assert_eq!(flood.sent(), 3 * senders as u64, "one count of all");
        }
    }

    #[test]
    fn flood_is_sent_only_in_window() {
        let flows = Flows { sources: 2, destinations: 5 };
        let template = Template::new(&Stream::new(Family::Inet, 64, flows), 1, [2; 6], [4; 6]);
        let mut flooding = Flooding::new(Flood::beside(&template, 1000, 1e9), 0, 64);
        assert_eq!(flooding.due(Phase::WarmUp, 64), 0);
        let deadline = clock::monotonic_ns() + 1_000_000_000;
        while flooding.due(Phase::Window, 64) == 0 && clock::monotonic_ns() < deadline {}
        assert_eq!(flooding.due(Phase::Window, 64), 64);
        assert_eq!(flooding.due(Phase::After, 64), 0);
    }
}
