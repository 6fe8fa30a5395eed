//! Single samples with time and CPU, so that a window can be cut out.

use super::stacks::{Frame, Names, Stacks, share};
use std::collections::HashMap;

/// One sample. Attributes that the profile lacks are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Index of the stack in [`Samples`].
    stack: u32,
    /// Interrupted CPU.
    pub cpu: Option<u32>,
    /// Process (or thread, if the profile names only threads).
    pub pid: Option<i32>,
    /// Time of the profiler's clock in nanoseconds.
    pub time_ns: Option<u64>,
    /// Events since the previous sample, e.g. cycles.
    pub period: Option<u64>,
    /// True if the innermost frame has a name.
    pub is_resolved: bool,
}

/// Samples in the order of the profile; each stack is stored once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    stacks: Vec<Vec<Frame>>,
    records: Vec<Sample>,
}

/// Weight of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Each sample counts as one.
    #[default]
    Sample,
    /// Each sample counts as its period: the sum estimates the number of events, e.g. cycles. A
    /// sample without period counts as one.
    Period,
}

/// Samples of a time interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Samples inside the interval.
    pub samples: Samples,
    /// Share of all samples that is inside (0 to 1).
    pub share_inside: f64,
    /// Samples without a time, which belong to no window.
    pub timeless: usize,
}

impl Samples {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// All samples with their stacks, root (the process) first.
    pub fn iter(&self) -> impl Iterator<Item = (&Sample, &[Frame])> {
        self.records.iter().map(|sample| (sample, self.frames(sample)))
    }

    /// Name of the interrupted process.
    pub fn process(&self, sample: &Sample) -> Option<&Frame> {
        self.frames(sample).first()
    }

    /// Earliest and latest time in nanoseconds. `None` if no sample has a time.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        let times = || self.records.iter().filter_map(|sample| sample.time_ns);
        Some((times().min()?, times().max()?))
    }

    /// Samples from `from_ns` to `to_ns`, both inclusive.
    pub fn window(&self, from_ns: u64, to_ns: u64) -> Window {
        let inside =
            |sample: &&Sample| sample.time_ns.is_some_and(|time| (from_ns..=to_ns).contains(&time));
        let records: Vec<Sample> = self.records.iter().filter(inside).copied().collect();
        Window {
            share_inside: share(records.len() as u64, self.records.len() as u64),
            timeless: self.records.iter().filter(|sample| sample.time_ns.is_none()).count(),
            samples: Samples { stacks: self.stacks.clone(), records },
        }
    }

    /// Samples of the CPUs for which `is_selected` is true.
    pub fn on_cpus(&self, is_selected: impl Fn(u32) -> bool) -> Samples {
        let records = self.records.iter().filter(|s| s.cpu.is_some_and(&is_selected)).copied();
        Samples { stacks: self.stacks.clone(), records: records.collect() }
    }

    /// Share of the samples whose innermost frame has a name (0 to 1); 0 if there are none.
    pub fn resolved_share(&self) -> f64 {
        let named = self.records.iter().filter(|sample| sample.is_resolved).count();
        share(named as u64, self.records.len() as u64)
    }

    /// Stacks with counts.
    pub fn stacks(&self, weight: Weight) -> Stacks {
        let mut counts = vec![0_u64; self.stacks.len()];
        for sample in &self.records {
            let count = match weight {
                Weight::Sample => 1,
                Weight::Period => sample.period.unwrap_or(1),
            };
            let sum = &mut counts[sample.stack as usize];
            *sum = sum.saturating_add(count);
        }
        let mut stacks = Stacks::default();
        for (frames, count) in self.stacks.iter().zip(counts) {
            stacks.add(frames.clone(), count);
        }
        stacks
    }

    fn frames(&self, sample: &Sample) -> &[Frame] {
        &self.stacks[sample.stack as usize]
    }
}

/// Collects samples while reading a profile.
#[derive(Debug, Default)]
pub(super) struct SamplesBuilder {
    names: Names,
    known: HashMap<Vec<Frame>, u32>,
    samples: Samples,
}

/// Attributes of a sample apart from its stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleSite {
    pub(super) cpu: Option<u32>,
    pub(super) pid: Option<i32>,
    pub(super) time_ns: Option<u64>,
    pub(super) period: Option<u64>,
}

impl SamplesBuilder {
    /// Adds a sample; its frames come root first. Samples without frames are ignored, as are
    /// all samples after 2^32 different stacks.
    pub(super) fn add<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a str>,
        place: SampleSite,
        is_resolved: bool,
    ) {
        let frames: Vec<Frame> = frames.map(|name| self.names.frame(name)).collect();
        let Ok(next) = u32::try_from(self.samples.stacks.len()) else {
            return;
        };
        if frames.is_empty() {
            return;
        }
        let stack = *self.known.entry(frames).or_insert_with_key(|frames| {
            self.samples.stacks.push(frames.clone());
            next
        });
        let SampleSite { cpu, pid, time_ns, period } = place;
        self.samples.records.push(Sample { stack, cpu, pid, time_ns, period, is_resolved });
    }

    pub(super) fn finish(self) -> Samples {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Samples {
        let mut builder = SamplesBuilder::default();
        for (stack, time, cpu, period) in [
            ("a;b", Some(10), 0, 7),
            ("a;c", Some(20), 1, 8),
            ("a;b", Some(30), 0, 9),
            ("d", None, 1, 1),
        ] {
            let place =
                SampleSite { cpu: Some(cpu), pid: None, time_ns: time, period: Some(period) };
            builder.add(stack.split(';'), place, stack != "d");
        }
        builder.finish()
    }

    #[test]
    fn window_includes_both_ends() {
        let samples = some();
        let window = samples.window(10, 20);
        assert_eq!(window.samples.stacks(Weight::Sample).folded(), "a;b 1\na;c 1\n");
        assert_eq!((window.share_inside, window.timeless), (0.5, 1));
        assert_eq!(samples.window(31, 90).samples.len(), 0);
        assert_eq!((samples.span_ns(), Samples::default().span_ns()), (Some((10, 30)), None));
    }

    #[test]
    fn weight_counts_samples_or_periods() {
        let samples = some();
        assert_eq!(samples.stacks(Weight::Sample).folded(), "a;b 2\na;c 1\nd 1\n");
        assert_eq!(samples.stacks(Weight::Period).folded(), "a;b 16\na;c 8\nd 1\n");
        assert_eq!((samples.len(), samples.resolved_share()), (4, 0.75));
        assert_eq!(samples.on_cpus(|cpu| cpu == 1).stacks(Weight::Sample).folded(), "a;c 1\nd 1\n");
        assert_eq!(
            samples.iter().next().map(|(s, _)| samples.process(s).unwrap().as_ref()),
            Some("a")
        );
    }
}
