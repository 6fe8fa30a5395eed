//! Flat flame graphs of counts: subsystem, function.

use super::FunctionCount;
use crate::profile::Stacks;
use crate::profile::draw::{DrawError, Look, Side, difference, flame_graph};

/// Flame graphs count in whole numbers: thousandths of an instruction.
const PACKETS: f64 = 1000.0;

/// Functions above their subsystems, as wide as what they execute.
///
/// # Errors
/// No function, or counts too large to draw.
pub(crate) fn flames(label: &str, functions: &[FunctionCount]) -> Result<String, DrawError> {
    flame_graph(&stacks(functions), &look(label.to_owned()))
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
    let (before, after) = (stacks(before), stacks(after));
    let side = |stacks| Side { stacks, per_count: 1.0 / PACKETS };
    let look = look(format!("{candidate} against {baseline}"));
    difference(side(&before), side(&after), true, &Look { unit: "instructions".to_owned(), ..look })
}

fn stacks(functions: &[FunctionCount]) -> Stacks {
    let mut stacks = Stacks::default();
    for function in functions {
        let count = (function.instructions * PACKETS).round().max(0.0) as u64;
        stacks.add(vec![function.subsystem.as_str().into(), function.name.as_str().into()], count);
    }
    stacks
}

fn look(title: String) -> Look {
    Look {
        title,
        subtitle: "instructions by subsystem and function, not who calls whom".to_owned(),
        unit: format!("instructions per {PACKETS} packets"),
        is_icicle: false,
    }
}
