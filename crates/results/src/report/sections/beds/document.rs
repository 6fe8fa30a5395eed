//! Comparison of the beds of an experiment.

use super::{BedEffect, BedResult, Beds};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::format::signed_percent;
use crate::report::analysis::{Answer, Outcome};
use crate::stats::Verdict;

/// Compares each bed with the others, and each comparison between beds.
pub(super) fn section(beds: &Beds) -> Block {
    let levels = Table::of(&beds.beds)
        .words("bed", |bed| Cell::text(&bed.bed))
        .numbers("runs", |bed| Cell::count(bed.runs))
        .numbers("blocks", |bed| Cell::count(bed.blocks))
        .numbers("level", |bed| bed.level_pps.map_or(Cell::None, Cell::rate))
        .words("against", |bed| Cell::text(&bed.against))
        .words("verdict", |bed| verdict(bed.level.as_ref(), ["faster", "slower"]))
        .numbers("difference", |bed: &BedResult| ratio(bed.level.as_ref()))
        .keys(&["ratio"])
        .words("interval", |bed| interval(bed.level.as_ref()))
        .keys(&["low", "high"])
        .numbers("adjusted p", |bed| p(bed.level.as_ref()))
        .keys(&["p_adjusted"])
        .numbers("drift", |bed| match bed.drift {
            Some(drift) => Cell::Values(signed_percent(drift - 1.0, 1).into(), vec![drift.into()]),
            None => Cell::None,
        })
        .numbers("p of drift", |bed| Cell::number(bed.drift_p, Digits::P))
        .keys(&["drift_p"])
        .set(|table| table.name = Some("beds"))
        .block();
    let effects = Table::of(&beds.effects)
        .words("variant", |effect| Cell::text(&effect.label))
        .words("against", |effect| Cell::text(&effect.baseline_label))
        .words("bed", |effect| Cell::text(&effect.bed))
        .numbers("blocks", |effect| match &effect.here {
            Outcome::Compared(answer) => Cell::count(answer.comparison.blocks),
            _ => Cell::None,
        })
        .numbers("effect", |effect: &BedEffect| ratio(Some(&effect.here)))
        .keys(&["ratio"])
        .words("interval", |effect| interval(Some(&effect.here)))
        .keys(&["low", "high"])
        .words("elsewhere", |effect| {
            verdict(effect.difference.as_ref(), ["another effect", "another effect"])
        })
        .keys(&["differs"])
        .numbers("difference", |effect| ratio(effect.difference.as_ref()))
        .keys(&["difference"])
        .words("its interval", |effect| interval(effect.difference.as_ref()))
        .keys(&["difference_low", "difference_high"])
        .numbers("adjusted p", |effect| p(effect.difference.as_ref()))
        .keys(&["p_adjusted"])
        .numbers("MDE", |effect| match compared(effect.difference.as_ref()) {
            Some(answer) => {
                Cell::Values(answer.shown.mde.clone().into(), vec![answer.comparison.mde.into()])
            }
            None => Cell::None,
        })
        .keys(&["mde"])
        .set(|table| table.name = Some("effects by bed"))
        .block();
    let how = format!(
        "Blocks lie within a bed. Each bed is held against all others by its blocks: their level \
         (geometric mean of the variants) and, for each comparison, their ratio between the two \
         variants; Welch's test on logarithms, adjusted at {} % for all that is asked of beds. An \
         effect's own interval is of its bed alone.",
        beds.confidence
    );
    Block::section("Beds", vec![levels, effects, Block::text(how)])
}

fn compared(outcome: Option<&Outcome>) -> Option<&Answer> {
    match outcome? {
        Outcome::Compared(answer) => Some(answer),
        _ => None,
    }
}

/// Formats the verdict on a difference between beds, with a word for its direction.
fn verdict(outcome: Option<&Outcome>, [more, less]: [&str; 2]) -> Cell {
    match outcome {
        Some(Outcome::Compared(answer)) => Cell::text(match answer.verdict {
            Verdict::Better => more,
            Verdict::Worse => less,
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotJudged => "not judged",
        }),
        Some(Outcome::Unanswerable { reason }) => Cell::text(format!("no answer: {reason}")),
        _ => Cell::None,
    }
}

fn ratio(outcome: Option<&Outcome>) -> Cell {
    compared(outcome).map_or(Cell::None, |answer| {
        Cell::Values(answer.shown.effect.clone().into(), vec![answer.comparison.ratio.into()])
    })
}

fn interval(outcome: Option<&Outcome>) -> Cell {
    compared(outcome).map_or(Cell::None, |answer| {
        let ends = vec![answer.comparison.low.into(), answer.comparison.high.into()];
        Cell::Values(answer.shown.interval.clone().into(), ends)
    })
}

fn p(outcome: Option<&Outcome>) -> Cell {
    Cell::number(compared(outcome).map(|answer| answer.comparison.p_adjusted), Digits::P)
}
