//! The tests of RFC 2544 side by side, and deviations from RFC 2544.

use super::search::{is_none, of_line};
use super::{Method, MethodRun};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::report::analysis::RunResult;
use crate::report::sections::cells::{frame_size, seconds};
use crate::stats::summary::median;
use crate::store::Contents;
use fwdlab_model::design::{Method as Planned, MethodKind};
use fwdlab_model::settings::{Directions, Family};
use fwdlab_model::spec::format_ns;
use fwdlab_model::units::{FrameSize, format_bps, format_pps};
use fwdlab_model::{Plan, Variant};
use serde::Serialize;

/// Results of a suite.
#[derive(Clone, Debug, Serialize)]
pub struct Suite {
    /// A row for each variant.
    pub rows: Vec<SuiteRow>,
    /// Deviations from RFC 2544, one sentence each.
    pub deviations: Vec<String>,
}

/// Results of a suite for a variant: medians over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct SuiteRow {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Bytes of a frame with FCS.
    pub frame_size: FrameSize,
    /// Conditional throughput of the first goal, packets per second.
    pub throughput: Option<f64>,
    /// Number of runs at line rate: the device is at least as fast as its link.
    #[serde(skip_serializing_if = "is_none")]
    pub at_line: usize,
    /// Lower bound of the throughput, packets per second, if no throughput was found: the highest
    /// load tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The throughput in bits per second on the link, with preamble and gap (L1), and without (L2).
    pub bits: Option<(f64, f64)>,
    /// Ratio of the throughput to the line rate; `None` if the line rate is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_line: Option<f64>,
    /// Ratio of the throughput to the maximum offered load (RFC 2285, 3.5.3).
    pub of_maximum: Option<f64>,
    /// Maximum offered load, packets per second.
    pub maximum: Option<f64>,
    /// Mean one-way delay at the throughput, seconds.
    pub latency_s: Option<f64>,
    /// Share lost at the throughput.
    pub loss: Option<f64>,
    /// Mean length of the longest bursts without loss, frames.
    pub burst: Option<f64>,
    /// Corrected buffer time, seconds (RFC 9004).
    pub buffer_s: Option<f64>,
    /// Mean duration of loss after an overload, seconds.
    pub recovery_s: Option<f64>,
    /// Mean duration of loss around a reset, seconds.
    pub reset_s: Option<f64>,
}

/// Combines the results of the tests.
pub(super) fn suite(contents: &Contents, results: &[RunResult], parts: &[Method]) -> Suite {
    let rows = contents.plan.variants.iter().map(|variant| {
        let number = variant.index;
        let frame = variant.settings.traffic.frame_size;
        let variant_results = || results.iter().filter(|result| result.variant == number);
        let median_of = |get: fn(&RunResult) -> Option<f64>| {
            median(&variant_results().filter_map(get).collect::<Vec<f64>>())
        };
        let maximum = median_of(|result| result.offered_pps);
        let lost = |result: &RunResult| {
            let lost = result.offered.checked_sub(result.forwarded)?;
            (result.offered > 0).then(|| lost as f64 / result.offered as f64)
        };
        let searched = parts.iter().flat_map(|part| &part.searched);
        let mut searched = searched.filter(|found| found.variant == number);
        let first = searched.next();
        let throughput = first.and_then(|found| Some(found.throughput?.median));
        let bursts = parts.iter().flat_map(|part| &part.bursts).find(|b| b.variant == number);
        let interrupted = |kind: MethodKind| {
            let part = parts.iter().find(|part| part.kind == kind)?;
            let found = part.interrupted.iter().find(|found| found.variant == number)?;
            Some(found.seconds?.mean)
        };
        SuiteRow {
            variant: number,
            label: variant.label.clone(),
            frame_size: frame,
            throughput,
            at_line: first.map_or(0, |found| found.at_line),
            at_least: first.and_then(|found| found.at_least),
            bits: throughput
                .map(|pps| (frame.l1_bits_per_second(pps), frame.l2_bits_per_second(pps))),
            of_line: first.and_then(|found| found.of_line),
            of_maximum: throughput.zip(maximum).map(|(pps, maximum)| pps / maximum),
            maximum,
            latency_s: parts
                .iter()
                .flat_map(|part| &part.timed)
                .find(|timed| timed.variant == number)
                .and_then(|timed| timed.figure("mean")?.seconds),
            loss: median_of(lost),
            burst: bursts.and_then(|bursts| Some(bursts.frames?.mean)),
            buffer_s: bursts.and_then(|bursts| bursts.corrected_s),
            recovery_s: interrupted(MethodKind::SystemRecovery),
            reset_s: interrupted(MethodKind::Reset),
        }
    });
    Suite { rows: rows.collect(), deviations: deviations(contents, parts) }
}

/// Duration that RFC 2544 requires for a trial (section 24) and for an overload (26.5).
const REQUIRED_NS: u64 = 60_000_000_000;
/// Number of searches for the longest burst that it requires (26.4).
const BURSTS: u32 = 50;
/// Number of trials of the latency test (26.2).
const TIMED: u32 = 20;
/// Frame sizes on Ethernet, with FCS (section 9.1; RFC 5180, section 5.1.1, has the same).
const SIZES: [u16; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

fn deviations(contents: &Contents, parts: &[Method]) -> Vec<String> {
    let plan = &contents.plan;
    let planned = plan.method.as_ref().map_or(&[][..], Planned::parts);
    let mut sentences: Vec<String> = sizes(plan).into_iter().collect();
    for method in planned {
        sentences.extend(of_test(plan, method));
    }
    let missing = [
        (MethodKind::Mlrsearch, "throughput (26.1)"),
        (MethodKind::Latency, "latency (26.2)"),
        (MethodKind::LossCurve, "frame loss rate (26.3)"),
        (MethodKind::BackToBack, "back-to-back frames (26.4)"),
        (MethodKind::SystemRecovery, "system recovery (26.5)"),
        (MethodKind::Reset, "reset (26.6)"),
    ];
    let missing_tests =
        missing.iter().filter(|(kind, _)| planned.iter().all(|part| part.kind() != *kind));
    let missing_tests: Vec<&str> = missing_tests.map(|(_, name)| *name).collect();
    if !missing_tests.is_empty() {
        sentences.push(format!("Left out: {}.", missing_tests.join(", ")));
    }
    let resets = parts.iter().filter(|part| part.kind == MethodKind::Reset);
    let runs: Vec<&MethodRun> = resets.flat_map(|part| &part.runs).collect();
    let is_reset = |run: &&&MethodRun| run.interruptions.iter().any(|one| one.reset.is_some());
    if !runs.is_empty() && runs.iter().filter(is_reset).count() == 0 {
        sentences.push(
            "Reset (26.6): this kind of device can't be reset while it meets traffic.".into(),
        );
    }
    let flows = plan.base.traffic.flows;
    sentences.push(format!(
        "Addresses (12): {flows} flows (sources x destinations) simultaneously instead of one, \
         then 256 networks."
    ));
    let is_one = |variant: &&Variant| variant.settings.traffic.directions == Directions::One;
    let one: Vec<&str> =
        plan.variants.iter().filter(is_one).map(|variant| variant.label.as_str()).collect();
    if !one.is_empty() {
        let which = match one.len() == plan.variants.len() {
            true => String::new(),
            false => format!(" in {}", one.join("; ")),
        };
        sentences.push(format!(
            "Direction (14): one{which}, from sender to receiver; the rates are of one interface."
        ));
    }
    sentences.push(
        "Modifiers (11): no broadcasts, management frames or routing updates are sent; filters \
         are factors of the experiment."
            .into(),
    );
    sentences.push(
        "Trial (23): static routes and neighbours instead of a routing protocol; a trial ends \
         when every packet is accounted for instead of two seconds after the last, and the next \
         one begins immediately instead of five seconds later."
            .into(),
    );
    sentences
}

fn sizes(plan: &Plan) -> Option<String> {
    let measured = |size: u16| {
        plan.variants.iter().any(|variant| {
            let traffic = &variant.settings.traffic;
            // The stamp makes the smallest IPv6 frame larger.
            let equivalent = if traffic.family == Family::Inet6 && size == 64 { 84 } else { size };
            traffic.frame_size.one() == Some(equivalent)
        })
    };
    let missing: Vec<String> =
        SIZES.iter().filter(|&&size| !measured(size)).map(ToString::to_string).collect();
    let inet6 = plan.variants.iter().any(|v| v.settings.traffic.family == Family::Inet6);
    let smallest =
        if inet6 { " With IPv6 84 bytes, which the stamp needs, stand for 64." } else { "" };
    match missing.is_empty() {
        true if smallest.is_empty() => None,
        true => Some(format!("Frame sizes (9.1; RFC 5180):{smallest}")),
        false => {
            Some(format!("Frame sizes (9.1): without {} bytes.{smallest}", missing.join(", ")))
        }
    }
}

fn of_test(plan: &Plan, method: &Planned) -> Vec<String> {
    match method {
        Planned::Mlrsearch(search) => {
            let first = search.goals.first();
            let short = first.filter(|goal| goal.final_ns < REQUIRED_NS).map(|goal| {
                let (ns, sum) = (format_ns(goal.final_ns), format_ns(goal.sum_ns));
                format!("Throughput (24, 26.1): trials of {ns}, {sum} of them at a load in doubt, instead of 60 s.")
            });
            let lossy = first.filter(|goal| goal.loss_ratio > 0.0).map(|goal| {
                let ratio = crate::format::percent(goal.loss_ratio, 3);
                format!("Throughput (26.1): up to {ratio} of the packets may be lost.")
            });
            let exceeds = first.filter(|goal| goal.exceed_ratio > 0.0).map(|goal| {
                let ratio = crate::format::percent(goal.exceed_ratio, 0);
                format!("Throughput (26.1): up to {ratio} of that time may lose packets (RFC 9971, exceed ratio).")
            });
            [short, lossy, exceeds].into_iter().flatten().collect()
        }
        Planned::LossCurve { step, .. } => {
            let mut sentences = Vec::new();
            if plan.trial.duration_ns < REQUIRED_NS {
                let ns = format_ns(plan.trial.duration_ns);
                sentences
                    .push(format!("Frame loss rate (24, 26.3): trials of {ns} instead of 60 s."));
            }
            if *step > 0.1 {
                let step = crate::format::percent(*step, 0);
                sentences.push(format!(
                    "Frame loss rate (26.3): steps of {step} instead of 10 % at most."
                ));
            }
            sentences
        }
        Planned::Delays { repeats, .. } => {
            let mut sentences = vec![
                "Latency (26.2): every packet of the window is timed instead of one of the stream; \
                 from the time at which it was due until it was received, as a store-and-forward \
                 device's, whose frame is then complete at both ends."
                    .to_owned(),
            ];
            if plan.trial.duration_ns < 2 * REQUIRED_NS {
                let ns = format_ns(plan.trial.duration_ns);
                sentences.push(format!("Latency (24, 26.2): streams of {ns} instead of 120 s."));
            }
            if *repeats < TIMED {
                sentences.push(format!("Latency (26.2): {repeats} trials instead of {TIMED}."));
            }
            sentences
        }
        Planned::BackToBack { repeats, max_frames } => {
            let few = (*repeats < BURSTS).then(|| {
                format!("Back-to-back frames (26.4): searched {repeats} times instead of {BURSTS}.")
            });
            let short = max_frames.map(|frames| {
                format!("Back-to-back frames (26.4): bursts of {frames} frames at most instead of two seconds.")
            });
            few.into_iter().chain(short).collect()
        }
        Planned::SystemRecovery { overload_ns, .. } if *overload_ns < REQUIRED_NS => {
            let ns = format_ns(*overload_ns);
            vec![format!("System recovery (26.5): an overload of {ns} instead of 60 s.")]
        }
        _ => Vec::new(),
    }
}

/// Returns the results by variant, and the deviations from the RFC.
pub(super) fn blocks(suite: &Suite) -> Vec<Block> {
    let line = match suite.rows.iter().any(|row| row.of_line.is_some()) {
        true => "Shares are of the links' line rate, and",
        false => "No line rate is known, as virtual links have none: shares are",
    };
    vec![
        Block::text(format!(
            "Medians over the runs. L1 has preamble and gap, L2 the frame with FCS. {line} of the \
             maximum offered load (RFC 2285, 3.5.3), at which the loss stands beside it."
        )),
        table(&suite.rows),
        Block::section("Deviations from RFC 2544", vec![Block::list(suite.deviations.clone())]),
    ]
}

/// Returns a table with one row per variant.
pub(super) fn table(rows: &[SuiteRow]) -> Block {
    let bits = |bps: Option<f64>| {
        bps.map_or(Cell::None, |bps| Cell::Values(format_bps(bps).into(), vec![bps.into()]))
    };
    let table = Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("frame", |row| frame_size(row.frame_size))
        .numbers("throughput", |row| Cell::rate(row.throughput))
        .numbers("L1", move |row| bits(row.bits.map(|(l1, _)| l1)))
        .numbers("L2", move |row| bits(row.bits.map(|(_, l2)| l2)));
    let table = match rows.iter().any(|row| row.of_line.is_some()) {
        true => table.numbers("of line rate", |row| Cell::number(row.of_line, Digits::Percent(2))),
        false => table,
    };
    table
        .numbers("of maximum", |row| Cell::number(row.of_maximum, Digits::Percent(1)))
        .numbers("maximum offered", |row| Cell::rate(row.maximum))
        .numbers("lost there", |row| Cell::number(row.loss, Digits::Percent(2)))
        .numbers("latency", |row| seconds(row.latency_s))
        .numbers("back-to-back", |row| Cell::number(row.burst, Digits::Decimals(0)))
        .numbers("buffer", |row| seconds(row.buffer_s))
        .numbers("recovery", |row| seconds(row.recovery_s))
        .numbers("reset", |row| seconds(row.reset_s))
        .with_words(|row, line| line.words.push(sentence(row)))
        .set(|table| table.name = Some("rfc2544"))
        .block()
}

/// States the results of a variant's tests, without its name.
pub(super) fn sentence(row: &SuiteRow) -> String {
    let throughput = match row.throughput {
        Some(pps) if row.at_line > 0 => {
            format!("throughput {}, the line rate in {} runs", format_pps(pps), row.at_line)
        }
        Some(pps) => format!("throughput {}", format_pps(pps)),
        None => match row.at_least {
            Some(pps) => {
                format!("throughput at least {}, the greatest load tried", format_pps(pps))
            }
            None => "no throughput found".to_owned(),
        },
    };
    let bits =
        row.bits.map_or(String::new(), |(l1, _)| format!(" ({} on the link)", format_bps(l1)));
    let burst = row.burst.map_or(String::new(), |frames| format!(", bursts of {frames:.0} frames"));
    let line = of_line(row.of_line);
    // If nothing else is varied, the variant's name is the size.
    let size = match row.frame_size.to_string() == format!("{} bytes", row.label) {
        true => String::new(),
        false => format!("{}: ", row.frame_size),
    };
    format!("{size}{throughput}{bits}{line}{burst}")
}
