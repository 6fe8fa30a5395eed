//! A divided profile and its summary.

use super::filter::{Class, Filter};
use super::flat::FlatProfile;
use super::functions::{self, Function, SortKey};
use super::read::{Content, Format, LeftOut, Profile, Unknown, sentences};
use super::stacks::{Frame, Stacks, is_resolved};
use fwdlab_document::format::percent;
use serde::Serialize;

/// Summary of a profile. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Input format.
    pub format: Format,
    /// Counted unit, in the plural.
    pub unit: String,
    /// Sampled event. `None` if the file does not contain it.
    pub event: Option<String>,
    /// Total count.
    pub total: f64,
    /// Number of samples. `None` if the file has only their sums.
    pub samples: Option<usize>,
    /// Share of the work.
    pub work_share: f64,
    /// Share of idle CPUs.
    pub idle_share: f64,
    /// Share of the harness.
    pub harness_share: f64,
    /// Share whose innermost function has a name.
    pub resolved_share: f64,
    /// The three costliest functions of the kept part, by own cost.
    pub top: Vec<Function>,
    /// Lines that could not be parsed.
    pub unknown: Unknown,
    /// Parts that were recognised but left out.
    pub left_out: Vec<LeftOut>,
    /// Remarks for the user.
    pub remarks: Vec<String>,
}

/// A profile without idle time and harness (unless all is kept).
#[derive(Clone, Debug, PartialEq)]
pub struct FilteredProfile {
    /// Summary of the whole profile.
    pub summary: Summary,
    /// The kept part.
    pub kept: KeptPart,
}

/// Kept part of a profile.
#[derive(Clone, Debug, PartialEq)]
pub enum KeptPart {
    /// Stacks.
    Stacks(Stacks),
    /// Functions.
    Flat(FlatProfile),
}

impl KeptPart {
    /// All functions, the costliest first.
    pub fn functions(&self, by: SortKey) -> Vec<Function> {
        match self {
            KeptPart::Stacks(stacks) => functions::of_stacks(stacks, by),
            KeptPart::Flat(flat) => functions::of_flat(flat, by),
        }
    }

    /// Total count.
    pub fn total(&self) -> f64 {
        match self {
            KeptPart::Stacks(stacks) => stacks.total() as f64,
            KeptPart::Flat(flat) => flat.total(),
        }
    }

    /// Stacks; a function without stack becomes a stack of one frame.
    pub fn to_stacks(&self) -> Stacks {
        match self {
            KeptPart::Stacks(stacks) => stacks.clone(),
            KeptPart::Flat(flat) => {
                let mut stacks = Stacks::default();
                for function in &flat.functions {
                    // The cast saturates at the largest integer.
                    let count = function.own.round() as u64;
                    stacks.add(vec![Frame::from(function.name.as_str())], count);
                }
                stacks
            }
        }
    }
}

impl FilteredProfile {
    /// Divides a profile; with `keep_all`, idle CPUs and harness are kept.
    pub fn of(profile: &Profile, filter: &Filter, keep_all: bool) -> FilteredProfile {
        let (kept, total, shares, resolved) = match (&profile.content, profile.stacks()) {
            (Content::Flat(flat), _) => of_flat(flat, filter, keep_all),
            (_, stacks) => {
                let stacks = stacks.unwrap_or_default();
                let split = filter.split(&stacks);
                let shares = [split.work_share(), split.idle_share(), split.harness_share()];
                let (total, resolved) = (stacks.total() as f64, stacks.resolved_share());
                let kept = if keep_all { stacks.into_owned() } else { split.work };
                (KeptPart::Stacks(kept), total, shares, resolved)
            }
        };
        let mut top = kept.functions(SortKey::Own);
        top.truncate(3);
        let [work_share, idle_share, harness_share] = shares;
        let summary = Summary {
            format: profile.format,
            unit: profile.unit.clone(),
            event: profile.event.clone(),
            total,
            samples: profile.samples(),
            work_share,
            idle_share,
            harness_share,
            resolved_share: resolved,
            top,
            unknown: profile.unknown.clone(),
            left_out: profile.left_out.clone(),
            remarks: profile.remarks.clone(),
        };
        FilteredProfile { summary, kept }
    }
}

/// Kept part, total, shares of work, idle and harness, and resolved share. Without stacks, only the
/// functions' own names decide.
fn of_flat(flat: &FlatProfile, filter: &Filter, keep_all: bool) -> (KeptPart, f64, [f64; 3], f64) {
    let total = flat.total();
    let class = |name: &str| filter.class(&[Frame::from(name)]);
    let share_of = |is_counted: &dyn Fn(&str) -> bool| -> f64 {
        let part = flat.functions.iter().filter(|function| is_counted(&function.name));
        // An empty sum of floats is -0.
        let part = part.fold(0.0, |sum, function| sum + function.own);
        if total > 0.0 { part / total } else { 0.0 }
    };
    let shares = [Class::Work, Class::Idle, Class::Harness]
        .map(|expected| share_of(&|name| class(name) == expected));
    let resolved = share_of(&is_resolved);
    let mut kept = flat.clone();
    kept.functions.retain(|function| keep_all || class(&function.name) == Class::Work);
    (KeptPart::Flat(kept), total, shares, resolved)
}

impl Summary {
    /// Division in words: `41 % of the samples are work; ...`.
    pub fn shares(&self, keeps_all: bool) -> String {
        let rest = if keeps_all { "included" } else { "left out" };
        let work = percent(self.work_share, 0);
        format!("{work} of the {} are work; idle and harness {rest}", self.unit)
    }

    /// Everything that was left out, and remarks, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        /// Resolved share below which tables hide too much.
        const RESOLVED_LEAST: f64 = 0.9;
        let mut notes = sentences(&self.remarks, &self.left_out, &self.unknown);
        if self.resolved_share < RESOLVED_LEAST {
            let named = percent(self.resolved_share, 0);
            notes.push(format!("only {named} of the {} have a function's name", self.unit));
        }
        notes
    }
}

/// Error of comparing profiles that count different things.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{baseline} counts {of_baseline}, {candidate} counts {of_candidate}: record both in the same way"
)]
pub struct Incomparable {
    baseline: String,
    of_baseline: String,
    candidate: String,
    of_candidate: String,
}

/// Checks that two profiles count the same event in the same unit; each is given with its name.
/// Folded stacks and pictures do not contain the event, so their shares (not costs per packet) are
/// comparable with the periods of `perf script`: the result is then a remark.
///
/// # Errors
/// Fails for different events or units.
pub fn comparable(
    (baseline_name, baseline): (&str, &Summary),
    (candidate_name, candidate): (&str, &Summary),
    is_per_packet: bool,
) -> Result<Option<String>, Incomparable> {
    let sides = [baseline, candidate];
    let incomparable = |[of_baseline, of_candidate]: [&str; 2]| Incomparable {
        baseline: baseline_name.to_owned(),
        of_baseline: of_baseline.to_owned(),
        candidate: candidate_name.to_owned(),
        of_candidate: of_candidate.to_owned(),
    };
    if let [Some(before), Some(after)] = sides.map(|side| side.event.as_deref())
        && before != after
    {
        return Err(incomparable([before, after]));
    }
    let units = sides.map(|side| side.unit.as_str());
    if units[0] == units[1] {
        return Ok(None);
    }
    let has_unit = |side: &Summary| {
        side.unit != "samples" || !matches!(side.format, Format::Folded | Format::FlameGraph)
    };
    let is_perf = |side: &Summary| side.format == Format::PerfScript;
    let [before, after] = sides;
    let may_agree = (is_perf(before) && !has_unit(after)) || (is_perf(after) && !has_unit(before));
    if !may_agree || is_per_packet {
        return Err(incomparable(units));
    }
    let [before, after] = units;
    Ok(Some(format!("shares of {before} are compared with shares of {after}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[test]
    fn divided_drops_idle_and_harness_unless_kept() {
        let profile = read(b"swapper;do_idle 5\nperf;read 1\nk;f 3\nk;g 1\nwhat is\n").unwrap();
        let divided = FilteredProfile::of(&profile, &Filter::default(), false);
        assert_eq!(divided.kept.total(), 4.0);
        let summary = &divided.summary;
        assert_eq!((summary.total, summary.work_share, summary.top.len()), (10.0, 0.4, 3));
        assert_eq!(
            summary.shares(false),
            "40 % of the samples are work; idle and harness left out"
        );
        assert_eq!(summary.notes(), ["lines not understood: 1, the first is line 5: what is"]);
        assert_eq!(FilteredProfile::of(&profile, &Filter::default(), true).kept.total(), 10.0);
    }

    #[test]
    fn flat_profile_is_divided_by_function_names() {
        let text = "flat profile:\n  %   cumulative   self              self     total\n \
                    time   seconds   seconds    calls  ms/call  ms/call  name\n \
                    60.0   3.00  3.00    5  1.0  1.0  ip_input [1]\n \
                    40.0   5.00  2.00    5  1.0  1.0  acpi_cpu_c1 [2]\n";
        let profile = read(text.as_bytes()).unwrap();
        let divided = FilteredProfile::of(&profile, &Filter::default(), false);
        assert_eq!((divided.summary.idle_share, divided.kept.total()), (0.4, 3.0));
        assert_eq!(divided.kept.to_stacks().folded(), "ip_input 3\n");
    }

    #[test]
    fn comparable_requires_the_same_event_and_unit() {
        let perf = |header: &str| format!("a 1 1.0: {header} \n\tffffffff81a0 f+0x1 ([k])\n\n");
        let gprof = "flat profile:\n time   seconds   seconds  name\n 9.0  1.0  1.0  f [1]\n";
        let compared = |texts: [&str; 2], is_per_packet| {
            let [a, b] = texts.map(|text| {
                FilteredProfile::of(&read(text.as_bytes()).unwrap(), &Filter::default(), false)
            });
            comparable(("a", &a.summary), ("b", &b.summary), is_per_packet)
        };
        let (cycles, misses) = (perf("100 cycles:P:"), perf("100 cache-misses:"));
        assert_eq!(compared([&cycles, &perf("3 cycles:ppp:")], true), Ok(None));
        let error = compared([&cycles, &misses], false).unwrap_err().to_string();
        assert!(error.starts_with("a counts cycles, b counts cache-misses: record"), "{error}");
        // Without periods both count samples, still of different events.
        let (some, others) = (perf("cycles:"), perf("cache-misses:"));
        assert!(compared([&some, &others], false).is_err());
        assert!(compared([&some, &cycles], false).is_err());
        assert!(compared(["a;f 3\n", &some], true).is_ok());
        let remark = compared(["a;f 3\n", &cycles], false).unwrap().unwrap();
        assert_eq!(remark, "shares of samples are compared with shares of cycles");
        assert!(compared(["a;f 3\n", &cycles], true).is_err());
        assert!(compared(["a;f 3\n", gprof], false).is_err());
        assert!(compared([&cycles, gprof], false).is_err());
    }
}
