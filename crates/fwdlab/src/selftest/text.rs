//! The self-test's tables, for a terminal and for Markdown.

use super::detection::Detection;
use super::machine::Machine;
use super::{Bar, CONFIDENCE, Held, Measured};
use crate::terminal::{HEADING, columns, duration, styled, wrap};

/// Rates and what follows from them, for a terminal of `width` columns.
pub(crate) fn text(rates: &[Measured], machine: Option<&Machine>, width: usize) -> String {
    let mut out = String::new();
    for question in questions(rates) {
        out += &format!("{}\n", styled(question, HEADING));
        let rows: Vec<&Measured> = rates.iter().filter(|row| row.question == question).collect();
        out += &table(&rows, width);
        out.push('\n');
    }
    if let Some(machine) = machine {
        out += &machine_text(machine, width);
    }
    out += &wrap(&conclusion(rates), width, "");
    out
}

/// The same as Markdown.
pub(crate) fn markdown(rates: &[Measured], machine: Option<&Machine>) -> String {
    let mut out = String::new();
    for question in questions(rates) {
        out += &format!("**{}**\n\n", capitalised(question));
        out += "| design | runs scatter | rate | 95 % interval | bar | classic practice |\n";
        out += "|---|---|---:|---|---|---:|\n";
        for row in rates.iter().filter(|row| row.question == question) {
            let [design, noise, rate, interval, bar, classic] = cells(row);
            out += &format!("| {design} | {noise} | {rate} | {interval} | {bar} | {classic} |\n");
        }
        out.push('\n');
    }
    if let Some(machine) = machine {
        out += &machine_text(machine, usize::MAX);
    }
    out + &conclusion(rates) + "\n"
}

/// The questions in their order, each once.
fn questions(rates: &[Measured]) -> Vec<&str> {
    let mut questions: Vec<&str> = Vec::new();
    for row in rates {
        if !questions.contains(&row.question.as_str()) {
            questions.push(&row.question);
        }
    }
    questions
}

/// Columns as wide as their widest cell; lines that are too long are wrapped.
fn table(rows: &[&Measured], width: usize) -> String {
    let heading = ["design", "runs scatter", "rate", "interval", "bar", "classic"];
    let all: Vec<[String; 6]> = std::iter::once(heading.map(str::to_owned))
        .chain(rows.iter().map(|row| cells(row)))
        .collect();
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| all.iter().map(|cells| columns(&cells[column])).max().unwrap_or(0))
        .collect();
    let line = |cells: &[String; 6]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - columns(cell))))
            .collect();
        wrap(&format!("  {}", padded.join("  ").trim_end()), width, "      ")
    };
    all.iter().map(line).collect()
}

fn cells(row: &Measured) -> [String; 6] {
    let interval = row.interval;
    let blocks = row.blocks.map_or(String::new(), |blocks| format!(", {blocks:.1} blocks"));
    [
        format!("{}{blocks}", row.design),
        row.noise.clone(),
        percent(row.share),
        format!("[{}, {}]", percent(interval.low), percent(interval.high)),
        bar(row),
        row.classic.map_or("-".to_owned(), percent),
    ]
}

fn bar(row: &Measured) -> String {
    let Some(bar) = row.bar else { return "-".to_owned() };
    let promised = match bar {
        Bar::UpperLimitAtMost(most) => format!("limit <= {}", percent(most)),
        Bar::AtMost(most) => format!("<= {}", percent(most)),
        Bar::AtLeast(least) => format!(">= {}", percent(least)),
        Bar::Within(from, to) => format!("{} to {}", percent(from), percent(to)),
    };
    match row.held {
        Some(Held::Yes) => format!("{promised}: kept"),
        Some(Held::No) => format!("{promised}: BROKEN"),
        _ => format!("{promised}: open"),
    }
}

fn machine_text(machine: &Machine, width: usize) -> String {
    let mut out = format!("{}\n", styled("what this machine can tell apart", HEADING));
    if !machine.caption.is_empty() {
        out += &wrap(&machine.caption, width, "");
    }
    out += &apart(&machine.effects, ", all blocks together", width);
    let scatter = percent(machine.scatter);
    let line = format!("  scatter of a block's ratio of two identical variants: {scatter}");
    out += &wrap(&(line + &each("a run", machine.seconds_per_run)), width, "    ");
    out += &found_after(&machine.times, "blocks", width);
    if let Some(live) = &machine.live {
        out += &format!("\n{}\n", styled("the same, switched live", HEADING));
        out += &apart(&live.effects, "", width);
        let scatter = percent(live.scatter);
        let line = format!("  scatter of a stream's ratio of two identical variants: {scatter}");
        out += &wrap(&(line + &each("a stream", live.seconds_per_stream)), width, "    ");
        out += &found_after(&live.times, "streams", width);
    }
    out + "\n"
}

/// What was found about each variant.
fn apart(effects: &[(String, String)], over: &str, width: usize) -> String {
    effects
        .iter()
        .map(|(label, effect)| wrap(&format!("  {label}{over}: {effect}"), width, "    "))
        .collect()
}

fn each(what: &str, seconds: Option<f64>) -> String {
    seconds.map_or(String::new(), |seconds| format!("; {what} takes {}", time(seconds)))
}

fn found_after(times: &[Detection], what: &str, width: usize) -> String {
    times
        .iter()
        .map(|found| {
            let after = match (found.blocks, found.seconds) {
                (Some(blocks), Some(seconds)) => format!("{blocks} {what}, {}", time(seconds)),
                (Some(blocks), None) => format!("{blocks} {what}"),
                (None, _) => format!("more than a thousand {what}"),
            };
            let change = 100.0 * found.change;
            let line = format!("  finds a change of {change:.0} % nine times in ten after {after}");
            wrap(&line, width, "    ")
        })
        .collect()
}

fn time(seconds: f64) -> String {
    duration((seconds * 1e9) as u64)
}

fn conclusion(rates: &[Measured]) -> String {
    let count = |held| rates.iter().filter(|row| row.held == Some(held)).count();
    let (kept, broken, open) = (count(Held::Yes), count(Held::No), count(Held::Open));
    let mut text = format!(
        "{kept} of {} promises are kept (intervals: Clopper-Pearson, {CONFIDENCE} %)",
        kept + broken + open
    );
    if open > 0 {
        text += &format!("; {open} need more comparisons to tell");
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
