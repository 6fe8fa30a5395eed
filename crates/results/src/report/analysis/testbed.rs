//! The testbed of the runs, and what its figures are worth.

use crate::label;
use crate::store::Contents;
use fwdlab_model::RunRecord;
use fwdlab_model::settings::TestbedKind;
use serde::Serialize;

/// The testbed of a store.
#[derive(Clone, Debug, Serialize)]
pub struct Testbed {
    /// Its kind; none where nothing was measured yet.
    pub kind: Option<TestbedKind>,
    /// Why it was chosen.
    pub reason: String,
    /// True when no packet was really sent.
    pub simulated: bool,
    /// Caveat to print with every number; empty for hardware.
    pub caption: String,
}

/// Of the runs, if there are any.
pub(super) fn testbed(contents: &Contents) -> Testbed {
    // Of the runs, if any: an invocation that recorded nothing says nothing.
    let used = contents.run_invocations.first();
    let invocation = contents
        .invocations
        .iter()
        .find(|stored| Some(&stored.id) == used)
        .or(contents.invocations.last())
        .map(|stored| &stored.invocation);
    let kind = invocation.map(|i| i.testbed);
    let simulated = invocation.is_some_and(|i| i.simulated);
    // The environment of a laboratory is its DUT's.
    let hypervisor = invocation.and_then(|i| i.environment.0.get("cpu")?.get("hypervisor"));
    let below = match kind {
        // One emulated run among others, and the figures are no machine's.
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

/// True for a run of a machine that QEMU emulated.
fn is_emulated(run: &RunRecord) -> bool {
    run.facts.get("executed by").is_some_and(|by| by.contains("TCG"))
}
