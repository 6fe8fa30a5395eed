//! What every testbed's profile runs share: their phases, their parts.

use fwdlab_model::plan::Trial;
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{ProfileWindow, Sample};

/// The phases of a profile run: those of the plan, with the window of the profile,
/// whose parts are whole numbers of slices.
pub(super) fn trial(plan: &Trial, profile: &ProfilePlan) -> Trial {
    let part_ns = profile.duration_ns / u64::from(profile.windows.max(1));
    let slice_ns = part_ns / part_ns.div_ceil(plan.slice_ns.max(1)).max(1);
    Trial { duration_ns: profile.duration_ns, slice_ns, ..*plan }
}

/// The parts of a window that opened at `start_ns`: each sample counts for the part
/// in which its middle lies.
pub(super) fn windows(
    samples: &[Sample],
    start_ns: u64,
    profile: &ProfilePlan,
) -> Vec<ProfileWindow> {
    let parts = u64::from(profile.windows.max(1));
    let part_of = |sample: &Sample| {
        let middle_ns = u128::from(sample.at_ns) + u128::from(sample.duration_ns) / 2;
        let part = middle_ns * u128::from(parts) / u128::from(profile.duration_ns.max(1));
        part.min(u128::from(parts) - 1)
    };
    let mut windows: Vec<ProfileWindow> = Vec::new();
    for group in samples.chunk_by(|a, b| part_of(a) == part_of(b)) {
        if let (Some(first), Some(last)) = (group.first(), group.last()) {
            windows.push(ProfileWindow {
                from_ns: start_ns + first.at_ns,
                to_ns: start_ns + last.at_ns + last.duration_ns,
                offered: group.iter().map(|sample| sample.offered).sum(),
                forwarded: group.iter().map(|sample| sample.forwarded).sum(),
            });
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_touch_and_hold_every_packet() {
        let sample = |n: u64| Sample {
            at_ns: n * 20,
            duration_ns: 20,
            offered: 10,
            forwarded: n,
            stolen_ns: 0,
            variant: 0,
            slice: 0,
            valid: true,
        };
        let samples: Vec<Sample> = (0..50).map(sample).collect();
        let profile = ProfilePlan { duration_ns: 1000, windows: 5, ..ProfilePlan::default() };
        let windows = windows(&samples, 7000, &profile);
        assert_eq!(windows.len(), 5);
        assert_eq!((windows[0].from_ns, windows[4].to_ns), (7000, 8000));
        assert!(windows.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert!(windows.iter().all(|window| window.offered == 100));
        assert_eq!(windows.iter().map(|window| window.forwarded).sum::<u64>(), 49 * 50 / 2);
    }

    #[test]
    fn short_parts_are_cut_finer() {
        let plan = Trial {
            warmup_ns: 1,
            duration_ns: 2,
            drain_ns: 3,
            interval_ns: 100_000_000,
            slice_ns: 20_000_000,
        };
        let profile =
            ProfilePlan { duration_ns: 1_000_000_000, windows: 100, ..ProfilePlan::default() };
        let trial = trial(&plan, &profile);
        assert_eq!((trial.duration_ns, trial.slice_ns), (1_000_000_000, 10_000_000));
        assert_eq!((trial.warmup_ns, trial.drain_ns), (1, 3));
        let odd = super::trial(&plan, &ProfilePlan { windows: 4, ..profile });
        assert_eq!(odd.slice_ns, 250_000_000 / 13);
    }
}
