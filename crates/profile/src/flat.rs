//! Profiles without stacks: what gprof keeps.

use serde::Serialize;

/// Functions and the calls between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlatProfile {
    /// Every function, those with the most of their own first.
    pub functions: Vec<FlatFunction>,
    /// Who called whom, by names.
    pub edges: Vec<Edge>,
}

/// A function; counts are in the profile's unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlatFunction {
    /// Name, without gprof's index and cycle.
    pub name: String,
    /// Spent in the function itself.
    pub own: f64,
    /// Spent in it and in what it called; none where the call graph hasn't it.
    pub total: Option<f64>,
    /// How often it was called (samples of a caller, where a profiler that
    /// samples wrote the file); none where unknown.
    pub calls: Option<u64>,
}

/// A call. gprof divides the time of the callee between its callers by the
/// number of calls, which is a guess.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// Who calls.
    pub caller: String,
    /// Who is called.
    pub callee: String,
    /// Of the callee's own time, the part due to this caller; 0 within a cycle.
    pub own: f64,
    /// The same of what the callee called.
    pub descendants: f64,
    /// How often; none where the number that was printed had overflowed.
    pub calls: Option<u64>,
}

impl FlatProfile {
    /// Sum over the functions.
    pub fn total(&self) -> f64 {
        self.functions.iter().map(|function| function.own).sum()
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<&FlatFunction> {
        self.functions.iter().find(|function| function.name == name)
    }
}
