//! CPU time by function: per variant, and per packet compared with its baseline.
//!
//! Samples of the measured runs' windows are shares of the device's work. A function's cost is its
//! share times the CPU time per packet that the kernel accounts to the device in the same run.
//! Blocks are the replicates of differences, so the parts sum to the difference of the device
//! alone.
//!
//! An extra run contributes to no measured number. If a variant was profiled in several starts of
//! the device, these are the replicates of differences; with a single start its windows are, which
//! show the precision within this start, not the variation between starts. If the rate of a start
//! is outside the range of the measured runs, it is not representative, and no difference is
//! claimed. Imported sets have published profiles without windows, and therefore no intervals.

mod differences;
mod document;
mod results;
mod source;

use super::{Context, Input, PROFILES, Plots, Section};
use crate::document::Block;
use crate::profile::draw::{Look, flame_graph};
use crate::profile::functions::{SortKey, of_stacks};
use crate::profile::{Stacks, Subsystems, is_resolved, read};
use crate::report::analysis::{RunResult, VariantResult};
use crate::report::names::safe;
use crate::store::{Contents, DocumentKind, StoredProfile};
use differences::differ;
use fwdlab_model::record::DropPlace;
pub use results::{
    CounterPerPacket, ProfileDifference, ProfileKind, ProfileLoad, ProfiledFunction,
    ProfiledVariant, Profiles,
};
use source::{Source, Start};

/// Maximum number of functions in a table.
const SHOWN: usize = 12;
/// Folder of the report's flame graphs.
const FOLDER: &str = "flamegraphs";
/// Share of samples within the traffic below which a remark is added.
const INSIDE: f64 = 0.95;

/// Options of the plots, and those drawn so far.
struct Drawing {
    table: Subsystems,
    is_icicle: bool,
    plots: Plots,
}

impl Drawing {
    /// Adds a plot, and returns its name in the report.
    fn keep(&mut self, stem: &str, svg: String) -> String {
        let name = format!("{FOLDER}/{stem}.svg");
        self.plots.push((name.clone(), svg.into()));
        name
    }
}

impl Section for Option<Profiles> {
    fn analyse(input: &Input<'_>) -> Option<Profiles> {
        profiles(input.contents, &input.core.runs, &input.core.variants)
    }

    fn document(&self, context: &Context<'_>) -> Vec<Block> {
        let section = |profiles: &Profiles| {
            document::section(profiles, context.archive.is_some()).folded().on_page(PROFILES)
        };
        self.iter().map(section).collect()
    }

    fn take_plots(&mut self) -> Plots {
        self.as_mut().map_or(Plots::new(), |profiles| std::mem::take(&mut profiles.plots))
    }
}

/// Analyses and draws all profiles of a store with the run results `results`; `None` without
/// profiles.
fn profiles(
    contents: &Contents,
    results: &[RunResult],
    variants: &[VariantResult],
) -> Option<Profiles> {
    let mut notes = Vec::new();
    let (table, is_icicle) = options(&contents.profiles, &mut notes);
    let mut sources = Source::of_measured_runs(contents, results);
    sources.extend(Source::of_profile_runs(contents));
    sources.extend(published(contents, variants));
    sources.retain(|source| source.variant < variants.len());
    if sources.is_empty() {
        return None;
    }
    let mut drawing = Drawing { table, is_icicle, plots: Plots::new() };
    let mut profiled: Vec<ProfiledVariant> = sources
        .iter()
        .map(|source| profiled(source, &variants[source.variant], &mut drawing))
        .collect();
    notes.extend(common_remarks(&mut profiled));
    let mut differences = Vec::new();
    for source in &sources {
        let variant = &variants[source.variant];
        let is_same_kind = |other: &&Source| other.kind == source.kind;
        let of = |at| sources.iter().filter(is_same_kind).find(|other| other.variant == at);
        if let Some(baseline) = variant.baseline.and_then(of) {
            let found = differ(&contents.plan, baseline, source, variants, &mut drawing);
            match found {
                Ok(difference) => differences.push(difference),
                Err(why) => notes.push(format!("{}: {why}", variant.label)),
            }
        }
    }
    Some(Profiles { variants: profiled, differences, notes, plots: drawing.plots })
}

/// Removes remarks that are common to all profiles, or that belong to measured runs, and returns
/// them once each.
fn common_remarks(profiled: &mut [ProfiledVariant]) -> Vec<String> {
    let has = |variant: &ProfiledVariant, remark| variant.remarks.contains(remark);
    let mut common: Vec<String> = Vec::new();
    for variant in &*profiled {
        for remark in &variant.remarks {
            let is_common = variant.kind == ProfileKind::Runs
                || (profiled.len() > 1 && profiled.iter().all(|other| has(other, remark)));
            if is_common && !common.contains(remark) {
                common.push(remark.clone());
            }
        }
    }
    for variant in profiled {
        variant.remarks.retain(|remark| !common.contains(remark));
    }
    common
}

/// Returns the table of subsystems and the direction of the plots, as requested when the profiles
/// were taken.
fn options(profiles: &[StoredProfile], notes: &mut Vec<String>) -> (Subsystems, bool) {
    let fact = |name: &str| profiles.iter().find_map(|p| p.record.facts.get(name));
    let table = fact("subsystems").map(|text| {
        Subsystems::extended(text).unwrap_or_else(|error| {
            notes.push(format!("the table of subsystems: {error}; the built-in one is used"));
            Subsystems::default()
        })
    });
    (table.unwrap_or_default(), fact("icicle").is_some_and(|value| value == "true"))
}

/// Returns the stacks published with imported runs, one profile per variant, in order of
/// preference: stacks, call graphs, pictures.
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

fn profiled(source: &Source, variant: &VariantResult, drawing: &mut Drawing) -> ProfiledVariant {
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
    let functions = |by: SortKey| -> Vec<ProfiledFunction> {
        let all = of_stacks(&whole.work, by).into_iter().take(SHOWN);
        all.map(|function| {
            let count = if by == SortKey::Own { None } else { function.total };
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
        is_icicle: drawing.is_icicle,
    };
    let file = flame_graph(&whole.work, &look)
        .ok()
        .map(|svg| drawing.keep(&format!("{}{}", safe(&variant.label), source.suffix()), svg));
    let subsystems = drawing.table.of_stacks(&whole.work).into_iter();
    let outside = source.outside();
    let all = inside + outside;
    let inside_share = if all == 0 { 0.0 } else { inside as f64 / all as f64 };
    let mut remarks = remarks(&source.starts);
    if source.kind == ProfileKind::Starts && all > 0 && inside_share < INSIDE {
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
        kind: source.kind,
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
        forwarded: (source.kind != ProfileKind::Published).then_some(packets as u64),
        per_packet: per_packet(work as f64),
        functions: functions(SortKey::Own),
        totals: functions(SortKey::Total),
        subsystems: subsystems.map(|s| row(s.name, s.own as f64)).collect(),
        counters: counters(&source.starts, packets),
        drops: drops(&source.starts),
        remarks,
        file,
    }
}

/// Sums the counters of all starts, in the order of the first; a counter is absent if a start could
/// not count it.
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

/// Sums packet drops by place over all starts.
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

/// Returns the distinct remarks of the starts.
fn remarks(starts: &[Start]) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    for remark in starts.iter().flat_map(|start| &start.record.remarks) {
        if !remarks.contains(remark) {
            remarks.push(remark.clone());
        }
    }
    remarks
}

/// Returns the share of samples whose innermost function has a name.
fn resolved_share(stacks: &Stacks) -> f64 {
    let named = stacks.iter().filter(|(frames, _)| frames.last().is_some_and(|f| is_resolved(f)));
    let named: u64 = named.map(|(_, count)| count).sum();
    named as f64 / stacks.total().max(1) as f64
}

#[cfg(test)]
mod tests;
