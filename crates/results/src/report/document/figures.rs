//! Results: rates, scaling, and the device alone.

use crate::document::table::{Cell, Digits, Row};
use crate::document::{Block, Inline, Table};
use crate::format::{signed, signed_percent};
use crate::label::word_of;
use crate::report::analysis::{
    Analysis, DeviceAlone, FittedLaw, ScaledSeries, Scaling, ScalingOutcome, VariantResult,
};
use crate::report::verdicts::variants;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::units::{FrameSize, format_bps, format_pps};

/// Returns a table with one row per variant, below the graph if it is in this section.
pub(super) fn section(analysis: &Analysis, graph: Option<Block>) -> Block {
    let text = Inline::from("One figure stands for a run. Compared is ")
        .strong(word_of(analysis.figure).replace('-', " "))
        .text(format!(
            ": {}. The table also lists the plain mean and the capacity, the 90th percentile of \
             the samples, as medians over the runs, in packets per second; the median as a bit \
             rate on the wire (L1: with preamble and gap) and of the frames (L2); then the share \
             of the time that was provably taken from the device, and the packets lost.",
            analysis.figure.description()
        ));
    let compared = |figure, title: &str, suffix: &str| match analysis.figure == figure {
        true => format!("{title}{suffix}"),
        false => title.to_owned(),
    };
    let table = variants(&analysis.variants, |v| (v.label.as_str(), v.summary.as_ref()))
        .numbers(compared(RunMetric::Mean, "mean", " (compared)"), |v| Cell::rate(v.mean_median))
        .numbers(compared(RunMetric::P90, "capacity (p90)", ", compared"), |v| {
            Cell::rate(v.p90_median)
        })
        .numbers("L1", |v| bits(v, FrameSize::l1_bits_per_second))
        .about("median as bits on the wire: frames with FCS, preamble and gap")
        .numbers("L2", |v| bits(v, FrameSize::l2_bits_per_second))
        .about("median as bits of frames with FCS");
    let table = match analysis.variants.iter().any(|v| of_line(v).is_some()) {
        true => table
            .numbers("of line rate", |v| Cell::number(of_line(v), Digits::Percent(2)))
            .about("median over the packets that the links take at most, both directions together"),
        false => table,
    };
    let table = table
        .numbers("taken", |v| Cell::number(v.taken, Digits::Percent(1)))
        .numbers("loss", |v| v.loss.as_ref().map_or(Cell::None, |loss| Cell::text(&loss.shown)))
        .numbers("warnings", |v| Cell::count(v.warnings.len()));
    let blocks = graph.into_iter().chain([table.block(), Block::text(text)]);
    Block::section("Figures", blocks.collect())
}

/// Returns the ratio of the median rate to the line rate; `None` if the line rate is unknown, and
/// for a mix, since a device may lose more frames of one size than of another.
fn of_line(variant: &VariantResult) -> Option<f64> {
    variant.frame_size.filter(|size| !size.is_mix())?;
    Some(variant.summary?.median / variant.line_pps?)
}

/// Returns the median rate in bits per second; empty for a mix, since a device may lose more frames
/// of one size than of another.
fn bits(variant: &VariantResult, of: fn(&FrameSize, f64) -> f64) -> Cell {
    let size = variant.frame_size.filter(|size| !size.is_mix());
    let bps = size.zip(variant.summary).map(|(size, summary)| of(&size, summary.median));
    bps.map_or(Cell::None, |bps| Cell::Values(format_bps(bps).into(), vec![bps.into()]))
}

/// Returns a section per swept factor.
pub(super) fn scaling(analysis: &Analysis) -> impl Iterator<Item = Block> {
    let several = analysis.scaling.len() > 1;
    analysis.scaling.iter().map(move |sweep| {
        let title = match several {
            true => format!("Scaling with {}", sweep.name),
            false => "Scaling".to_owned(),
        };
        let text = Block::text(format!(
            "Gunther's universal scalability law over {}: rate = lambda N / (1 + sigma (N - 1) + \
             kappa N (N - 1)), fitted to the logarithms of the runs. lambda: the rate of one; \
             sigma: contention; kappa: coherency. In brackets {} % intervals.",
            sweep.name, analysis.confidence
        ));
        let mut blocks = vec![text, laws(sweep)];
        let remarks = remarks(sweep);
        if !remarks.is_empty() {
            blocks.push(Block::list(remarks));
        }
        Block::section(title, blocks)
    })
}

/// Returns a table of the fitted laws, one row per series.
pub(super) fn laws(sweep: &Scaling) -> Block {
    let of = |get: fn(&FittedLaw) -> Cell| {
        move |series: &ScaledSeries| fitted(series).map_or(Cell::None, get)
    };
    let bracketed = |value: f64, low: f64, high: f64| {
        let text = format!("{} [{}, {}]", format_pps(value), format_pps(low), format_pps(high));
        Cell::Values(text.into(), vec![value.into(), low.into(), high.into()])
    };
    Table::of(&sweep.series)
        .words("series", |series| match series.label.as_str() {
            "" => Cell::text("all"),
            label => Cell::text(label),
        })
        .words("does the law hold", |series| match &series.outcome {
            ScalingOutcome::Fitted(law) if !law.holds => Cell::Verdict("worse".into(), "no".into()),
            ScalingOutcome::Fitted(law) if law.law.lack_of_fit.is_some() => Cell::text("yes"),
            ScalingOutcome::Fitted(_) => Cell::text("untested"),
            ScalingOutcome::Unanswerable { reason } => Cell::text(format!("no fit: {reason}")),
        })
        .numbers(
            "best level",
            of(|law| {
                let forecast = if law.holds { "" } else { " (no forecast)" };
                Cell::text(Inline::default().strong(&law.shown.best).text(forecast))
            }),
        )
        .words("rate there", move |series| {
            let best = fitted(series).map(|law| &law.law.best);
            best.map_or(Cell::None, |best| bracketed(best.pps, best.low, best.high))
        })
        .words("peak of the law", of(|law| Cell::text(&law.shown.peak)))
        .words("lambda", move |series| {
            let lambda = fitted(series).map(|law| &law.law.lambda_pps);
            lambda.map_or(Cell::None, |l| bracketed(l.value, l.low, l.high))
        })
        .words("sigma", of(|law| Cell::text(&law.shown.sigma)))
        .words("kappa", of(|law| Cell::text(&law.shown.kappa)))
        .words("lack of fit", of(|law| Cell::text(&law.shown.lack_of_fit)))
        .said(|series, row: &mut Row| {
            row.name = format!("scaling with {}", named(sweep, series));
            row.words.push(match &series.outcome {
                ScalingOutcome::Fitted(fitted) => fitted.sentence.clone(),
                ScalingOutcome::Unanswerable { reason } => format!("no fit: {reason}"),
            });
        })
        .set(|table| table.in_words = true)
        .block()
}

fn fitted(series: &ScaledSeries) -> Option<&FittedLaw> {
    match &series.outcome {
        ScalingOutcome::Fitted(law) => Some(law),
        ScalingOutcome::Unanswerable { .. } => None,
    }
}

fn named(sweep: &Scaling, series: &ScaledSeries) -> String {
    let of = if series.label.is_empty() { "" } else { ", " };
    format!("{}{of}{}", sweep.name, series.label)
}

/// Returns remarks on the laws: excluded points, and reasons for doubts.
fn remarks(sweep: &Scaling) -> Vec<String> {
    let laws = || sweep.series.iter().filter_map(|series| Some((series, fitted(series)?)));
    let left_out = laws().filter(|(series, _)| !series.left_out.is_empty()).map(|(series, _)| {
        let (name, left_out) = (named(sweep, series), &series.left_out);
        format!("{name}: not among the law's points: {left_out}")
    });
    let doubtful = laws().filter(|(_, law)| !law.shown.censored.is_empty() || !law.holds);
    let doubts =
        doubtful.map(|(series, law)| format!("{}: {}", named(sweep, series), law.sentence));
    left_out.chain(doubts).collect()
}

/// Returns the CPU time of the device's own threads.
pub(super) fn device(device: &DeviceAlone) -> Block {
    let text = format!(
        "CPU time of the threads that forward, per forwarded packet: median of the runs. {}.",
        device.receiver
    );
    let table = Table::of(&device.variants)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("per packet", |row| {
            let ns = row.per_packet_ns;
            ns.map_or(Cell::None, |ns| Cell::Number(ns, Digits::Significant, "ns"))
        })
        .numbers("offered over forwarded", |row| Cell::number(row.overload, Digits::Decimals(1)));
    let mut blocks = vec![Block::text(text), table.block()];
    blocks.extend(device.effects.iter().map(|effect| {
        let percent = |change: f64| signed_percent(change, 1);
        Block::text(format!(
            "{} against {}: {} [{}, {}] packets per second of the device's CPU, {} ns [{}, {}] \
             per packet.",
            effect.label,
            effect.baseline_label,
            percent(effect.effect),
            percent(effect.interval.0),
            percent(effect.interval.1),
            signed(effect.difference_ns),
            signed(effect.interval_ns.0),
            signed(effect.interval_ns.1)
        ))
    }));
    Block::section("The device alone", blocks)
}
