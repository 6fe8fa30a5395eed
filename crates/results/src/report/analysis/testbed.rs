//! The testbed of the runs, with a caveat about its numbers.

use crate::label;
use crate::store::Contents;
use fwdlab_model::RunRecord;
use fwdlab_model::settings::TestbedKind;
use serde::Serialize;

/// The testbed of a store.
#[derive(Clone, Debug, Serialize)]
pub struct Testbed {
    /// Its kind; `None` if nothing was measured yet.
    pub kind: Option<TestbedKind>,
    /// Reason for choosing it.
    pub reason: String,
    /// True if no packets were sent.
    pub simulated: bool,
    /// Caveat to print with every number; empty for hardware.
    pub caption: String,
}

/// Returns the testbed of the runs, or the one of the last invocation if there are no runs.
pub(super) fn testbed(contents: &Contents) -> Testbed {
    // An invocation without runs is not representative.
    let used = contents.run_invocations.first();
    let invocation = contents
        .invocations
        .iter()
        .find(|stored| Some(&stored.id) == used)
        .or(contents.invocations.last())
        .map(|stored| &stored.invocation);
    let kind = invocation.map(|i| i.testbed);
    let simulated = invocation.is_some_and(|i| i.simulated);
    // In a laboratory, the environment is the DUT's.
    let hypervisor = invocation.and_then(|i| i.environment.0.get("cpu")?.get("hypervisor"));
    let below = match kind {
        // With any emulated run, the results are not a real machine's.
        Some(TestbedKind::Vm) => !contents.runs.iter().any(is_emulated),
        _ => hypervisor.is_some(),
    };
    let caption = label::caption(simulated, kind, below, contents.plan.metric());
    Testbed {
        kind,
        reason: invocation.map_or(String::new(), |i| i.testbed_reason.clone()),
        simulated,
        caption: caption.to_owned(),
    }
}

/// Returns true for a run on a machine that QEMU emulated.
fn is_emulated(run: &RunRecord) -> bool {
    run.facts.get("executed by").is_some_and(|by| by.contains("TCG"))
}
