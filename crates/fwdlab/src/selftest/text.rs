//! Documents of the self-test, in any format.

use super::detection::Detection;
use super::machine::Machine;
use super::truth::{Report, Truth};
use super::{Bar, CONFIDENCE, ErrorRate, PromiseState};
use crate::terminal::duration;
use fwdlab_model::units::format_pps;
use fwdlab_results::document::table::{Cell, Digits, Table};
use fwdlab_results::document::{Block, Data, Document};

/// Rates and their consequences; `data` is the same for programs.
pub(crate) fn document<'a>(
    rates: &[ErrorRate],
    machine: Option<&Machine>,
    data: &'a dyn Data,
) -> Document<'a> {
    let of = |question: &str| {
        let rows = rates.iter().filter(|row| row.question == question);
        Block::section(capitalised(question), vec![table(rows)])
    };
    let mut blocks = vec![summary(rates)];
    blocks.extend(questions(rates).into_iter().map(of));
    blocks.extend(machine.into_iter().flat_map(of_machine));
    Document {
        title: "The laboratory's error rates".to_owned(),
        conclusion: vec![Block::text(conclusion(rates))],
        blocks,
        data,
        version: 1,
    }
}

/// Devices of known truth, compared with their measurements.
pub(crate) fn of_truths(report: &Report) -> Document<'_> {
    let value = |truth: &Truth, value: f64| match truth.is_loss() {
        true => Cell::number(value, Digits::Percent(3)),
        false => Cell::text(format_pps(value)),
    };
    let held = |truth: &Truth| if truth.is_kept() { "kept" } else { "BROKEN" };
    let table = Table::of(&report.truths)
        .words("device", |truth| Cell::text(&truth.device))
        .words("measured", |truth| Cell::text(&truth.what))
        .numbers("median", |truth| value(truth, truth.median()))
        .numbers("truth", |truth| value(truth, truth.truth))
        .numbers("error", |truth| Cell::number(truth.error, Digits::Signed(3)))
        .numbers("worst run", |truth| Cell::number(truth.worst, Digits::Signed(3)))
        .words("promise", |truth| Cell::text(held(truth)))
        .set(|table| table.name = Some("truths"));
    let mut blocks = vec![table.block(), Block::list(&report.verdicts)];
    if report.left_out > 0 {
        let left_out = report.left_out;
        blocks.push(Block::text(format!("{left_out} runs are left out: their sender fell short")));
    }
    let title = "The laboratory against devices of known truth".to_owned();
    Document { title, conclusion: Vec::new(), blocks, data: report, version: 1 }
}

/// The questions in order, each once.
fn questions(rates: &[ErrorRate]) -> Vec<&str> {
    let mut questions: Vec<&str> = Vec::new();
    for row in rates {
        if !questions.contains(&row.question.as_str()) {
            questions.push(&row.question);
        }
    }
    questions
}

/// Rates of one question with one promise: a table row per design and scatter follows it.
fn summary(rates: &[ErrorRate]) -> Block {
    let mut groups: Vec<Vec<&ErrorRate>> = Vec::new();
    for row in rates {
        let key = |row: &ErrorRate| (row.question.clone(), promise(row));
        match groups.iter_mut().find(|group| key(group[0]) == key(row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let classic = |group: &Vec<&ErrorRate>| group.iter().filter_map(|row| row.classic).collect();
    let table = Table::of(&groups)
        .words("event", |group| Cell::text(capitalised(&group[0].question)))
        .numbers("rows", |group| Cell::text(group.len().to_string()))
        .numbers("rate", |group| Cell::text(range(group.iter().map(|row| row.share).collect())))
        .words("bar", |group| Cell::text(promise(group[0])))
        .words("promise", |group| Cell::text(states(group)))
        .numbers("classic practice", |group| Cell::text(range(classic(group))));
    Block::section("Summary", vec![table.block()])
}

/// Formats the smallest and the largest of some shares.
fn range(shares: Vec<f64>) -> String {
    let known = shares.into_iter().filter(|share| !share.is_nan());
    let ends = known.fold(None, |ends: Option<(f64, f64)>, share| match ends {
        Some((low, high)) => Some((low.min(share), high.max(share))),
        None => Some((share, share)),
    });
    match ends {
        Some((low, high)) if percent(low) == percent(high) => percent(low),
        Some((low, high)) => format!("{} to {}", percent(low), percent(high)),
        None => "-".to_owned(),
    }
}

/// Counts the states of the same promise; one word if all rows agree.
fn states(group: &[&ErrorRate]) -> String {
    let states = [("kept", PromiseState::Yes), ("open", PromiseState::Open)];
    let counts =
        states.into_iter().chain([("BROKEN", PromiseState::No)]).filter_map(|(name, of)| {
            let n = group.iter().filter(|row| row.held == Some(of)).count();
            (n > 0).then(|| if n == group.len() { name.to_owned() } else { format!("{n} {name}") })
        });
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() { "-".to_owned() } else { counts.join(", ") }
}

fn table<'m>(rows: impl Iterator<Item = &'m ErrorRate>) -> Block {
    let share = |share: f64| Some(share).filter(|share| !share.is_nan());
    let digits = Digits::Percent(2);
    Table::of(rows)
        .words("design", |row| {
            let blocks = row.blocks.map(|blocks| format!(", {blocks:.1} blocks"));
            let trials = row.trials.map(|trials| format!(", {trials:.1} trials"));
            let other = row.reference.map(|other| {
                format!(" (reference {:.1}, {:.1} %)", other.trials, 100.0 * other.share)
            });
            let parts = [blocks, trials, other].map(Option::unwrap_or_default);
            Cell::text(format!("{}{}", row.design, parts.concat()))
        })
        .words("runs scatter", |row| Cell::text(&row.noise))
        .numbers("rate", |row| Cell::number(share(row.share), digits))
        .words("95 % interval", |row| Cell::interval((row.interval.low, row.interval.high), digits))
        .keys(&["low", "high"])
        .words("bar", |row| Cell::text(bar(row)))
        .numbers("classic practice", |row| Cell::number(row.classic.and_then(share), digits))
        .hidden("question", |row| Cell::text(&row.question))
        .set(|table| table.name = Some("rates"))
        .block()
}

fn promise(row: &ErrorRate) -> String {
    match row.bar {
        None => if row.is_known_limit { "known limit" } else { "-" }.to_owned(),
        Some(Bar::UpperLimitAtMost(most)) => format!("limit <= {}", percent(most)),
        Some(Bar::AtMost(most)) => format!("<= {}", percent(most)),
        Some(Bar::AtLeast(least)) => format!(">= {}", percent(least)),
        Some(Bar::Within(from, to)) => format!("{} to {}", percent(from), percent(to)),
    }
}

fn bar(row: &ErrorRate) -> String {
    match row.bar {
        None => promise(row),
        Some(_) => format!("{}: {}", promise(row), states(&[row])),
    }
}

fn of_machine(machine: &Machine) -> Vec<Block> {
    let mut found: Vec<Block> = Block::caption(&machine.caption).into_iter().collect();
    found.extend(apart(&machine.effects, ", all blocks together"));
    let scatter = percent(machine.scatter);
    found.push(Block::text(format!(
        "scatter of a block's ratio of two identical variants: {scatter}{}",
        each("a run", machine.seconds_per_run)
    )));
    found.extend(found_after(&machine.times, "blocks"));
    let mut sections =
        vec![Block::section("Smallest detectable difference on this machine", found)];
    if let Some(live) = &machine.live {
        let mut found: Vec<Block> = apart(&live.effects, "").collect();
        let scatter = percent(live.scatter);
        found.push(Block::text(format!(
            "scatter of a stream's ratio of two identical variants: {scatter}{}",
            each("a stream", live.seconds_per_stream)
        )));
        found.extend(found_after(&live.times, "streams"));
        sections.push(Block::section("The same, switched live", found));
    }
    sections
}

/// Results about each variant.
fn apart(effects: &[(String, String)], over: &str) -> impl Iterator<Item = Block> {
    effects.iter().map(move |(label, effect)| Block::text(format!("{label}{over}: {effect}")))
}

fn each(what: &str, seconds: Option<f64>) -> String {
    seconds.map_or(String::new(), |seconds| format!("; {what} takes {}", time(seconds)))
}

fn found_after(times: &[Detection], what: &str) -> impl Iterator<Item = Block> {
    times.iter().map(move |found| {
        let after = match (found.blocks, found.seconds) {
            (Some(blocks), Some(seconds)) => format!("{blocks} {what}, {}", time(seconds)),
            (Some(blocks), None) => format!("{blocks} {what}"),
            (None, _) => format!("more than a thousand {what}"),
        };
        let change = 100.0 * found.change;
        Block::text(format!("finds a change of {change:.0} % nine times in ten after {after}"))
    })
}

fn time(seconds: f64) -> String {
    duration((seconds * 1e9) as u64)
}

fn conclusion(rates: &[ErrorRate]) -> String {
    let count = |held| rates.iter().filter(|row| row.held == Some(held)).count();
    let (kept, broken, open) =
        (count(PromiseState::Yes), count(PromiseState::No), count(PromiseState::Open));
    let mut text = format!(
        "{kept} of {} promises are kept (intervals: Clopper-Pearson, {CONFIDENCE} %)",
        kept + broken + open
    );
    if open > 0 {
        text += &format!("; {open} need more comparisons");
    }
    if broken > 0 {
        text += &format!("; {broken} BROKEN");
    }
    text
}

fn percent(share: f64) -> String {
    if share.is_nan() { "-".to_owned() } else { format!("{:.2} %", 100.0 * share) }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_results::stats::binomial::Rate;

    #[test]
    fn summary_joins_rows_of_one_promise() {
        let row = |hits, bar: Option<f64>| {
            let rate = Rate { hits, of: 1000 };
            ErrorRate::new("false difference", "D".into(), "N".into(), rate)
                .against(bar.map(Bar::AtMost))
        };
        let rates =
            [row(10, Some(0.05)), row(900, None), row(200, Some(0.05)), row(30, Some(0.05))];
        let data = serde_json::Value::Null;
        let document = document(&rates, None, &data);
        let text = fwdlab_results::document::form::markdown::render(&document);
        let line =
            "| False difference | 3 | 1.00 % to 20.00 % | <= 5.00 % | 2 kept, 1 BROKEN | - |";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("| False difference | 1 | 90.00 % | - | - | - |"), "{text}");
    }
}
