//! Folds the samples of a profile run into stacks by window, as a store keeps them.

use super::read::{Content, parse_folded, read};
use super::samples::{Samples, Weight};
use super::stacks::Names;
use super::{ProfileError, Stacks};
use fwdlab_model::record::{ProfileRecord, ProfileWindow};
use fwdlab_store::StoredProfile;

/// Folds the `perf script` text of `record`: the samples of the sampled CPUs in each window, and
/// those outside all windows. A sample counts as its share of the mean period. Unreadable text and
/// everything that was left out become remarks; the other counts stay.
pub fn fold(mut record: ProfileRecord, text: &str) -> StoredProfile {
    let samples = match samples(text, &mut record) {
        Ok(samples) => samples,
        Err(error) => {
            record.remarks.push(format!("the samples can't be read: {error}"));
            Samples::default()
        }
    };
    let per_sample = mean_period(&samples).unwrap_or(1.0);
    let windows: Vec<String> = record
        .windows
        .iter()
        .map(|window| {
            // A sample on the border belongs to the later window.
            let inside = samples.window(window.from_ns, window.to_ns.saturating_sub(1)).samples;
            weighed(&inside, per_sample).folded()
        })
        .collect();
    let first = record.windows.first().map_or(u64::MAX, |window| window.from_ns);
    let last = record.windows.last().map_or(0, |window| window.to_ns);
    let mut outside = Stacks::default();
    let before = samples.window(0, first.saturating_sub(1)).samples;
    let after = samples.window(last, u64::MAX).samples;
    for part in [before, after] {
        outside.merge(&weighed(&part, per_sample));
    }
    let is_clock = record.event.contains("clock");
    let unit = if is_clock { "ns" } else { record.event.as_str() };
    StoredProfile { unit: unit.to_owned(), per_sample, windows, outside: outside.folded(), record }
}

/// Folds the samples of a measured run: its windows, possibly many slices, become one window with
/// all their samples, time and packets.
pub fn fold_run(record: ProfileRecord, text: &str) -> StoredProfile {
    let folded = fold(record, text);
    let mut stacks = Stacks::default();
    folded.windows.iter().for_each(|window| stacks.merge(&unfold(window)));
    let whole = folded.record.windows.iter().copied().reduce(|whole, part| ProfileWindow {
        from_ns: whole.from_ns,
        to_ns: whole.to_ns + (part.to_ns - part.from_ns),
        offered: whole.offered + part.offered,
        forwarded: whole.forwarded + part.forwarded,
    });
    let windows = whole.iter().map(|_| stacks.folded()).collect();
    let record = ProfileRecord { windows: whole.into_iter().collect(), ..folded.record };
    StoredProfile { record, windows, ..folded }
}

/// Parses the stacks of a stored window, whose names are in their normal form.
pub fn unfold(folded: &str) -> Stacks {
    let (mut stacks, mut names) = (Stacks::default(), Names::default());
    for (frames, count) in folded.lines().filter_map(parse_folded) {
        stacks.add(frames.split(';').map(|name| names.frame(name)).collect(), count);
    }
    stacks
}

fn samples(text: &str, record: &mut ProfileRecord) -> Result<Samples, ProfileError> {
    let profile = read(text.as_bytes())?;
    let notes = profile.notes();
    let Content::Samples(samples) = profile.content else {
        return Err(ProfileError::Unrecognised);
    };
    record.remarks.extend(notes);
    if record.cpus.is_empty() {
        return Ok(samples);
    }
    Ok(samples.on_cpus(|cpu| record.cpus.iter().any(|known| u32::from(*known) == cpu)))
}

/// Stacks whose counts are periods divided by the mean period: with a fixed frequency the kernel
/// adapts the period, and the first samples represent few events.
fn weighed(samples: &Samples, mean_period: f64) -> Stacks {
    let mut stacks = Stacks::default();
    for (frames, events) in normalised(&samples.stacks(Weight::Period)).iter() {
        stacks.add(frames.to_vec(), (events as f64 / mean_period).round() as u64);
    }
    stacks
}

/// Replaces process names that differ between runs: NAPI threads are named after interface and
/// thread (`napi/d0-8193`), workers after their work.
fn normalised(stacks: &Stacks) -> Stacks {
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

/// Mean number of events per sample, in the event's unit.
fn mean_period(samples: &Samples) -> Option<f64> {
    let sum: f64 = samples.iter().map(|(sample, _)| sample.period.unwrap_or(1) as f64).sum();
    (!samples.is_empty() && sum > 0.0).then(|| sum / samples.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// A window of whole seconds.
    fn window(from: u64, to: u64) -> ProfileWindow {
        ProfileWindow {
            from_ns: from * 1_000_000_000,
            to_ns: to * 1_000_000_000,
            offered: 20,
            forwarded: 10,
        }
    }

    #[test]
    fn fold_assigns_samples_to_windows() {
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
    fn fold_run_merges_slices_into_one_window() {
        let record = ProfileRecord {
            run: Some(3),
            cpus: vec![1],
            windows: vec![window(10, 11), window(12, 13)],
            ..ProfileRecord::default()
        };
        let folded = fold_run(record, TEXT);
        assert_eq!(folded.windows, ["napi/d0;ip_forward 1\nnapi/d0;net_rx_action;ip_forward 1\n"]);
        let whole = ProfileWindow { offered: 40, forwarded: 20, ..window(10, 12) };
        assert_eq!(folded.record.windows, [whole]);
        assert_eq!(fold_run(ProfileRecord::default(), "").windows, [""; 0]);
    }

    #[test]
    fn fold_weighs_samples_by_period() {
        let first = "napi/d0  12 [001] 10.1:  1 cycles: \n\tffffffff81000001 start\n\n";
        let later = "napi/d0  12 [001] 10.2:  3000 cycles: \n\tffffffff81000002 lookup\n\n";
        let record = ProfileRecord { windows: vec![window(10, 11)], ..ProfileRecord::default() };
        let text = format!("{first}{}what is this\n", later.repeat(2));
        let folded = fold(record, &text);
        // The mean period is 2000.3.
        assert_eq!(folded.windows, ["napi/d0;lookup 3\n"]);
        assert_eq!(folded.record.remarks.len(), 1, "{:?}", folded.record.remarks);
        assert!(folded.record.remarks[0].contains("not understood: 1"));
    }

    #[test]
    fn unfold_reads_names_unchanged() {
        let folded = "k`a+0x1;f 2 3\nx;g_[k] 4\n";
        assert_eq!(unfold(folded).folded(), folded);
    }

    #[test]
    fn fold_unreadable_text_adds_a_remark() {
        let folded = fold(ProfileRecord::default(), "nothing of the kind\n");
        assert_eq!(folded.record.remarks.len(), 1);
        assert!(folded.record.remarks[0].contains("can't be read"));
    }
}
