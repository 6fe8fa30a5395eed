//! A flood: packets of another run, each of a flow of its own, that one thread sends beside the
//! packets that count. A second thread on the same CPU would take turns of milliseconds with the
//! first, and both would send in bursts.

use crate::clock;
use crate::pacing::Pacer;
use fwdlab_packet::rss::queues_of_flows;
use fwdlab_packet::{FrameWriter, Phase, Template, Turns};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is sent beside other packets while their phase is [`Phase::Window`].
#[derive(Clone, Debug)]
pub struct Flood {
    template: Template,
    rate_pps: f64,
    /// The flow of the first packet.
    first: u32,
    /// Transmit queues that the flows are spread over.
    spread: Option<Turns>,
    sent: Arc<AtomicU64>,
}

impl Flood {
    /// So many packets beside those of `template`, at a rate in packets per second; more than
    /// that are of flows that were there before.
    pub fn beside(template: &Template, packets: u64, rate_pps: f64) -> Flood {
        let (template, sent) = (template.flood(packets), Arc::default());
        Flood { template, rate_pps, first: 0, spread: None, sent }
    }

    /// Its frames, as large as those that they are sent beside.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The part of sender `number` of `senders`: a share of the rate, and flows of its own;
    /// where queues part them, each sender passes over those of the others.
    pub fn share(&self, number: usize, senders: usize, spread: Option<Turns>) -> Flood {
        let senders = senders.max(1);
        let flows = self.template.flows().count() as usize;
        let first = if spread.is_some() { 0 } else { flows * number / senders };
        let rate_pps = self.rate_pps / senders as f64;
        Flood { rate_pps, first: first as u32, spread, ..self.clone() }
    }

    /// Spread over so many queues, as a network card's receive-side scaling has it.
    pub fn over_queues(self, queues: u16) -> Flood {
        let of_flows = || queues_of_flows(&self.template, queues).into();
        let turns = || Turns { queues: of_flows(), own: (0..queues).collect() };
        let spread = (queues > 1).then(turns);
        Flood { spread, ..self }
    }

    /// Packets of all senders so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }
}

/// A flood as one thread sends it.
#[derive(Debug)]
pub(crate) struct Flooding {
    pub(crate) writer: FrameWriter,
    flood: Flood,
    /// Its schedule, which begins with the window.
    pacer: Option<Pacer>,
    burst: u32,
}

impl Flooding {
    /// By sender `number`; `burst`: most packets in one go, see [`burst`](crate::pacing::burst).
    pub(crate) fn new(flood: Flood, number: u8, burst: u32) -> Flooding {
        let writer = FrameWriter::new(flood.template.clone(), number);
        let mut writer = writer.beginning_with(flood.first);
        if let Some(turns) = &flood.spread {
            writer = writer.with_turns(turns.clone());
        }
        Flooding { writer, flood, pacer: None, burst }
    }

    /// Its frames.
    pub(crate) fn template(&self) -> &Template {
        &self.flood.template
    }

    /// Number of packets to send now, at most `most`.
    pub(crate) fn due(&mut self, phase: Phase, most: usize) -> usize {
        if phase != Phase::Window {
            return 0;
        }
        let now_ns = clock::monotonic_ns();
        let new = || Pacer::new(self.flood.rate_pps, now_ns, self.burst);
        self.pacer.get_or_insert_with(new).due(now_ns, most)
    }

    /// `count` packets were sent.
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
    fn senders_that_share_a_flood_share_no_flow() {
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
    fn it_is_sent_in_the_window_only() {
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
