//! Samples of measured windows: a profiler at a low frequency, started and stopped with the window.

use crate::cpu::Placement;
use crate::profiler::{RawProfile, Sampling};
use crate::trial::Observed;
use fwdlab_model::plan::PlannedRun;
use fwdlab_model::profile::{Event, ProfilePlan};
use fwdlab_model::record::{ProfileRecord, ProfileWindow, Sample};
use std::collections::BTreeSet;

/// Samples of a measured run.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// One record per variant of the run; each names the parts of the window that belong to its
    /// variant.
    pub records: Vec<ProfileRecord>,
    /// The samples of the whole window.
    pub raw: RawProfile,
}

/// Sampling of a plan's measured runs; `None` if they are not sampled. `known` is the event that an
/// earlier run settled on, so that later runs need not try which events this machine counts.
pub(super) fn sampling(plan: Option<&ProfilePlan>, known: Option<Event>) -> Option<Sampling> {
    let plan = plan.filter(|plan| plan.sampling_hz > 0)?;
    Some(Sampling {
        frequency_hz: plan.sampling_hz,
        event: known.unwrap_or(plan.event),
        call_graph: plan.call_graph,
        counts: false,
    })
}

/// Combines a run's samples with the packets of its window, which opened at `start_ns` by the DUT's
/// clock.
pub(super) fn of_run(
    run: &PlannedRun,
    observed: &Observed,
    placement: &Placement,
    sampling: &Sampling,
    start_ns: u64,
    raw: RawProfile,
) -> Sampled {
    let record = |&variant: &usize| ProfileRecord {
        variant,
        run: Some(run.index),
        source: raw.source.clone(),
        event: raw.event.clone(),
        frequency_hz: sampling.frequency_hz,
        call_graph: raw.call_graph.clone(),
        cpus: placement.dut.clone(),
        window_ns: (start_ns, start_ns + observed.window_ns),
        windows: windows(observed, run, variant, start_ns),
        sampled_from_ns: raw.sampled_from_ns,
        sampled_to_ns: raw.sampled_to_ns,
        remarks: raw.remarks.clone(),
        ..ProfileRecord::default()
    };
    // A mirrored cycle names a variant twice.
    let variants: BTreeSet<usize> = run.variants.iter().copied().collect();
    Sampled { records: variants.iter().map(record).collect(), raw }
}

/// Parts of a run's window in which `variant` was active: all of it, or its slices of an
/// alternation.
fn windows(
    observed: &Observed,
    run: &PlannedRun,
    variant: usize,
    start_ns: u64,
) -> Vec<ProfileWindow> {
    if run.variants.len() == 1 {
        return vec![ProfileWindow {
            from_ns: start_ns,
            to_ns: start_ns + observed.window_ns,
            offered: observed.window.offered,
            forwarded: observed.window.forwarded,
        }];
    }
    let is_of_variant = |sample: &&Sample| sample.valid && sample.variant == variant;
    let samples: Vec<&Sample> = observed.samples.iter().filter(is_of_variant).collect();
    let touch = |a: &&Sample, b: &&Sample| a.at_ns + a.duration_ns == b.at_ns;
    let part = |group: &[&Sample]| {
        let (first, last) = (group.first()?, group.last()?);
        Some(ProfileWindow {
            from_ns: start_ns + first.at_ns,
            to_ns: start_ns + last.at_ns + last.duration_ns,
            offered: group.iter().map(|sample| sample.offered).sum(),
            forwarded: group.iter().map(|sample| sample.forwarded).sum(),
        })
    };
    samples.chunk_by(touch).filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::Counts;

    fn observed() -> Observed {
        let sample = |n: u64| Sample {
            at_ns: n * 10,
            duration_ns: 10,
            offered: 3,
            forwarded: 2,
            // Two slices of each variant, of which the first settles.
            variant: usize::from(n % 4 > 1),
            valid: n.is_multiple_of(2) || n > 7,
            ..Sample::default()
        };
        Observed {
            window_ns: 120,
            window: Counts { offered: 36, forwarded: 24 },
            samples: (0..12).map(sample).collect(),
            ..Observed::default()
        }
    }

    fn sampled(variants: Vec<usize>) -> Vec<ProfileRecord> {
        let run = PlannedRun { index: 7, block: 1, variants };
        let sampling = sampling(Some(&ProfilePlan::default()), None).expect("sampled");
        let (observed, placement) = (observed(), Placement::of_dut(vec![1]));
        of_run(&run, &observed, &placement, &sampling, 1000, RawProfile::default()).records
    }

    #[test]
    fn plain_run_has_one_window_with_all_packets() {
        let [record] = sampled(vec![4]).try_into().expect("one record");
        assert_eq!((record.variant, record.run, record.frequency_hz), (4, Some(7), 199));
        let whole = ProfileWindow { from_ns: 1000, to_ns: 1120, offered: 36, forwarded: 24 };
        assert_eq!(record.windows, [whole]);
    }

    #[test]
    fn alternation_gives_each_variant_its_valid_slices() {
        let records = sampled(vec![0, 1, 1, 0]);
        assert_eq!(records.len(), 2);
        let spans = |variant: usize| -> Vec<(u64, u64)> {
            records[variant].windows.iter().map(|w| (w.from_ns - 1000, w.to_ns - 1000)).collect()
        };
        assert_eq!(spans(0), [(0, 10), (40, 50), (80, 100)]);
        assert_eq!(spans(1), [(20, 30), (60, 70), (100, 120)]);
        assert_eq!(records[1].windows[2].forwarded, 4);
    }

    #[test]
    fn sampling_can_be_switched_off() {
        let off = ProfilePlan { sampling_hz: 0, ..ProfilePlan::default() };
        assert!(sampling(Some(&off), None).is_none() && sampling(None, None).is_none());
        let known = sampling(Some(&ProfilePlan::default()), Some(Event::CpuClock));
        assert_eq!(known.map(|sampling| sampling.event), Some(Event::CpuClock));
    }
}
