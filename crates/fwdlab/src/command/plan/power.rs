//! Power analysis of an experiment, as text and as JSON.

use super::history::{History, UsableStore};
use crate::terminal::duration;
use fwdlab_model::Plan;
use fwdlab_results::document::Block;
use fwdlab_results::document::table::{Cell, Digits, Table};
use fwdlab_results::report::analysis::{self, PowerAnalysis};
use fwdlab_results::stats::planning;
use serde_json::{Value, json};

/// Scatter between runs for which the smallest effects are given while the real scatter is unknown.
const SCATTERS: [f64; 3] = [0.005, 0.02, 0.05];
/// Differences that counts detect, without any chance involved.
const COUNTED: &str = "instructions per packet, by function: whatever differs by more than its runs \
                       scatter, half an instruction in a function at least; that takes two runs of \
                       each variant, three where runs scatter";
/// Shown while no store provides the scatter.
const NOT_KNOWN: &str = "how much runs scatter here: --pilot measures it by the first blocks, which \
                         count";
/// Chance of detecting those effects.
const CHANCE: f64 = 0.9;

/// The power analysis; `None` if nothing is compared.
pub(super) fn section(plan: &Plan, history: &History) -> Option<Block> {
    let design = analysis::design(plan)?;
    let mut rows = Vec::new();
    let mut table = None;
    if plan.metric().is_rate() {
        rows.extend(history.stores.iter().map(|usable| ("known", known(usable, plan))));
        rows.extend(
            history
                .unused
                .iter()
                .map(|unused| ("not used", format!("{}: {}", unused.path.display(), unused.why))),
        );
        match &history.outlook {
            Some(outlook) => {
                rows.push(("scatter", scatter(outlook, plan)));
                rows.extend(outlook.design.iter().map(|design| ("finds", smallest(design))));
                rows.push(("needed", needed(outlook, plan, block_ns(plan, history))));
                table = outlook.design.as_ref().map(|design| chances(design, plan));
            }
            None if !history.stores.is_empty() => {
                rows.push(("finds", "whatever there is: the runs don't scatter at all".to_owned()));
            }
            None => {
                rows.extend(generic_words(&design, plan).map(|effects| ("finds", effects)));
                rows.push(("unknown", NOT_KNOWN.to_owned()));
            }
        }
        rows.extend(unanswerable(plan).map(|why| ("no answer", why)));
    } else {
        rows.push(("finds", COUNTED.to_owned()));
    }
    let blocks = [Some(Block::pairs(&rows)), table].into_iter().flatten().collect();
    Some(Block::section("outlook", blocks))
}

/// Reason why none of the comparisons can have an answer; `None` if they can.
fn unanswerable(plan: &Plan) -> Option<String> {
    let is_blocked = plan.design.alternate_ns.is_none() && !plan.has_builds();
    let comparisons = plan.pairs().len();
    (is_blocked && plan.design.blocks < 2 && comparisons > 0).then(|| {
        let of = if comparisons == 1 { "the comparison" } else { "any of the comparisons" };
        format!("one block can't answer {of}; next step: blocks = 2 in [design] or more")
    })
}

/// Describes the usable runs of a store.
fn known(usable: &UsableStore, plan: &Plan) -> String {
    let (path, known) = (usable.path.display(), &usable.known);
    let summary = format!("{} {} in {path}", known.blocks, unit(plan));
    let remarks = known.remarks.iter().map(ToString::to_string);
    std::iter::once(summary).chain(remarks).collect::<Vec<_>>().join("; ")
}

/// The power analysis as JSON: usable stores (`stores`, `unused`), the results, and the time of a
/// block. If no scatter is known, `generic` contains the smallest changes for runs of a given
/// scatter.
pub(super) fn json(plan: &Plan, history: &History) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(history)?;
    value["block_ns"] = block_ns(plan, history).into();
    if history.outlook.is_none() {
        let design = analysis::design(plan);
        let design = design.filter(|_| plan.metric().is_rate());
        let generic = design.map_or_else(Vec::new, |design| generic(&design, plan));
        value["generic"] =
            generic.into_iter().map(|(cv, mde)| json!({ "cv": cv, "mde_90": mde })).collect();
    }
    Ok(value)
}

fn unit(plan: &Plan) -> &'static str {
    if plan.design.alternate_ns.is_some() { "streams" } else { "blocks" }
}

fn scatter(outlook: &PowerAnalysis, plan: &Plan) -> String {
    let block = if plan.design.alternate_ns.is_some() { "stream" } else { "block" };
    let found = percent(outlook.scatter.sd);
    let mut text = format!("{found} (standard deviation of a {block}'s log ratio)");
    if outlook.is_upper {
        text += &format!(
            "; with {} degrees of freedom it may be {}, the upper 80 % limit, which counts here",
            outlook.scatter.df,
            percent(outlook.sd)
        );
    }
    text
}

fn smallest(design: &planning::PowerAnalysis) -> String {
    format!(
        "a change of {} four times in five, of {} nine times in ten",
        percent(design.mde_80),
        percent(design.mde_90)
    )
}

/// Numbers of blocks that reach each goal, and their time.
fn needed(outlook: &PowerAnalysis, plan: &Plan, block_ns: u64) -> String {
    let most = if plan.design.stop.is_some() { "at most " } else { "" };
    let blocks = |blocks: Option<u32>| match (blocks, block_ns) {
        (None, _) => format!("more than {} {}", outlook.most_blocks, unit(plan)),
        (Some(blocks), 0) => format!("{most}{blocks} {}", unit(plan)),
        (Some(blocks), block_ns) => {
            let time = duration(block_ns.saturating_mul(u64::from(blocks)));
            format!("{most}{blocks} {} ({time})", unit(plan))
        }
    };
    let margin = percent(plan.compare.margin);
    let [with_80, with_90] = outlook.blocks_for_equivalence;
    format!(
        "to find {margin} nine times in ten: {}; to show equal variants equivalent within {margin} \
         four times in five: {}, nine times in ten: {}",
        blocks(outlook.blocks_for_margin),
        blocks(with_80),
        blocks(with_90)
    )
}

/// The table of true changes, at most 40 columns wide.
fn chances(design: &planning::PowerAnalysis, plan: &Plan) -> Block {
    let change = |change: f64| if change == 0.0 { "none".to_owned() } else { percent(change) };
    let mut table = Table::of(&design.outcomes)
        .numbers("change", |outcome| Cell::text(change(outcome.change)))
        .numbers("found", |outcome| Cell::text(chance(outcome.difference)))
        .numbers("equivalent", |outcome| {
            outcome.equivalence.map_or(Cell::None, |equal| Cell::text(chance(equal)))
        });
    if plan.design.stop.is_some() {
        table = table.numbers("mean blocks", |o| Cell::number(o.blocks, Digits::Decimals(1)));
    }
    table.block()
}

/// The smallest changes for runs that scatter by each of [`SCATTERS`]: a block's log ratio scatters
/// by the square root of two times that. Empty for an experiment that may end early, since its
/// number of blocks depends on the effects.
fn generic(design: &planning::Design, plan: &Plan) -> Vec<(f64, f64)> {
    if plan.design.stop.is_some() || plan.design.alternate_ns.is_some() {
        return Vec::new();
    }
    let smallest = |&cv: &f64| Some((cv, design.detectable(cv * 2f64.sqrt(), CHANCE)?));
    SCATTERS.iter().filter_map(smallest).collect()
}

fn generic_words(design: &planning::Design, plan: &Plan) -> Option<String> {
    let effects: Vec<String> = generic(design, plan)
        .into_iter()
        .map(|(cv, mde)| format!("{} where runs scatter by {}", percent(mde), percent(cv)))
        .collect();
    (!effects.is_empty())
        .then(|| format!("nine times in ten a difference of {}", effects.join(", ")))
}

/// Estimated time of a block.
fn block_ns(plan: &Plan, history: &History) -> u64 {
    history.estimate(plan).run_ns * plan.runs.len() as u64 / u64::from(plan.design.blocks.max(1))
}

/// Formats a ratio with at least two digits where needed: `0.52 %`, `4.1 %`, `12 %`.
fn percent(ratio: f64) -> String {
    let percent = 100.0 * ratio;
    let text = match percent {
        p if p < 0.995 => format!("{p:.2}"),
        p if p < 9.95 => format!("{p:.1}"),
        p => format!("{p:.0}"),
    };
    let short = text.trim_end_matches('0').trim_end_matches('.');
    format!("{} %", if text.contains('.') && !short.is_empty() { short } else { &text })
}

/// Formats a chance; one that is neither certain nor impossible never rounds to 100 % or 0 %.
fn chance(chance: f64) -> String {
    match chance {
        c if c >= 0.995 => "> 99 %".to_owned(),
        c if c < 0.005 => "< 1 %".to_owned(),
        c => format!("{:.0} %", 100.0 * c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_keeps_two_significant_digits() {
        let shown = [0.0052, 0.02, 0.041, 0.05, 0.123, 0.1].map(percent);
        assert_eq!(shown, ["0.52 %", "2 %", "4.1 %", "5 %", "12 %", "10 %"]);
        assert_eq!([0.9999, 0.001, 0.5].map(chance), ["> 99 %", "< 1 %", "50 %"]);
    }
}
