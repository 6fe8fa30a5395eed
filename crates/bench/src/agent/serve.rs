//! Common to both agents: hello, orders, time limit.

use super::line_reader::{LineOutcome, Lines};
use super::protocol::{Answer, Hello, Order};
use crate::error::BenchError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Interval of checking whether to exit.
const TICK: Duration = Duration::from_millis(50);

/// An open agent. Dropping it stops its traffic.
pub(super) trait Agent {
    /// Executes an order.
    ///
    /// # Errors
    /// Fails if the order cannot be executed; the agent then exits.
    fn obey(&mut self, order: Order) -> Result<Answer, BenchError>;
}

/// An agent after its first order.
pub(super) struct StartedAgent<A> {
    pub(super) agent: A,
    pub(super) facts: BTreeMap<String, String>,
    pub(super) at_most: Duration,
}

/// Result of waiting for the next line.
enum Next<T> {
    Message(T),
    /// The controller has disconnected, or the user interrupted the agent.
    Over,
}

/// Serves one controller. `begin` executes the first order; `stopped` is polled several
/// times a second.
///
/// # Errors
/// Failures of `begin` and orders, a version mismatch, and the time limit; they are sent to
/// the controller as well. A controller that disconnects is not an error.
pub(super) fn serve<A: Agent>(
    input: impl Read + Send + 'static,
    output: &mut dyn Write,
    stopped: &dyn Fn() -> bool,
    begin: impl FnOnce(Order) -> Result<StartedAgent<A>, BenchError>,
) -> Result<(), BenchError> {
    let lines = Lines::of(input);
    if !write_line(output, &Hello::own()) {
        return Ok(());
    }
    let result = converse(&lines, output, stopped, begin);
    if let Err(error) = &result {
        let (what, next) = match error {
            BenchError::Environment { what, next } => (what.clone(), next.clone()),
            other => (other.to_string(), String::new()),
        };
        write_line(output, &Answer::Failed { what, next });
    }
    result
}

fn converse<A: Agent>(
    lines: &Lines,
    output: &mut dyn Write,
    stopped: &dyn Fn() -> bool,
    begin: impl FnOnce(Order) -> Result<StartedAgent<A>, BenchError>,
) -> Result<(), BenchError> {
    let Next::Message(hello) = next_message::<Hello>(lines, None, stopped)? else { return Ok(()) };
    hello.check("whoever gives orders")?;
    let Next::Message(order) = next_message::<Order>(lines, None, stopped)? else { return Ok(()) };
    let StartedAgent { mut agent, facts, at_most } = begin(order)?;
    let end = Instant::now() + at_most;
    let mut continues = write_line(output, &Answer::Ready { facts });
    while continues {
        let Next::Message(order) = next_message::<Order>(lines, Some(end), stopped)? else { break };
        let last = order == Order::Stop;
        continues = write_line(output, &agent.obey(order)?) && !last;
    }
    Ok(())
}

/// Waits for the next message until `end`.
fn next_message<T: DeserializeOwned>(
    lines: &Lines,
    end: Option<Instant>,
    stopped: &dyn Fn() -> bool,
) -> Result<Next<T>, BenchError> {
    while !stopped() {
        match lines.next(TICK) {
            LineOutcome::Line(line) => {
                let message = serde_json::from_str(&line).map_err(|error| {
                    BenchError::Refused(format!("told `{line}`, which is no order here: {error}"))
                })?;
                return Ok(Next::Message(message));
            }
            LineOutcome::Nothing if end.is_some_and(|end| Instant::now() >= end) => {
                return Err(BenchError::environment(
                    "the time that the order gave is over, and nobody said stop",
                    "see why the controller went silent, or give more time",
                ));
            }
            LineOutcome::Nothing => {}
            LineOutcome::End => return Ok(Next::Over),
        }
    }
    Ok(Next::Over)
}

/// Writes a line; false if the other side has closed.
fn write_line<T: Serialize>(output: &mut dyn Write, message: &T) -> bool {
    let Ok(line) = serde_json::to_string(message) else { return false };
    writeln!(output, "{line}").and_then(|()| output.flush()).is_ok()
}

/// Error for an order at the wrong time.
pub(super) fn misplaced(order: &Order) -> BenchError {
    let line = serde_json::to_string(order).unwrap_or_default();
    BenchError::Refused(format!("this agent can't do that now: {line}"))
}
