//! Choice of the DUT's receive queue for each packet.
//!
//! Veth has no receive-side scaling. A packet arrives at the queue that its sender chose: with
//! AF_XDP the queue of the socket, with live frames the queue of the sending CPU (`veth_xdp_xmit`:
//! its number modulo the queues), with AF_PACKET one by the sending CPU or by an unspecified hash.
//! So one AF_XDP socket per queue spreads flows as a network card's Toeplitz hash would. All
//! variants of the plan use this slower sender, so that they do not also differ in their sender.

use super::Netns;
use crate::cpu::Placement;
use crate::error::BenchError;
use crate::probe;
use crate::testbed::Testbed;
use fwdlab_model::design::Method;
use fwdlab_model::plan::Plan;
use fwdlab_model::settings::{Arrangement, Directions, Engine, Settings};
use fwdlab_packet::Template;
use fwdlab_packet::Turns;
use fwdlab_packet::rss::queues_of_flows;
use std::sync::Arc;

impl Netns {
    /// Chooses the mechanism for several queues, if the plan has any, and for a flood in addition
    /// to the traffic, if it requests one.
    pub(in crate::testbed) fn spread(&mut self, plan: &Plan) -> Result<(), BenchError> {
        self.spreads = has_several_queues(plan);
        let floods = plan.method.as_ref().is_some_and(Method::floods);
        let directions = plan.variants.iter().map(|variant| variant.settings.traffic.directions);
        let is_bidirectional =
            directions.into_iter().any(|directions| directions == Directions::Both);
        if !self.spreads && !floods && !is_bidirectional {
            return Ok(());
        }
        let is_free = |s: &Settings| s.testbed.engine == Engine::Auto;
        let any_free = plan.variants.iter().any(|variant| is_free(&variant.settings));
        if any_free && self.engine != Engine::Xsk {
            match probe::find_engines(&self.journal, Engine::Xsk, self.cable) {
                Ok((engine, receiving, reasons)) => {
                    (self.engine, self.receiving) = (engine, receiving);
                    self.choice.reasons.extend(reasons);
                    let why = match floods {
                        true => "it sends a flood beside the traffic",
                        false if is_bidirectional => "senders of both directions share a CPU",
                        false => "it spreads flows over several queues",
                    };
                    self.choice.reasons.push(format!("AF_XDP sends in all variants: {why}"));
                }
                Err(error) if (floods || is_bidirectional) && !self.spreads => {
                    let engines = probe::find_engines(&self.journal, Engine::Packet, self.cable)?;
                    (self.engine, self.receiving) = (engines.0, engines.1);
                    self.choice.reasons.push(format!("nothing can be sent by AF_XDP: {error}"));
                }
                Err(error) => {
                    self.choice.reasons.push(format!("flows can't be spread over queues: {error}"));
                }
            }
        }
        if !self.spreads {
            return Ok(());
        }
        plan.variants.iter().try_for_each(|variant| {
            let settings = &variant.settings;
            refuse(settings, self.engine(settings), &self.place(settings))
        })
    }

    /// Returns true if the sender spreads a variant's flows over the queues.
    pub(super) fn is_spread(&self, settings: &Settings) -> bool {
        self.spreads && self.engine(settings) == Engine::Xsk
    }

    /// Describes the distribution of packets to receive queues.
    pub(in crate::testbed) fn filled_by(&self, settings: &Settings) -> &'static str {
        match (settings.dut.queues, self.is_spread(settings)) {
            (0 | 1, _) => "one",
            (_, true) => "filled by the flow's Toeplitz hash",
            (_, false) => "filled by the sending CPU",
        }
    }

    /// Number of senders that each cycle through all flows: one if they share the flows.
    pub(in crate::testbed) fn rounds(&self, settings: &Settings, placement: &Placement) -> usize {
        if self.is_spread(settings) { 1 } else { placement.senders.len() }
    }
}

/// Returns true if a variant's DUT has more than one queue.
fn has_several_queues(plan: &Plan) -> bool {
    plan.variants.iter().any(|variant| variant.settings.dut.queues > 1)
}

/// Flows of each sender: queue n belongs to sender n modulo the number of senders, so that no two
/// CPUs share a queue.
pub(super) fn turns(template: &Template, queues: u16, senders: usize) -> Vec<Turns> {
    let of_flows: Arc<[u16]> = queues_of_flows(template, queues).into();
    let own_queues = |sender| (sender as u16..queues).step_by(senders.max(1)).collect();
    (0..senders).map(|sender| Turns { queues: of_flows.clone(), own: own_queues(sender) }).collect()
}

/// Number of queues that senders reach if the sending CPU determines the queue.
fn reached(senders: &[u16], queues: u16) -> usize {
    let mut all: Vec<u16> = senders.iter().map(|cpu| cpu % queues.max(1)).collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

/// Refuses a variant in the open arrangement if some of its queues would receive no packets.
fn refuse(settings: &Settings, engine: Engine, placement: &Placement) -> Result<(), BenchError> {
    let queues = settings.dut.queues;
    let reached = match engine {
        Engine::Xsk => usize::from(queues),
        Engine::Auto | Engine::Xdp | Engine::Packet => reached(&placement.senders, queues),
    };
    if placement.arrangement != Arrangement::Open || reached >= usize::from(queues) {
        return Ok(());
    }
    Err(BenchError::Refused(format!(
        "queues = {queues}: engine = \"{}\" reaches {reached} of them, for a veth device receives \
         at the queue of the sending CPU, and there {} here; the others would be idle\n  next \
         step: leave `engine` out or write engine = \"xsk\", which spreads flows over all queues",
        engine.name(),
        match placement.senders.len() {
            1 => "is one sender".to_owned(),
            n => format!("are {n} senders"),
        }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu;
    use fwdlab_packet::Family;
    use fwdlab_packet::Flows;
    use fwdlab_packet::Stream;

    #[test]
    fn each_flow_and_each_queue_belongs_to_one_sender() {
        let flows = Flows { sources: 20, destinations: 100 };
        let template = Template::new(&Stream::new(Family::Inet, 64, flows), 1, [2; 6], [4; 6]);
        for (queues, senders) in [(1, 1), (2, 2), (3, 2), (8, 2), (8, 3)] {
            let turns = turns(&template, queues, senders);
            let mut queues_of_senders: Vec<u16> =
                turns.iter().flat_map(|turns| turns.own.clone()).collect();
            queues_of_senders.sort_unstable();
            assert_eq!(queues_of_senders, (0..queues).collect::<Vec<_>>(), "{queues} {senders}");
            assert!(turns.iter().all(Turns::has_flows), "{queues} {senders}");
        }
    }

    #[test]
    fn unreachable_queues_are_refused_with_a_next_step() {
        let mut settings = Settings::default();
        settings.dut.queues = 4;
        let open = cpu::place(&[0, 1], Arrangement::Open, 1, 4);
        let error = refuse(&settings, Engine::Xdp, &open).expect_err("refused").to_string();
        assert!(error.contains("reaches 1 of them") && error.contains("xsk"), "{error}");
        assert!(refuse(&settings, Engine::Xsk, &open).is_ok());
        // The same number of senders and queues, on CPUs of different remainders.
        let wide = cpu::place(&[0, 1, 2, 3, 4, 5], Arrangement::Open, 4, 4);
        assert!(refuse(&settings, Engine::Xdp, &wide).is_ok());
        // The closed arrangement is a sweep of transmit queues, and named accordingly.
        let closed = cpu::place(&[0, 1], Arrangement::Closed, 2, 4);
        assert!(refuse(&settings, Engine::Xdp, &closed).is_ok());
        settings.dut.queues = 1;
        assert!(refuse(&settings, Engine::Xdp, &open).is_ok());
    }
}
