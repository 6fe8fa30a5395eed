//! Flame graphs of counts: subsystem and function, or stacks of calls.

use super::FunctionCount;
use crate::profile::Stacks;
use crate::profile::draw::{DrawError, Look, Side, difference, flame_graph};

/// Flame graphs count in whole numbers: thousandths of an instruction.
const PACKETS: f64 = 1000.0;
/// What is drawn.
const FLAT: &str = "instructions by subsystem and function, not who calls whom";
const CALLS: &str = "instructions by who calls whom; instructions are not time";

/// Functions above their subsystems, as wide as what they execute.
///
/// # Errors
/// No function, or counts too large to draw.
pub(crate) fn flames(label: &str, functions: &[FunctionCount]) -> Result<String, DrawError> {
    flame_graph(&stacks(functions), &look(label.to_owned(), FLAT))
}

/// Stacks of calls, in thousandths of an instruction a packet.
///
/// # Errors
/// As [`flames`].
pub(crate) fn flames_of_calls(label: &str, stacks: &Stacks) -> Result<String, DrawError> {
    flame_graph(stacks, &look(label.to_owned(), CALLS))
}

/// The same of a candidate, red where it executes more than its baseline and blue where less.
///
/// # Errors
/// As [`flames`], of either.
pub(crate) fn red_and_blue(
    [baseline, candidate]: [&str; 2],
    before: &[FunctionCount],
    after: &[FunctionCount],
) -> Result<String, DrawError> {
    red_and_blue_of([baseline, candidate], &stacks(before), &stacks(after), FLAT)
}

/// The same of stacks of calls.
///
/// # Errors
/// As [`flames`], of either.
pub(crate) fn red_and_blue_of_calls(
    labels: [&str; 2],
    before: &Stacks,
    after: &Stacks,
) -> Result<String, DrawError> {
    red_and_blue_of(labels, before, after, CALLS)
}

fn red_and_blue_of(
    [baseline, candidate]: [&str; 2],
    before: &Stacks,
    after: &Stacks,
    what: &str,
) -> Result<String, DrawError> {
    let side = |stacks| Side { stacks, per_count: 1.0 / PACKETS };
    let look = look(format!("{candidate} against {baseline}"), what);
    difference(side(before), side(after), true, &Look { unit: "instructions".to_owned(), ..look })
}

fn stacks(functions: &[FunctionCount]) -> Stacks {
    let mut stacks = Stacks::default();
    for function in functions {
        let count = (function.instructions * PACKETS).round().max(0.0) as u64;
        stacks.add(vec![function.subsystem.as_str().into(), function.name.as_str().into()], count);
    }
    stacks
}

fn look(title: String, what: &str) -> Look {
    Look {
        title,
        subtitle: what.to_owned(),
        unit: format!("instructions per {PACKETS} packets"),
        is_icicle: false,
    }
}
