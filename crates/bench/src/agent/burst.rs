//! Short bursts from one agent: a given number of packets, or the maximum rate.

use super::conversation::Conversation;
use super::protocol::{Order, SendOrder, Sent};
use super::traffic::End;
use crate::error::BenchError;
use fwdlab_model::settings::Engine;
use fwdlab_packet::{Family, Flows, Stream};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum lifetime of an agent that sends a burst.
const AT_MOST: Duration = Duration::from_secs(60);
/// Interval of reading the sender's counter.
const TICK: Duration = Duration::from_millis(10);

/// An agent that is ready to send a burst of the smallest IPv4 frames.
pub(crate) struct Burst {
    agent: Conversation,
    /// Mechanisms in use, by name.
    pub(crate) facts: BTreeMap<String, String>,
}

/// Result of a burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BurstResult {
    /// Packets sent.
    pub(crate) packets: u64,
    /// Duration by the sender's clock, seconds.
    pub(crate) seconds: f64,
}

impl Burst {
    /// Bytes of a frame with FCS.
    pub(crate) const FRAME: u16 = 64;

    /// Starts the agent; its frames go to `to`.
    ///
    /// # Errors
    /// Fails if the agent cannot be started or has no way to send.
    pub(crate) fn ready(
        end: &End<'_>,
        to: [u8; 6],
        run_id: u32,
        engine: Engine,
        rate_pps: Option<f64>,
    ) -> Result<Burst, BenchError> {
        let order = Order::Send(SendOrder {
            interface: end.interface.clone(),
            source_mac: end.mac,
            next_hop_mac: to,
            stream: Stream::new(
                Family::Inet,
                Burst::FRAME,
                Flows { sources: 16, destinations: 16 },
            ),
            run_id,
            first_number: 0,
            rate_pps,
            limit: None,
            first_flow: 0,
            timestamps: false,
            engine,
            cpus: end.cpus.clone(),
            at_most_ns: AT_MOST.as_nanos() as u64,
        });
        let (agent, facts) = Conversation::begin(end.host, &end.program, "send", &order)?;
        Ok(Burst { agent, facts })
    }

    /// Sends until the given number of packets is reached, if any, or the time limit.
    ///
    /// # Errors
    /// Fails if the agent fails.
    pub(crate) fn fire(
        mut self,
        packets: Option<u64>,
        at_most: Duration,
    ) -> Result<BurstResult, BenchError> {
        let begun = self.query(&Order::Start)?;
        match packets {
            // Queries would only disturb the sender.
            None => std::thread::sleep(at_most),
            Some(packets) => {
                let deadline = Instant::now() + at_most;
                while total(&self.query(&Order::Report { flows: false })?) < packets
                    && Instant::now() < deadline
                {
                    std::thread::sleep(TICK);
                }
            }
        }
        let ended = self.query(&Order::Stop)?;
        self.agent.end()?;
        let seconds = ended.at_ns.saturating_sub(begun.at_ns) as f64 / 1e9;
        Ok(BurstResult { packets: total(&ended), seconds })
    }

    fn query(&mut self, order: &Order) -> Result<Sent, BenchError> {
        self.agent.tell(order)?;
        self.agent.sent()
    }
}

fn total(sent: &Sent) -> u64 {
    sent.packets.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::fakes::{Shared, Threads};
    use std::sync::PoisonError;

    #[test]
    fn burst_ends_at_its_packet_or_time_limit() {
        let wire = Shared::default();
        let host = Threads { name: "near", wire: wire.clone() };
        let fire = |packets, at_most| {
            let (program, interface) = ("fwdlab".into(), "g0".into());
            let end = End { host: &host, program, interface, mac: [2; 6], cpus: vec![] };
            let burst = Burst::ready(&end, [2; 6], 1, Engine::Auto, None).expect("ready");
            assert_eq!(burst.facts["sender"], "fake");
            burst.fire(packets, Duration::from_millis(at_most)).expect("fired")
        };
        // Ten packets per query: one query at the start, four reports, one at the end.
        assert_eq!(fire(Some(50), 60_000).packets, 60);
        let timed = fire(None, 30);
        assert!(timed.packets == 20 && (0.029..30.0).contains(&timed.seconds), "{timed:?}");
        assert_eq!(wire.lock().unwrap_or_else(PoisonError::into_inner).sending, 0);
    }
}
