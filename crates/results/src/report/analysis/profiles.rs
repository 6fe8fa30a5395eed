//! CPU time by function: per variant, and per packet against its baseline.
//!
//! A profile is an extra run and contributes to no measured number. If a variant was
//! profiled in several starts of the device, these are the replicates of differences;
//! with one start its windows are, which show the precision within this start, not the
//! variation between starts. If the rate of a start lies outside of the measured runs',
//! it is not representative, and no difference is claimed. Imported sets have published
//! profiles without windows, and so no intervals.

mod source;

use super::VariantResult;
use crate::profile::compare::{Change, Changes, Grouping, compare};
use crate::profile::draw::{Look, Side, difference, flame_graph};
use crate::profile::functions::{By, of_stacks};
use crate::profile::{Agreement, Stacks, Subsystems, is_resolved, read};
use crate::report::names::safe;
use crate::store::{Contents, DocumentKind, StoredProfile};
use fwdlab_model::record::DropPlace;
use fwdlab_model::units::format_pps;
use serde::Serialize;
use source::{Source, Start};

/// Functions that a table shows.
const SHOWN: usize = 12;
/// Folder of the report's flame graphs.
pub(super) const FOLDER: &str = "flamegraphs";
/// How far rates of profiles at a stated load may differ, as a share: more is another load.
const ALIKE: f64 = 0.05;
/// Share of the samples below which it is said that they are not of the traffic.
const INSIDE: f64 = 0.95;
/// Confidence of intervals between windows or starts, in percent.
const CONFIDENCE: f64 = 95.0;

/// The profiles of an experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Profiles {
    /// One per profiled variant.
    pub variants: Vec<ProfiledVariant>,
    /// Each profiled variant against its profiled baseline.
    pub differences: Vec<ProfileDifference>,
    /// Remarks on the whole, e.g. a table of subsystems that can't be read.
    pub notes: Vec<String>,
}

/// One variant's profile.
#[derive(Clone, Debug, Serialize)]
pub struct ProfiledVariant {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Where the samples come from.
    pub source: String,
    /// Profile runs: starts of the device.
    pub starts: usize,
    /// The load that it was taken at; none for published profiles.
    pub load: Option<ProfileLoad>,
    /// Each start's own rate beside those of the measured runs; none where there are too
    /// few of these.
    pub agreements: Vec<Agreement>,
    /// True when one of them ran otherwise than any measured run.
    pub is_marked: bool,
    /// Samples in the window, and outside of it.
    pub samples: u64,
    /// Samples outside of the window; they count for nothing.
    pub outside: u64,
    /// Share of all samples that lie in the window.
    pub inside_share: f64,
    /// Shares of the samples in the window: work, idle, harness.
    pub work_share: f64,
    /// Idle CPUs.
    pub idle_share: f64,
    /// Profiler, sender, receiver and whatever else ran there.
    pub harness_share: f64,
    /// Share of the work whose innermost function has a name.
    pub resolved_share: f64,
    /// Unit of the costs: `ns`, `cycles` ...
    pub unit: String,
    /// Packets forwarded in the window; none for published profiles.
    pub forwarded: Option<u64>,
    /// Work per packet, in the unit; none without packets.
    pub per_packet: Option<f64>,
    /// The costliest functions by themselves.
    pub functions: Vec<ProfiledFunction>,
    /// The costliest functions with what they call.
    pub totals: Vec<ProfiledFunction>,
    /// Subsystems by their own functions, the costliest first.
    pub subsystems: Vec<ProfiledFunction>,
    /// Counters over the window.
    pub counters: Vec<CounterPerPacket>,
    /// Where packets that were not forwarded were lost.
    pub drops: Vec<DropPlace>,
    /// What went wrong or is to be known.
    pub remarks: Vec<String>,
    /// The flame graph, a file of the report; none when there is nothing to draw.
    pub file: Option<String>,
}

/// The load that a profile was taken at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileLoad {
    /// As `[profile]` states it; none where the profile ran as the measured runs.
    pub stated: Option<String>,
    /// Packets sent in the window, per second.
    pub offered_pps: f64,
    /// Packets that arrived in it, per second.
    pub forwarded_pps: f64,
}

impl ProfileLoad {
    /// Why costs at another load are not to be compared with these; none where they are.
    /// What ran as the measured runs is held against those.
    fn differs_from(&self, other: &ProfileLoad) -> Option<String> {
        let differs = |a: f64, b: f64| (a / b - 1.0).abs() > ALIKE;
        let is_alike = match (&self.stated, &other.stated) {
            (None, None) => true,
            (Some(_), Some(_)) => {
                !differs(self.offered_pps, other.offered_pps)
                    && !differs(self.forwarded_pps, other.forwarded_pps)
            }
            _ => false,
        };
        let words = |load: &ProfileLoad| {
            let (offered, forwarded) = (load.offered_pps, load.forwarded_pps);
            format!("{} offered, {} forwarded", format_pps(offered), format_pps(forwarded))
        };
        (!is_alike).then(|| format!("{} against {}", words(self), words(other)))
    }
}

/// A function's, or a subsystem's, share.
#[derive(Clone, Debug, Serialize)]
pub struct ProfiledFunction {
    /// Name.
    pub name: String,
    /// Share of the work.
    pub share: f64,
    /// Cost per packet, in the unit; none without packets.
    pub per_packet: Option<f64>,
}

/// A counter's increase in the window.
#[derive(Clone, Debug, Serialize)]
pub struct CounterPerPacket {
    /// Name.
    pub name: String,
    /// Increase; none when it could not be counted.
    pub value: Option<u64>,
    /// Increase per forwarded packet.
    pub per_packet: Option<f64>,
    /// Why it could not be counted.
    pub why_absent: String,
}

/// A variant's profile against its baseline's.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileDifference {
    /// Label of the variant.
    pub label: String,
    /// Label of its baseline.
    pub baseline_label: String,
    /// Unit of the costs.
    pub unit: String,
    /// What the intervals hold for.
    pub scope: String,
    /// The functions that differ most, by what they spend in themselves.
    pub functions: Changes,
    /// The subsystems.
    pub subsystems: Changes,
    /// The differential flame graph, a file of the report.
    pub file: Option<String>,
}

/// Pictures of the profiles: name in the report and SVG.
pub(crate) type Pictures = Vec<(String, String)>;

/// Analyses and draws all profiles of a store; nothing without any.
pub(super) fn profiles(
    contents: &Contents,
    variants: &[VariantResult],
) -> (Option<Profiles>, Pictures) {
    let mut notes = Vec::new();
    let (table, is_icicle) = options(&contents.profiles, &mut notes);
    let mut sources = Source::all_stored(contents);
    sources.extend(published(contents, variants));
    sources.retain(|source| source.variant < variants.len());
    if sources.is_empty() {
        return (None, Vec::new());
    }
    let mut pictures = Vec::new();
    let mut profiled: Vec<ProfiledVariant> = sources
        .iter()
        .map(|source| profiled(source, &variants[source.variant], &table, is_icicle, &mut pictures))
        .collect();
    notes.extend(common_remarks(&mut profiled));
    let mut differences = Vec::new();
    for source in &sources {
        let variant = &variants[source.variant];
        let baseline = variant.baseline.and_then(|at| sources.iter().find(|s| s.variant == at));
        if let Some(baseline) = baseline {
            let found = differ(baseline, source, variants, &table, is_icicle, &mut pictures);
            match found {
                Ok(difference) => differences.push(difference),
                Err(why) => notes.push(format!("{}: {why}", variant.label)),
            }
        }
    }
    (Some(Profiles { variants: profiled, differences, notes }), pictures)
}

/// Takes out the remarks that every profile has, so that they are said once.
fn common_remarks(profiled: &mut [ProfiledVariant]) -> Vec<String> {
    let [first, rest @ ..] = &*profiled else { return Vec::new() };
    let is_common = |remark: &&String| rest.iter().all(|other| other.remarks.contains(remark));
    let common: Vec<String> = match rest {
        [] => Vec::new(),
        _ => first.remarks.iter().filter(is_common).cloned().collect(),
    };
    for variant in profiled {
        variant.remarks.retain(|remark| !common.contains(remark));
    }
    common
}

/// The table of subsystems and the direction of the pictures, as they were asked
/// for when the profiles were taken.
fn options(profiles: &[StoredProfile], notes: &mut Vec<String>) -> (Subsystems, bool) {
    let fact = |name: &str| profiles.iter().find_map(|p| p.record.facts.get(name));
    let table = fact("subsystems").map(|own| {
        Subsystems::extended(own).unwrap_or_else(|error| {
            notes.push(format!("the table of subsystems: {error}; the built-in one is used"));
            Subsystems::default()
        })
    });
    (table.unwrap_or_default(), fact("icicle").is_some_and(|value| value == "true"))
}

/// Stacks published with imported runs, one profile per variant: stacks before
/// call graphs before pictures.
fn published(contents: &Contents, variants: &[VariantResult]) -> Vec<Source> {
    let Some(import) = &contents.import else { return Vec::new() };
    let kinds = [DocumentKind::Stacks, DocumentKind::CallGraph, DocumentKind::FlameGraph];
    let of = |variant: &VariantResult| {
        kinds.iter().find_map(|kind| {
            let mut documents = import
                .documents
                .iter()
                .filter(|d| d.kind == *kind && d.variant == Some(variant.index));
            documents.find_map(|document| {
                let base = document.path.rsplit('/').next().unwrap_or_default();
                Source::published(variant, &read(&document.content).ok()?, base)
            })
        })
    };
    variants.iter().filter_map(of).collect()
}

fn profiled(
    source: &Source,
    variant: &VariantResult,
    table: &Subsystems,
    is_icicle: bool,
    pictures: &mut Pictures,
) -> ProfiledVariant {
    let whole = source.whole();
    let inside = whole.total();
    let per_sample = source.per_sample();
    let packets = source.packets();
    let work = whole.work.total();
    let per_packet = |count: f64| (packets > 0.0).then(|| count * per_sample / packets);
    let row = |name: String, count: f64| ProfiledFunction {
        name,
        share: count / work.max(1) as f64,
        per_packet: per_packet(count),
    };
    let functions = |by: By| -> Vec<ProfiledFunction> {
        let all = of_stacks(&whole.work, by).into_iter().take(SHOWN);
        all.map(|function| {
            let count = if by == By::Own { None } else { function.total };
            row(function.name, count.unwrap_or(function.own))
        })
        .collect()
    };
    let look = Look {
        title: format!("{}: where the time goes", variant.label),
        subtitle: format!(
            "{:.0} % of the samples are work and drawn; {:.0} % idle, {:.0} % harness and other programs",
            100.0 * whole.work_share(),
            100.0 * whole.idle_share(),
            100.0 * whole.harness_share()
        ),
        unit: "samples".to_owned(),
        is_icicle,
    };
    let file = flame_graph(&whole.work, &look).ok().map(|svg| {
        let name = format!("{FOLDER}/{}.svg", safe(&variant.label));
        pictures.push((name.clone(), svg));
        name
    });
    let subsystems = table.of_stacks(&whole.work).into_iter();
    let outside = source.outside();
    let all = inside + outside;
    let inside_share = if all == 0 { 0.0 } else { inside as f64 / all as f64 };
    let mut remarks = remarks(&source.starts);
    if all > 0 && inside_share < INSIDE {
        remarks.push(format!(
            "only {:.0} % of the samples are of the traffic: next step: a longer `duration` in \
             [profile]",
            100.0 * inside_share
        ));
    }
    let first = &source.starts[0].record;
    ProfiledVariant {
        variant: variant.index,
        label: variant.label.clone(),
        source: first.source.clone(),
        starts: source.starts.len(),
        load: source.load(),
        agreements: source.starts.iter().filter_map(|start| start.agreement.clone()).collect(),
        is_marked: source.disagreement().is_some(),
        samples: inside,
        outside,
        inside_share,
        work_share: whole.work_share(),
        idle_share: whole.idle_share(),
        harness_share: whole.harness_share(),
        resolved_share: resolved_share(&whole.work),
        unit: source.unit.clone(),
        forwarded: source.is_measured.then_some(packets as u64),
        per_packet: per_packet(work as f64),
        functions: functions(By::Own),
        totals: functions(By::Total),
        subsystems: subsystems.map(|s| row(s.name, s.own as f64)).collect(),
        counters: counters(&source.starts, packets),
        drops: drops(&source.starts),
        remarks,
        file,
    }
}

/// The counters of all starts together, in the order of the first; one that a start
/// could not count is absent.
fn counters(starts: &[Start], packets: f64) -> Vec<CounterPerPacket> {
    let mut counters: Vec<CounterPerPacket> = Vec::new();
    for (number, counter) in starts.iter().enumerate().flat_map(|(number, start)| {
        start.record.counters.iter().map(move |counter| (number, counter))
    }) {
        match counters.iter_mut().find(|sum| sum.name == counter.name) {
            Some(sum) => {
                sum.value = sum.value.zip(counter.value).map(|(a, b)| a.saturating_add(b));
                sum.why_absent.clone_from(&counter.why_absent);
            }
            None if number == 0 => counters.push(CounterPerPacket {
                name: counter.name.clone(),
                value: counter.value,
                per_packet: None,
                why_absent: counter.why_absent.clone(),
            }),
            None => {}
        }
    }
    for counter in &mut counters {
        counter.per_packet =
            counter.value.filter(|_| packets > 0.0).map(|value| value as f64 / packets);
    }
    counters
}

/// Where packets were lost in all starts.
fn drops(starts: &[Start]) -> Vec<DropPlace> {
    let mut drops: Vec<DropPlace> = Vec::new();
    for drop in starts.iter().flat_map(|start| &start.record.drops) {
        match drops.iter_mut().find(|sum| sum.place == drop.place) {
            Some(sum) => sum.packets += drop.packets,
            None => drops.push(drop.clone()),
        }
    }
    drops
}

/// What is to be known of the starts, each thing once.
fn remarks(starts: &[Start]) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    for remark in starts.iter().flat_map(|start| &start.record.remarks) {
        if !remarks.contains(remark) {
            remarks.push(remark.clone());
        }
    }
    remarks
}

/// Share of the samples whose innermost function has a name.
fn resolved_share(stacks: &Stacks) -> f64 {
    let named = stacks.iter().filter(|(frames, _)| frames.last().is_some_and(|f| is_resolved(f)));
    let named: u64 = named.map(|(_, count)| count).sum();
    named as f64 / stacks.total().max(1) as f64
}

fn differ(
    baseline: &Source,
    candidate: &Source,
    variants: &[VariantResult],
    table: &Subsystems,
    is_icicle: bool,
    pictures: &mut Pictures,
) -> Result<ProfileDifference, String> {
    if baseline.unit != candidate.unit {
        return Err(format!(
            "its profile is in {}, the baseline's in {}",
            candidate.unit, baseline.unit
        ));
    }
    let (from, to) = (&variants[baseline.variant], &variants[candidate.variant]);
    for (source, label) in [(baseline, &from.label), (candidate, &to.label)] {
        if let Some(found) = source.disagreement() {
            return Err(format!(
                "no difference to {} is claimed: a profile run of {label} {}",
                from.label,
                found.sentence()
            ));
        }
    }
    if let Some((a, b)) = candidate.load().zip(baseline.load())
        && let Some(why) = a.differs_from(&b)
    {
        return Err(format!(
            "no difference to {} is claimed: the profiles are of different loads ({why}): next \
             step: a `rate` in [profile] that both carry",
            from.label
        ));
    }
    let (over_starts, scope) = scope(baseline, candidate);
    let replicates = |source: &Source| match over_starts {
        true => source.by_start(),
        false => source.by_window(),
    };
    let (a, b) = (replicates(baseline), replicates(candidate));
    let by = |grouping| compare(&a, &b, grouping, CONFIDENCE).map_err(|error| error.to_string());
    let mut functions = by(Grouping::Own)?;
    let subsystems = by(Grouping::Subsystems(table))?;
    functions.parts.truncate(2 * SHOWN);
    let (before, after) = (baseline.whole(), candidate.whole());
    let look = Look {
        title: format!("{} against {}, per packet", to.label, from.label),
        subtitle: String::new(),
        unit: candidate.unit.clone(),
        is_icicle,
    };
    let side = |source: &Source, work| {
        let per_count = source.per_sample() / source.packets();
        Side { stacks: work, per_count }
    };
    let svg = difference(side(baseline, &before.work), side(candidate, &after.work), true, &look);
    let file = svg.ok().map(|svg| {
        let name = format!("{FOLDER}/{}-against-{}.svg", safe(&to.label), safe(&from.label));
        pictures.push((name.clone(), svg));
        name
    });
    Ok(ProfileDifference {
        label: to.label.clone(),
        baseline_label: from.label.clone(),
        unit: candidate.unit.clone(),
        scope,
        functions,
        subsystems,
        file,
    })
}

/// What the replicates of a difference are, starts or windows, and what its intervals
/// hold for.
fn scope(baseline: &Source, candidate: &Source) -> (bool, String) {
    let (a, b) = (baseline.starts.len(), candidate.starts.len());
    if a.min(b) > 1 {
        let words = format!("Intervals are over starts of the device ({a} and {b}; Welch).");
        return (true, words);
    }
    let words = match baseline.is_measured {
        true => {
            "Intervals are over the parts of the windows: they hold for this start of each \
             variant, and do not say how starts differ (`starts` in `[profile]` does)."
        }
        false => "",
    };
    (false, words.to_owned())
}

impl ProfileDifference {
    /// The function that costs most more per packet than in the baseline.
    pub fn top_riser(&self) -> Option<&Change> {
        self.functions.risers().next()
    }
}

#[cfg(test)]
mod tests;
