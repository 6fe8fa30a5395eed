//! Profiles without stacks, as gprof records them.

use serde::Serialize;

/// Functions and the calls between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlatProfile {
    /// Functions, those with the highest own cost first.
    pub functions: Vec<FlatFunction>,
    /// Calls between functions, by name.
    pub edges: Vec<Edge>,
}

/// A function; costs are in the profile's unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlatFunction {
    /// Name, without gprof's index and cycle.
    pub name: String,
    /// Cost of the function itself.
    pub own: f64,
    /// Cost of the function and its callees. `None` if the call graph lacks it.
    pub total: Option<f64>,
    /// Number of calls (samples of a caller, if a sampling profiler wrote the file). `None` if
    /// unknown.
    pub calls: Option<u64>,
}

/// A call. gprof divides the time of the callee between its callers by the number of calls, which
/// is an estimate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// Calling function.
    pub caller: String,
    /// Called function.
    pub callee: String,
    /// Part of the callee's own time due to this caller; 0 within a cycle.
    pub own: f64,
    /// Part of the time of the callee's descendants due to this caller.
    pub descendants: f64,
    /// Number of calls. `None` if the printed number overflowed.
    pub calls: Option<u64>,
}

impl FlatProfile {
    /// Sum of own costs over the functions.
    pub fn total(&self) -> f64 {
        self.functions.iter().map(|function| function.own).sum()
    }

    /// Finds a function by name.
    pub fn function(&self, name: &str) -> Option<&FlatFunction> {
        self.functions.iter().find(|function| function.name == name)
    }
}
