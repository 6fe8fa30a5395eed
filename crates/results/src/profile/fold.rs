//! Samples of a profile run become what a store keeps: folded stacks by window.

use super::read::{Content, read};
use super::samples::{Samples, Weight};
use super::{ProfileError, Stacks};
use crate::store::StoredProfile;
use fwdlab_model::record::ProfileRecord;

/// Folds the text of `perf script` that belongs to `record`: each window's samples
/// of the sampled CPUs, and those outside of all windows. Unreadable text becomes
/// a remark; what was counted besides stays.
pub fn fold(mut record: ProfileRecord, text: &str) -> StoredProfile {
    let samples = match samples(text, &record) {
        Ok(samples) => samples,
        Err(error) => {
            record.remarks.push(format!("the samples can't be read: {error}"));
            Samples::default()
        }
    };
    let windows: Vec<String> = record
        .windows
        .iter()
        .map(|window| {
            // A sample on the border belongs to the later window.
            let inside = samples.window(window.from_ns, window.to_ns.saturating_sub(1)).samples;
            nameless(&inside.stacks(Weight::Sample)).folded()
        })
        .collect();
    let first = record.windows.first().map_or(u64::MAX, |window| window.from_ns);
    let last = record.windows.last().map_or(0, |window| window.to_ns);
    let mut outside = Stacks::default();
    let before = samples.window(0, first.saturating_sub(1)).samples;
    let after = samples.window(last, u64::MAX).samples;
    for part in [before, after] {
        outside.merge(&nameless(&part.stacks(Weight::Sample)));
    }
    let is_clock = record.event.contains("clock");
    let unit = if is_clock { "ns" } else { record.event.as_str() };
    StoredProfile {
        unit: unit.to_owned(),
        per_sample: mean_period(&samples).unwrap_or(1.0),
        windows,
        outside: outside.folded(),
        record,
    }
}

/// The stacks of a window as a store keeps them.
pub fn unfold(folded: &str) -> Stacks {
    let profile = read(folded.as_bytes()).ok();
    profile.and_then(|profile| Some(profile.stacks()?.into_owned())).unwrap_or_default()
}

fn samples(text: &str, record: &ProfileRecord) -> Result<Samples, ProfileError> {
    match read(text.as_bytes())?.content {
        Content::Samples(samples) if record.cpus.is_empty() => Ok(samples),
        Content::Samples(samples) => {
            Ok(samples.on_cpus(|cpu| record.cpus.iter().any(|known| u32::from(*known) == cpu)))
        }
        _ => Err(ProfileError::Unrecognised),
    }
}

/// The stacks with their processes' names as every run has them: NAPI threads are
/// called after interface and thread (`napi/d0-8193`), workers after what they do.
fn nameless(stacks: &Stacks) -> Stacks {
    let mut all = Stacks::default();
    for (frames, count) in stacks.iter() {
        let mut frames = frames.to_vec();
        if let Some(root) = frames.first_mut() {
            *root = process(root).into();
        }
        all.add(frames, count);
    }
    all
}

fn process(name: &str) -> &str {
    if name.starts_with("kworker/") {
        return "kworker";
    }
    match name.rsplit_once('-') {
        Some((stem, id)) if name.starts_with("napi/") && id.bytes().all(|b| b.is_ascii_digit()) => {
            stem
        }
        _ => name,
    }
}

/// What one sample stands for, in the event's unit.
fn mean_period(samples: &Samples) -> Option<f64> {
    let sum: f64 = samples.iter().map(|(sample, _)| sample.period as f64).sum();
    (!samples.is_empty() && sum > 0.0).then(|| sum / samples.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::ProfileWindow;

    const TEXT: &str = "\
napi/d0-1234  12 [001] 10.000000500:  500250 cpu-clock: \n\
\tffffffff81000001 ip_forward ([kernel.kallsyms])\n\
\tffffffff81000002 net_rx_action ([kernel.kallsyms])\n\
\n\
napi/d0  12 [001] 11.000000000:  500250 cpu-clock: \n\
\tffffffff81000003 fib_table_lookup ([kernel.kallsyms])\n\
\n\
swapper  0 [000] 10.500000000:  500250 cpu-clock: \n\
\tffffffff81000004 default_idle ([kernel.kallsyms])\n\
\n\
napi/d0  12 [001] 12.000000000:  500250 cpu-clock: \n\
\tffffffff81000001 ip_forward ([kernel.kallsyms])\n\
";

    #[test]
    fn samples_go_into_their_windows_and_the_rest_is_counted() {
        let window = |from: u64, to: u64| ProfileWindow {
            from_ns: from * 1_000_000_000,
            to_ns: to * 1_000_000_000,
            offered: 20,
            forwarded: 10,
        };
        let record = ProfileRecord {
            event: "cpu-clock".to_owned(),
            cpus: vec![1],
            windows: vec![window(10, 11), window(11, 12)],
            ..ProfileRecord::default()
        };
        let folded = fold(record, TEXT);
        assert_eq!(folded.windows[0], "napi/d0;net_rx_action;ip_forward 1\n");
        assert_eq!(folded.windows[1], "napi/d0;fib_table_lookup 1\n");
        assert_eq!(folded.outside, "napi/d0;ip_forward 1\n");
        assert_eq!((folded.unit.as_str(), folded.per_sample), ("ns", 500_250.0));
        assert!(folded.record.remarks.is_empty(), "{:?}", folded.record.remarks);
    }

    #[test]
    fn unreadable_text_is_a_remark() {
        let folded = fold(ProfileRecord::default(), "nothing of the kind\n");
        assert_eq!(folded.record.remarks.len(), 1);
        assert!(folded.record.remarks[0].contains("can't be read"));
    }
}
