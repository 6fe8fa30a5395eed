//! Input of the profile analysis: each variant's starts, divided into work, idle CPUs and harness.

use super::{ProfileKind, ProfileLoad};
use crate::profile::compare::Measured;
use crate::profile::{
    Agreement, Filter, Profile, Split, Stacks, agreement, measured_rates, of_dut, unfold,
};
use crate::report::analysis::{RunResult, VariantResult};
use crate::report::sections::device::alone_ns_of_runs;
use crate::store::{Contents, StoredProfile};
use fwdlab_model::record::ProfileRecord;
use std::collections::BTreeMap;

/// One sampled run: a start of the device.
pub(super) struct Start {
    pub(super) record: ProfileRecord,
    /// Block of a measured run; 0 for an extra run.
    block: u32,
    /// Cost of a sample of the device's work, in the source's unit.
    per_sample: f64,
    /// All samples of each window, and the packets forwarded in it.
    windows: Vec<(Split, f64)>,
    outside: u64,
    /// Its rate compared with the measured runs; `None` if there are too few of them.
    pub(super) agreement: Option<Agreement>,
}

/// A variant's sampled runs, one or more.
pub(super) struct Source {
    pub(super) variant: usize,
    /// Published profiles have a rate instead of a packet count.
    pub(super) kind: ProfileKind,
    pub(super) unit: String,
    pub(super) starts: Vec<Start>,
    /// True if costs are shares of the CPU time that the kernel accounts to the device.
    pub(super) has_account: bool,
}

impl Source {
    /// Returns the samples of measured runs, by variant. If the kernel accounts CPU time to the
    /// device, only runs whose account is used have a cost.
    pub(super) fn of_measured_runs(contents: &Contents, results: &[RunResult]) -> Vec<Source> {
        let blocks: BTreeMap<u32, u32> = results.iter().map(|run| (run.run, run.block)).collect();
        let alone_ns = alone_ns_of_runs(contents);
        // A stream includes both variants.
        let is_stream = contents.plan.design.alternate_ns.is_some();
        let start = |profile: &StoredProfile| {
            let run = profile.record.run?;
            let block = if is_stream { run } else { *blocks.get(&run)? };
            let mut start = Start { block, ..Start::stored(profile, &[]) };
            let work: u64 = start.windows.iter().map(|(split, _)| split.work.total()).sum();
            match alone_ns.get(&run) {
                _ if work == 0 => return None,
                Some(&alone_ns) => start.per_sample = alone_ns as f64 / work as f64,
                None if alone_ns.is_empty() => {}
                None => return None,
            }
            Some(start)
        };
        let has_run = |profile: &&StoredProfile| profile.record.run.is_some();
        Source::by_variant(contents.profiles.iter().filter(has_run), ProfileKind::Runs, |alike| {
            alike.iter().filter_map(|profile| start(profile)).collect()
        })
        .into_iter()
        .map(|source| match alone_ns.is_empty() {
            true => source,
            false => Source { unit: "ns".into(), has_account: true, ..source },
        })
        .collect()
    }

    /// Returns the extra runs in a store, by variant.
    pub(super) fn of_profile_runs(contents: &Contents) -> Vec<Source> {
        let is_extra = |profile: &&StoredProfile| profile.record.run.is_none();
        Source::by_variant(
            contents.profiles.iter().filter(is_extra),
            ProfileKind::Starts,
            |alike| {
                let variant = alike.first().map_or(0, |profile| profile.record.variant);
                let rates_pps = measured_rates(&contents.runs, variant);
                alike.iter().map(|profile| Start::stored(profile, &rates_pps)).collect()
            },
        )
    }

    /// Groups the profiles by variant; omits variants without starts.
    fn by_variant<'a>(
        profiles: impl Iterator<Item = &'a StoredProfile>,
        kind: ProfileKind,
        starts: impl Fn(&[&StoredProfile]) -> Vec<Start>,
    ) -> Vec<Source> {
        let mut variants: BTreeMap<usize, Vec<&StoredProfile>> = BTreeMap::new();
        for profile in profiles {
            let of_variant = variants.entry(profile.record.variant).or_default();
            // Samples in different units can't be added.
            if of_variant.first().is_none_or(|first| first.unit == profile.unit) {
                of_variant.push(profile);
            }
        }
        let source = |(variant, alike): (usize, Vec<&StoredProfile>)| {
            let unit = alike.first()?.unit.clone();
            let starts = starts(&alike);
            let source = Source { variant, kind, unit, starts, has_account: false };
            (!source.starts.is_empty()).then_some(source)
        };
        variants.into_iter().filter_map(source).collect()
    }

    /// Returns the suffix of the names of its plots.
    pub(super) fn suffix(&self) -> &'static str {
        match self.kind {
            ProfileKind::Starts => "-profile-runs",
            ProfileKind::Runs | ProfileKind::Published => "",
        }
    }

    /// Converts a published profile. The ratio of samples of all CPUs to the variant's rate is time
    /// of the whole machine per packet.
    pub(super) fn published(
        variant: &VariantResult,
        profile: &Profile,
        source: &str,
    ) -> Option<Source> {
        let split = Filter::default().split(profile.stacks()?.as_ref());
        let rate = variant.summary?.median;
        let per_sample = 1e9 / split.total().max(1) as f64;
        let record = ProfileRecord {
            source: format!("{source}, {} as published", profile.format),
            remarks: profile.notes(),
            ..ProfileRecord::default()
        };
        let windows = vec![(split, rate)];
        Some(Source {
            variant: variant.index,
            unit: "ns of the whole machine".to_owned(),
            starts: vec![Start {
                record,
                block: 0,
                per_sample,
                windows,
                outside: 0,
                agreement: None,
            }],
            kind: ProfileKind::Published,
            has_account: false,
        })
    }

    /// Merges all starts.
    pub(super) fn whole(&self) -> Split {
        let mut whole = Split::default();
        for (split, _) in self.windows() {
            whole.work.merge(&split.work);
            whole.idle.merge(&split.idle);
            whole.harness.merge(&split.harness);
        }
        whole
    }

    /// Returns the number of packets forwarded in all starts.
    pub(super) fn packets(&self) -> f64 {
        self.windows().map(|(_, packets)| packets).sum()
    }

    /// Returns the number of samples outside all windows.
    pub(super) fn outside(&self) -> u64 {
        self.starts.iter().map(|start| start.outside).sum()
    }

    /// Returns the mean cost of a sample of work, in the unit.
    pub(super) fn per_sample(&self) -> f64 {
        let weigh = |start: &Start| {
            let samples: u64 = start.windows.iter().map(|(split, _)| split.work.total()).sum();
            (samples as f64 * start.per_sample, samples as f64)
        };
        let (sum, samples) = self
            .starts
            .iter()
            .map(weigh)
            .fold((0.0, 0.0), |(sum, samples), (part, count)| (sum + part, samples + count));
        if samples > 0.0 { sum / samples } else { 1.0 }
    }

    fn windows(&self) -> impl Iterator<Item = &(Split, f64)> {
        self.starts.iter().flat_map(|start| &start.windows)
    }

    /// Returns the start with a rate farthest outside the range of the measured runs; `None` if all
    /// are within it.
    pub(super) fn disagreement(&self) -> Option<&Agreement> {
        let all = self.starts.iter().filter_map(|start| start.agreement.as_ref());
        all.filter(|agreement| !agreement.holds()).max_by(|a, b| a.excess().total_cmp(&b.excess()))
    }

    /// Returns the load over all starts; `None` if packets were not counted.
    pub(super) fn load(&self) -> Option<ProfileLoad> {
        let windows = || self.starts.iter().flat_map(|start| &start.record.windows);
        let span_ns: u64 = windows().map(|w| w.to_ns.saturating_sub(w.from_ns)).sum();
        let rate = |packets: u64| packets as f64 * 1e9 / span_ns as f64;
        let (offered, forwarded) = windows().fold((0, 0), |(offered, forwarded), window| {
            (offered + window.offered, forwarded + window.forwarded)
        });
        (span_ns > 0 && offered > 0).then(|| ProfileLoad {
            stated: self.starts[0].record.rate.map(|rate| rate.to_string()),
            offered_pps: rate(offered),
            forwarded_pps: rate(forwarded),
        })
    }

    /// Returns the windows of all starts in which packets were forwarded.
    pub(super) fn by_window(&self) -> Vec<Measured> {
        self.starts.iter().flat_map(Start::by_window).collect()
    }

    /// Returns each complete start in which packets were forwarded, with its block.
    pub(super) fn by_block(&self) -> Vec<(u32, Measured)> {
        self.starts.iter().filter_map(|start| Some((start.block, start.whole()?))).collect()
    }

    /// Returns each complete start in which packets were forwarded.
    pub(super) fn by_start(&self) -> Vec<Measured> {
        self.starts.iter().filter_map(Start::whole).collect()
    }
}

impl Start {
    fn stored(profile: &StoredProfile, rates_pps: &[f64]) -> Start {
        let counts = profile.record.windows.iter().map(|window| window.forwarded as f64);
        let windows: Vec<Stacks> = profile.windows.iter().map(|folded| unfold(folded)).collect();
        let filter = of_dut(&windows);
        let windows = windows.iter().map(|stacks| filter.split(stacks));
        Start {
            record: profile.record.clone(),
            block: 0,
            per_sample: profile.per_sample,
            windows: windows.zip(counts).collect(),
            outside: unfold(&profile.outside).total(),
            agreement: agreement(&profile.record, rates_pps),
        }
    }

    fn by_window(&self) -> impl Iterator<Item = Measured> {
        let windows = self.windows.iter().filter(|(_, packets)| *packets > 0.0);
        windows.map(|(split, packets)| Measured {
            stacks: split.work.clone(),
            packets: *packets,
            per_count: self.per_sample,
        })
    }

    fn whole(&self) -> Option<Measured> {
        self.by_window().reduce(|mut whole, window| {
            whole.stacks.merge(&window.stacks);
            Measured { packets: whole.packets + window.packets, ..whole }
        })
    }
}
