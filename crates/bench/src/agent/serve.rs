//! What both agents do alike: say hello, obey, and end in time.

use super::lines::{Heard, Lines};
use super::protocol::{Answer, Hello, Order};
use crate::error::BenchError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Time between two looks at whether to end.
const TICK: Duration = Duration::from_millis(50);

/// An agent at work. Dropping it ends its work.
pub(super) trait Agent {
    /// Carries an order out.
    ///
    /// # Errors
    /// When it can't; the agent ends then.
    fn obey(&mut self, order: Order) -> Result<Answer, BenchError>;
}

/// An agent that has just begun.
pub(super) struct Begun<A> {
    pub(super) agent: A,
    pub(super) facts: BTreeMap<String, String>,
    pub(super) at_most: Duration,
}

/// How the next line came out.
enum Next<T> {
    Said(T),
    /// Whoever gave the orders is gone, or somebody asked to stop.
    Over,
}

/// Serves one controller. `begin` carries the first order out; `stopped` is asked some
/// times a second.
///
/// # Errors
/// What begin and orders meet, a controller of another version, and time that is over;
/// the controller is told as well. A controller that is gone is no error.
pub(super) fn serve<A: Agent>(
    input: impl Read + Send + 'static,
    output: &mut dyn Write,
    stopped: &dyn Fn() -> bool,
    begin: impl FnOnce(Order) -> Result<Begun<A>, BenchError>,
) -> Result<(), BenchError> {
    let lines = Lines::of(input);
    if !say(output, &Hello::own()) {
        return Ok(());
    }
    let result = converse(&lines, output, stopped, begin);
    if let Err(error) = &result {
        let (what, next) = match error {
            BenchError::Environment { what, next } => (what.clone(), next.clone()),
            other => (other.to_string(), String::new()),
        };
        say(output, &Answer::Failed { what, next });
    }
    result
}

fn converse<A: Agent>(
    lines: &Lines,
    output: &mut dyn Write,
    stopped: &dyn Fn() -> bool,
    begin: impl FnOnce(Order) -> Result<Begun<A>, BenchError>,
) -> Result<(), BenchError> {
    let Next::Said(hello) = hear::<Hello>(lines, None, stopped)? else { return Ok(()) };
    hello.check("whoever gives orders")?;
    let Next::Said(order) = hear::<Order>(lines, None, stopped)? else { return Ok(()) };
    let Begun { mut agent, facts, at_most } = begin(order)?;
    let end = Instant::now() + at_most;
    let mut said = say(output, &Answer::Ready { facts });
    while said {
        let Next::Said(order) = hear::<Order>(lines, Some(end), stopped)? else { break };
        let last = order == Order::Stop;
        said = say(output, &agent.obey(order)?) && !last;
    }
    Ok(())
}

/// The next line, before the time is over.
fn hear<T: DeserializeOwned>(
    lines: &Lines,
    end: Option<Instant>,
    stopped: &dyn Fn() -> bool,
) -> Result<Next<T>, BenchError> {
    while !stopped() {
        match lines.next(TICK) {
            Heard::Line(line) => {
                let said = serde_json::from_str(&line).map_err(|error| {
                    BenchError::Refused(format!("told `{line}`, which is no order here: {error}"))
                })?;
                return Ok(Next::Said(said));
            }
            Heard::Nothing if end.is_some_and(|end| Instant::now() >= end) => {
                return Err(BenchError::environment(
                    "the time that the order gave is over, and nobody said stop",
                    "see why the controller went silent, or give more time",
                ));
            }
            Heard::Nothing => {}
            Heard::End => return Ok(Next::Over),
        }
    }
    Ok(Next::Over)
}

/// Says a line; false when nobody listens any more.
fn say<T: Serialize>(output: &mut dyn Write, what: &T) -> bool {
    let Ok(line) = serde_json::to_string(what) else { return false };
    writeln!(output, "{line}").and_then(|()| output.flush()).is_ok()
}

/// An order that comes at the wrong time.
pub(super) fn misplaced(order: &Order) -> BenchError {
    let line = serde_json::to_string(order).unwrap_or_default();
    BenchError::Refused(format!("this agent can't do that now: {line}"))
}
