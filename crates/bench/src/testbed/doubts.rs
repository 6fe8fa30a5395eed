//! Doubts that follow from what was seen of machine and DUT during a trial.

use crate::Task;
use crate::cpu::Placement;
use crate::trial::Observed;
use fwdlab_model::record::{Counter, CpuTime};
use fwdlab_model::settings::{Arrangement, Rate, Settings};
use fwdlab_model::warning::Warning;

/// Share of the window that may be taken from a CPU of the DUT without a warning.
const CONTENDED: f64 = 0.05;

/// Doubts that follow from what was seen of machine and DUT.
pub(super) fn doubts(
    observed: &Observed,
    settings: &Settings,
    placement: &Placement,
    task: &Task<'_>,
    counters: &[Counter],
    cpus: &[CpuTime],
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let seconds = observed.window_ns as f64 / 1e9;
    let forwarded_pps = observed.window.forwarded as f64 / seconds;
    let overloaded = placement.arrangement == Arrangement::Open
        && settings.traffic.rate == Rate::Max
        && observed.window.loss_ratio() < 0.01;
    match task.ceiling_pps {
        Some(ceiling_pps) if forwarded_pps > 0.9 * ceiling_pps || overloaded => {
            warnings.push(Warning::GeneratorLimited { forwarded_pps, ceiling_pps });
        }
        None if overloaded => {
            let ceiling_pps = observed.window.offered as f64 / seconds;
            warnings.push(Warning::GeneratorLimited { forwarded_pps, ceiling_pps });
        }
        _ => {}
    }
    let window_ns = observed.window_ns as f64;
    for cpu in cpus.iter().filter(|cpu| cpu.role != "sender") {
        let stolen = cpu.stolen_ns as f64 / window_ns;
        // The kernel forwards in its own threads and softirqs: user time on a CPU
        // that is the DUT's alone is somebody else's.
        let user = if cpu.role == "dut" { cpu.user_ns as f64 / window_ns } else { 0.0 };
        if stolen > CONTENDED || user > CONTENDED {
            warnings.push(Warning::CpuContended { cpu: cpu.cpu, stolen, user });
        }
    }
    let flows = settings.traffic.flows.count();
    if let Some(seen) = observed.flows_seen
        && seen < flows
        && observed.total.forwarded > 100 * u64::from(flows)
    {
        warnings.push(Warning::FlowsMissing { seen, sent: flows });
    }
    // The DUT's own counters must agree with ours, to their accuracy: a few packets
    // of its own (neighbour and multicast traffic).
    for counter in counters {
        if let Some(expected) = counter.expected
            && counter.delta().abs_diff(expected) > 100 + expected / 1000
        {
            warnings.push(Warning::CounterMismatch {
                counter: counter.name.clone(),
                counted: counter.delta(),
                expected,
            });
        }
    }
    warnings
}
