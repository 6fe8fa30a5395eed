//! The sending agent's side of the conversation.

use super::protocol::{Answer, Order, SendOrder, Sent};
use super::serve::{Agent, StartedAgent, misplaced, serve as converse};
use crate::error::BenchError;
use fwdlab_netio::{Sender, clock};
use fwdlab_packet::Phase;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::Duration;

/// Senders that wait to be started, and facts about them.
pub type Opened = (Vec<Box<dyn Sender>>, BTreeMap<String, String>);

/// Serves one controller on `input` and `output` until it sends the order to stop, disconnects, or
/// the time limit of its order is reached; `stopped` is polled several times a second. `open` opens
/// the senders: [`super::open::senders`], or a test's.
///
/// # Errors
/// Failures of senders and of orders, and the time limit. A controller that disconnects is not an
/// error.
pub fn serve(
    input: impl Read + Send + 'static,
    output: &mut dyn Write,
    stopped: &dyn Fn() -> bool,
    open: impl FnOnce(&SendOrder) -> Result<Opened, BenchError>,
) -> Result<(), BenchError> {
    converse(input, output, stopped, |order| {
        let Order::Send(order) = order else { return Err(misplaced(&order)) };
        let (senders, facts) = open(&order)?;
        let agent = Sending { senders, last: Sent::default() };
        Ok(StartedAgent { agent, facts, at_most: Duration::from_nanos(order.at_most_ns) })
    })
}

struct Sending {
    /// Empty after the order to stop.
    senders: Vec<Box<dyn Sender>>,
    last: Sent,
}

impl Sending {
    fn count(&self) -> Sent {
        let mut sent = Sent { at_ns: clock::monotonic_ns(), ..self.last };
        for sender in &self.senders {
            add(&mut sent.packets, sender.sent());
            sent.missed += sender.missed();
        }
        sent
    }

    fn stop(&mut self) -> Result<Sent, BenchError> {
        let mut sent = self.last;
        // Stops all senders even if one fails.
        let mut failed = None;
        for sender in std::mem::take(&mut self.senders) {
            sent.missed += sender.missed();
            match sender.halt() {
                Ok(packets) => add(&mut sent.packets, packets),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        sent.at_ns = clock::monotonic_ns();
        match failed {
            None => Ok(sent),
            Some(error) => Err(error.into()),
        }
    }
}

impl Agent for Sending {
    fn obey(&mut self, order: Order) -> Result<Answer, BenchError> {
        Ok(Answer::Sent(match order {
            Order::Start => {
                self.senders.iter().for_each(|sender| sender.start());
                self.count()
            }
            Order::Phase { phase: number @ 0..=2 } => {
                let phase = [Phase::WarmUp, Phase::Window, Phase::After][usize::from(number)];
                self.senders.iter().for_each(|sender| sender.set_phase(phase));
                self.count()
            }
            Order::Rate { rate_pps } if rate_pps > 0.0 && rate_pps.is_finite() => {
                let share = rate_pps / self.senders.len().max(1) as f64;
                self.senders.iter().for_each(|sender| sender.set_rate(share));
                self.count()
            }
            Order::Report { .. } => self.count(),
            Order::Stop => self.stop()?,
            other => return Err(misplaced(&other)),
        }))
    }
}

fn add(sum: &mut [u64], packets: impl IntoIterator<Item = u64>) {
    for (sum, packets) in sum.iter_mut().zip(packets) {
        *sum += packets;
    }
}

#[cfg(test)]
mod tests;
