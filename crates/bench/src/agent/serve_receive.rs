//! The receiving agent's side of the conversation.

use super::protocol::{Answer, Order, ReceiveOrder, Received};
use super::serve::{Agent, StartedAgent, misplaced, serve as converse};
use crate::arrivals;
use crate::error::BenchError;
use fwdlab_model::record::{Checked, Latency};
use fwdlab_netio::{Receiver, clock};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::Duration;

/// An open receiver, facts about it, and its checks of packets.
pub type Opened = (Box<dyn Receiver>, BTreeMap<String, String>, Checked);

/// Serves one controller, like [`super::serve_send::serve`]. `open` opens the receiver:
/// [`super::open::receiver`], or a test's.
///
/// # Errors
/// Failures of the receiver and of orders, and the time limit. A controller that disconnects is not
/// an error.
pub fn serve(
    input: impl Read + Send + 'static,
    output: &mut dyn Write,
    stopped: &dyn Fn() -> bool,
    open: impl FnOnce(&ReceiveOrder) -> Result<Opened, BenchError>,
) -> Result<(), BenchError> {
    converse(input, output, stopped, |order| {
        let Order::Receive(order) = order else { return Err(misplaced(&order)) };
        let (receiver, facts, checked) = open(&order)?;
        let at_most = Duration::from_nanos(order.at_most_ns);
        Ok(StartedAgent {
            agent: ReceiverKind { receiver: Some(receiver), checked },
            facts,
            at_most,
        })
    })
}

/// Reads a receiver's counters; with `flows`, also the results of its checks.
pub fn count(receiver: &dyn Receiver, checked: Checked, flows: bool) -> Received {
    let counted = receiver.received();
    let arrivals = flows.then(|| arrivals::found(receiver, checked));
    Received {
        at_ns: clock::monotonic_ns(),
        packets: counted.packets,
        bytes: counted.bytes.iter().sum(),
        foreign: counted.foreign,
        unstamped: counted.unstamped,
        others: counted.others,
        dropped: receiver.dropped(),
        flows: arrivals.as_ref().and_then(|found| found.flows).map(|flows| flows.seen),
        damaged: counted.faults.iter().sum(),
        arrivals,
        delays: if flows { receiver.delays().and_then(|all| Latency::of(&all)) } else { None },
    }
}

struct ReceiverKind {
    /// `None` after the order to stop.
    receiver: Option<Box<dyn Receiver>>,
    checked: Checked,
}

impl Agent for ReceiverKind {
    fn obey(&mut self, order: Order) -> Result<Answer, BenchError> {
        let (flows, last) = match order {
            Order::Report { flows } => (flows, false),
            Order::Stop => (true, true),
            other => return Err(misplaced(&other)),
        };
        let Some(receiver) = &self.receiver else { return Err(misplaced(&order)) };
        let received = count(receiver.as_ref(), self.checked, flows);
        if last {
            self.receiver = None; // off the interface before the answer is sent
        }
        Ok(Answer::Received(Box::new(received)))
    }
}
