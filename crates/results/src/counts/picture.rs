//! Flame graphs of counts: subsystem and function, or stacks of calls.

use super::FunctionCount;
use crate::profile::Stacks;
use crate::profile::draw::{DrawError, Look, Side, difference, flame_graph};

/// Packets per count: flame graphs have integer counts, here thousandths of an instruction.
const PACKETS: f64 = 1000.0;
/// Subtitles of the flame graphs.
const FLAT: &str = "instructions by subsystem and function, not who calls whom";
const CALLS: &str = "instructions by who calls whom; instructions are not time";

/// Draws functions above their subsystems, with widths proportional to instructions.
///
/// # Errors
/// If there is no function, or counts are too large to draw.
pub(crate) fn flames(label: &str, functions: &[FunctionCount]) -> Result<String, DrawError> {
    flame_graph(&stacks(functions), &look(label.to_owned(), FLAT))
}

/// Draws call stacks, in thousandths of an instruction per packet.
///
/// # Errors
/// As for [`flames`].
pub(crate) fn flames_of_calls(label: &str, stacks: &Stacks) -> Result<String, DrawError> {
    flame_graph(stacks, &look(label.to_owned(), CALLS))
}

/// Draws a candidate in red where it executes more than its baseline, and in blue where less.
///
/// # Errors
/// As for [`flames`], of either variant.
pub(crate) fn red_and_blue(
    [baseline, candidate]: [&str; 2],
    before: &[FunctionCount],
    after: &[FunctionCount],
) -> Result<String, DrawError> {
    red_and_blue_of([baseline, candidate], &stacks(before), &stacks(after), FLAT)
}

/// Draws the difference of two sets of call stacks.
///
/// # Errors
/// As for [`flames`], of either variant.
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
    subtitle: &str,
) -> Result<String, DrawError> {
    let side = |stacks| Side { stacks, per_count: 1.0 / PACKETS };
    let look = look(format!("{candidate} against {baseline}"), subtitle);
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

fn look(title: String, subtitle: &str) -> Look {
    Look {
        title,
        subtitle: subtitle.to_owned(),
        unit: format!("instructions per {PACKETS} packets"),
        is_icicle: false,
    }
}
