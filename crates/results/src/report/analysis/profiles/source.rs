//! Profiles as they are analysed: each variant's starts, divided into work, idle CPUs
//! and harness.

use super::super::VariantResult;
use super::ProfileLoad;
use crate::profile::compare::Measured;
use crate::profile::{
    Agreement, Filter, Profile, Split, Stacks, agreement, measured_rates, of_dut, unfold,
};
use crate::store::{Contents, StoredProfile};
use fwdlab_model::record::ProfileRecord;

/// One profile run: a start of the device.
pub(super) struct Start {
    pub(super) record: ProfileRecord,
    per_sample: f64,
    /// All samples of each window, and the packets forwarded in it.
    windows: Vec<(Split, f64)>,
    outside: u64,
    /// Its rate beside the measured runs'; none where there are too few of those.
    pub(super) agreement: Option<Agreement>,
}

/// A variant's profile runs, one or more.
pub(super) struct Source {
    pub(super) variant: usize,
    pub(super) unit: String,
    pub(super) starts: Vec<Start>,
    /// False for published profiles: what counts as a packet is then a rate.
    pub(super) is_measured: bool,
}

impl Source {
    /// The profiles that a store holds, by variant.
    pub(super) fn all_stored(contents: &Contents) -> Vec<Source> {
        let by_variant = contents.profiles.chunk_by(|a, b| a.record.variant == b.record.variant);
        by_variant.filter_map(|profiles| Source::stored(contents, profiles)).collect()
    }

    fn stored(contents: &Contents, profiles: &[StoredProfile]) -> Option<Source> {
        let first = profiles.first()?;
        let rates_pps = measured_rates(&contents.runs, first.record.variant);
        // Starts in another unit would be added up with these.
        let alike = profiles.iter().filter(|profile| profile.unit == first.unit);
        Some(Source {
            variant: first.record.variant,
            unit: first.unit.clone(),
            starts: alike.map(|profile| Start::stored(profile, &rates_pps)).collect(),
            is_measured: true,
        })
    }

    /// A published profile. Samples of all CPUs over the rate of the variant are
    /// time of the whole machine per packet.
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
            remarks: profile.remarks.clone(),
            ..ProfileRecord::default()
        };
        let windows = vec![(split, rate)];
        Some(Source {
            variant: variant.index,
            unit: "ns of the whole machine".to_owned(),
            starts: vec![Start { record, per_sample, windows, outside: 0, agreement: None }],
            is_measured: false,
        })
    }

    /// All starts together.
    pub(super) fn whole(&self) -> Split {
        let mut whole = Split::default();
        for (split, _) in self.windows() {
            whole.work.merge(&split.work);
            whole.idle.merge(&split.idle);
            whole.harness.merge(&split.harness);
        }
        whole
    }

    /// Packets forwarded in all of them.
    pub(super) fn packets(&self) -> f64 {
        self.windows().map(|(_, packets)| packets).sum()
    }

    /// Samples outside of every window.
    pub(super) fn outside(&self) -> u64 {
        self.starts.iter().map(|start| start.outside).sum()
    }

    /// What a sample stands for in the mean, in the unit.
    pub(super) fn per_sample(&self) -> f64 {
        let weigh = |start: &Start| {
            let samples: u64 = start.windows.iter().map(|(split, _)| split.total()).sum();
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

    /// The start whose rate lies farthest outside of the measured runs'; none when all
    /// ran as those did.
    pub(super) fn disagreement(&self) -> Option<&Agreement> {
        let all = self.starts.iter().filter_map(|start| start.agreement.as_ref());
        all.filter(|agreement| !agreement.holds()).max_by(|a, b| a.excess().total_cmp(&b.excess()))
    }

    /// The load of all starts together; none where packets were not counted.
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

    /// Windows in which packets were forwarded, of all starts.
    pub(super) fn by_window(&self) -> Vec<Measured> {
        self.starts.iter().flat_map(Start::by_window).collect()
    }

    /// Each start in which packets were forwarded, as a whole.
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
