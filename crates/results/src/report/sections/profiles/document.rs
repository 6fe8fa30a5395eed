//! CPU time by function.

use super::{
    CounterPerPacket, ProfileDifference, ProfileKind, ProfileLoad, ProfiledFunction,
    ProfiledVariant, Profiles,
};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Inline, Remark, Table};
use crate::format::{signed, significant};
use crate::profile::compare::{Change, Changes};
use crate::profile::document::differences;
use fwdlab_model::units::format_pps;

/// Maximum number of functions of a difference in compact output formats.
const FUNCTIONS: usize = 12;

/// Returns a summary of all variants, the differences, and details of each variant.
pub(super) fn section(profiles: &Profiles, imported: bool) -> Block {
    let has = |kind| profiles.variants.iter().any(|variant| variant.kind == kind);
    let mut text: Vec<&str> = Vec::new();
    if imported {
        text.push(
            "From what was published; samples of all CPUs over the rate of the variant, so that a \
             cost is time of the whole machine per packet.",
        );
    }
    if has(ProfileKind::Runs) {
        text.push("The DUT's CPUs were sampled in the windows of the measured runs.");
    }
    if has(ProfileKind::Starts) {
        text.push(
            "Extra runs were sampled while traffic flowed; no measured number comes from them.",
        );
    }
    if !imported {
        text.push(
            "Idle CPUs are set apart, and so are the harness (the testbed's receiver, the \
             profiler) and other programs on the same CPUs. Costs are per forwarded packet.",
        );
    }
    let mut blocks = vec![Block::text(text.join(" ")), overview(profiles)];
    for variant in &profiles.variants {
        let remarks = variant.remarks.iter();
        let note =
            |text: &String| Block::remark(Remark::Note, format!("{}: {text}", variant.label));
        blocks.extend(remarks.map(note));
    }
    blocks.extend(Block::notes(&profiles.notes));
    blocks.extend(profiles.differences.iter().map(difference));
    blocks.extend(profiles.variants.iter().map(details));
    Block::section("Where the time goes", blocks)
}

fn overview(profiles: &Profiles) -> Block {
    Table::of(&profiles.variants)
        .words("variant", |v| Cell::text(&v.label))
        .words("flame graph", |v| {
            v.file.as_ref().map_or(Cell::None, |f| Cell::text(Inline::default().link("svg", f)))
        })
        .words("sampled", |v| Cell::text(sampled(v)))
        .words("own rate", |v| match v.kind {
            ProfileKind::Starts => Cell::text(own_rate(v)),
            ProfileKind::Runs | ProfileKind::Published => Cell::None,
        })
        .words("load", |v| v.load.as_ref().map_or(Cell::None, |load| Cell::text(words(load))))
        .numbers("cost per packet", |v| match v.per_packet {
            Some(cost) => Cell::text(format!("{} {}", significant(cost), v.unit)),
            None => Cell::None,
        })
        .numbers("work", |v| Cell::number(v.work_share, Digits::Percent(1)))
        .numbers("idle", |v| Cell::number(v.idle_share, Digits::Percent(1)))
        .numbers("harness, others", |v| Cell::number(v.harness_share, Digits::Percent(1)))
        .numbers("samples", |v| Cell::count(v.samples))
        .numbers("in the window", |v| Cell::number(v.inside_share, Digits::Percent(1)))
        .numbers("resolved", |v| Cell::number(v.resolved_share, Digits::Percent(1)))
        .block()
}

/// Describes the load during a profile.
fn words(load: &ProfileLoad) -> String {
    let share = 100.0 * load.forwarded_pps / load.offered_pps;
    let offered = format_pps(load.offered_pps);
    match &load.stated {
        Some(rate) => format!("{rate}: {offered} offered, {share:.1} % forwarded"),
        None => format!("{offered} offered, {share:.1} % forwarded"),
    }
}

/// Describes the runs whose samples are in a row.
fn sampled(variant: &ProfiledVariant) -> String {
    let of = |what: &str| match variant.starts {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    match variant.kind {
        ProfileKind::Runs => of("measured run"),
        ProfileKind::Starts => of("profile run"),
        ProfileKind::Published => "published".to_owned(),
    }
}

fn own_rate(variant: &ProfiledVariant) -> Inline {
    let rates = variant.agreements.iter().map(|g| {
        let rate = format_pps(g.rate_pps);
        format!("{rate}, {} of {} measured runs slower", g.slower, g.runs)
    });
    let rates: Vec<String> = rates.collect();
    let rates = if rates.is_empty() { "-".to_owned() } else { rates.join("; ") };
    match variant.is_marked {
        true => Inline::from(format!("{rates} ")).strong("(outside)"),
        false => rates.into(),
    }
}

fn difference(difference: &ProfileDifference) -> Block {
    let ProfileDifference { label, baseline_label, unit, scope, functions, .. } = difference;
    let whole = &functions.whole;
    let interval = whole
        .interval
        .map_or(String::new(), |(low, high)| format!(" [{}, {}]", signed(low), signed(high)));
    let linked = match &difference.file {
        Some(file) => {
            Inline::default().link("Differential flame graph", file).text(", per packet. ")
        }
        None => Inline::default(),
    };
    let text = linked.text(format!(
        "All work: {} and {} {unit} per packet, {}{interval}. {scope}",
        significant(whole.baseline),
        significant(whole.candidate),
        signed(whole.difference)
    ));
    let parts = |what: &str, changes: &Changes, brief: Option<usize>| {
        let parts: Vec<&Change> = changes.parts.iter().collect();
        let unit = format!("{unit}/packet");
        Block::Table(differences(&parts, what, &unit, [baseline_label, label], brief))
    };
    Block::section(
        match difference.kind {
            ProfileKind::Starts => format!("{label} against {baseline_label}, profile runs"),
            ProfileKind::Runs | ProfileKind::Published => {
                format!("{label} against {baseline_label}")
            }
        },
        vec![
            Block::text(text),
            parts("subsystem", &difference.subsystems, None),
            parts("function", functions, Some(FUNCTIONS)),
        ],
    )
}

fn details(variant: &ProfiledVariant) -> Block {
    let costs = |what: &str, share: &str, functions: &[ProfiledFunction]| {
        Table::of(functions)
            .words(what, |f| Cell::text(&f.name))
            .numbers(share, |f| Cell::number(f.share, Digits::Percent(1)))
            .numbers(format!("{} per packet", variant.unit), |f| {
                Cell::number(f.per_packet, Digits::Significant)
            })
            .block()
    };
    let mut blocks = vec![
        costs("function", "share by itself", &variant.functions),
        costs("function with what it calls", "share", &variant.totals),
        costs("subsystem", "share", &variant.subsystems),
    ];
    if !variant.counters.is_empty() {
        blocks.push(counters(&variant.counters));
    }
    let zero = variant.counters.iter().filter(|counter| counter.value == Some(0));
    let zero: Vec<&str> = zero.map(|counter| counter.name.as_str()).collect();
    if !zero.is_empty() {
        blocks.push(Block::text(format!("Zero in the window: {}.", zero.join(", "))));
    }
    if !variant.drops.is_empty() {
        let drops = Table::of(&variant.drops)
            .words("where packets were lost", |drop| Cell::text(&drop.place))
            .numbers("packets", |drop| Cell::count(drop.packets));
        blocks.push(drops.block());
    }
    let title = match variant.kind {
        ProfileKind::Starts => format!("{}, profile runs", variant.label),
        ProfileKind::Runs | ProfileKind::Published => variant.label.clone(),
    };
    let title = format!("{title}: functions, subsystems, counters");
    Block::section(title, blocks).folded()
}

fn counters(counters: &[CounterPerPacket]) -> Block {
    Table::of(counters.iter().filter(|counter| counter.value != Some(0)))
        .words("counter", |counter| Cell::text(&counter.name))
        .numbers("in the window", |counter| match counter.value {
            Some(value) => Cell::count(value),
            None => Cell::text(format!("absent: {}", counter.why_absent)),
        })
        .numbers("per packet", |counter| Cell::number(counter.per_packet, Digits::Significant))
        .block()
}
