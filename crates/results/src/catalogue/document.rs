//! The catalogue as a document: a page with links, or a table for terminals.

use super::{Catalogue, Entry, MachineRates};
use crate::document::form::{html, markdown};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, DetailLevel, Document, Figure, Inline, Table};
use crate::format::{number_of, runs_of, signed_percent};
use crate::history::{minute, short_revision};
use crate::report::ReportFile;
use crate::text::Tone;
use fwdlab_model::units::format_pps;

/// Version of the output fields; raised when an existing field is renamed or changes its meaning.
const VERSION: u32 = 1;
/// Number of stores listed on terminals, and on pages that can't fold.
const LISTED: usize = 25;
/// Order of a store's fields in machine-readable output.
const FIRST_KEYS: &[&str] = &[
    "date",
    "verdicts",
    "largest_ratio",
    "largest_variant",
    "fastest_pps",
    "runs",
    "runs_planned",
    "doubts",
    "is_distrusted",
    "variants",
    "testbed",
    "machine",
    "interface",
    "title",
    "store",
];

impl Catalogue {
    /// Returns the document: the rates of machines by firewall, and every store. `link` returns the
    /// address of a store's report page, if it has one.
    pub fn document<'a>(
        &'a self,
        title: &str,
        link: &dyn Fn(&Entry) -> Option<String>,
    ) -> Document<'a> {
        let mut blocks = vec![self.stores(link)];
        let machines = self.machines();
        if machines.machines.len() > 1 {
            let rates = |at: usize| {
                move |machine: &MachineRates| match &machine.rates[at] {
                    Some((pps, _)) => Cell::Number(pps / 1e6, Digits::Decimals(2), ""),
                    None => Cell::None,
                }
            };
            let mut table = Table::of(&machines.machines)
                .words("machine, interface", |machine: &MachineRates| Cell::text(&machine.name));
            for (at, firewall) in machines.firewalls.iter().enumerate() {
                table = table.numbers(firewall.clone(), rates(at));
            }
            let what = format!(
                "Newest median of each, Mpps, {}. Software, settings and dates differ: what stands \
                 here is no comparison.",
                machines.family
            );
            let mut section = vec![Block::text(what), table.block()];
            section.extend(machines.draw().map(|drawing| {
                let title = "Machines by firewall".to_owned();
                Block::Figure(Figure { title, file: Some("machines.svg".to_owned()), drawing })
            }));
            let section = Block::section("Machines by firewall", section);
            // All firewalls don't fit on a terminal.
            blocks.push(match self.firewall {
                Some(_) => section,
                None => Block::Where(DetailLevel::Page, vec![section]),
            });
            blocks.reverse();
        }
        let mut conclusion = vec![Block::Paragraph(self.totals().into(), Tone::Heading)];
        conclusion.extend(Block::notes(&self.unreadable));
        Document { title: title.to_owned(), conclusion, blocks, data: self, version: VERSION }
    }

    /// Returns `index.html` and `README.md`, which link the reports of all stores in directories
    /// below, and the figure.
    pub fn files(&self, title: &str) -> Vec<ReportFile> {
        let page = |name: &'static str| {
            move |entry: &Entry| Some(format!("{}/{name}", percent_encode(&entry.place)))
        };
        let html = html::render(&self.document(title, &page("index.html")));
        let readme = markdown::render(&self.document(title, &page("README.md")));
        let file = |name: &str, text: String| ReportFile {
            name: name.to_owned(),
            bytes: text.into_bytes(),
        };
        let machines = self.machines();
        let drawn = machines.draw().filter(|_| machines.machines.len() > 1);
        let mut files = vec![file("index.html", html), file("README.md", readme)];
        files.extend(drawn.map(|drawing| file("machines.svg", drawing.wide)));
        files
    }

    fn totals(&self) -> String {
        let sum = |of: fn(&Entry) -> usize| self.entries.iter().map(of).sum::<usize>();
        let stores = match self.entries.len() == self.of {
            true => number_of(self.of, "store"),
            false => format!("{} of {}", self.entries.len(), number_of(self.of, "store")),
        };
        let verdicts = [
            (sum(|e| e.verdicts.better), "better"),
            (sum(|e| e.verdicts.worse), "worse"),
            (sum(|e| e.verdicts.equivalent), "equivalent"),
            (sum(|e| e.verdicts.inconclusive), "inconclusive"),
            (sum(|e| e.verdicts.unanswered), "without an answer"),
        ];
        let all = number_of(verdicts.iter().map(|(n, _)| n).sum(), "comparison");
        let verdicts = verdicts.iter().filter(|(n, _)| *n > 0);
        let verdicts: Vec<String> = verdicts.map(|(n, what)| format!("{n} {what}")).collect();
        let verdicts = match verdicts.is_empty() {
            true => String::new(),
            false => format!("; {all}: {}", verdicts.join(", ")),
        };
        let distrusted = match sum(|entry| usize::from(entry.is_distrusted)) {
            0 => String::new(),
            n => format!("; {} not to be trusted", number_of(n, "store")),
        };
        format!("{stores}{verdicts}{distrusted}.")
    }

    /// A table with one row per store, newest first. Terminals get the first rows, with fewer
    /// columns.
    fn stores(&self, link: &dyn Fn(&Entry) -> Option<String>) -> Block {
        let listed = &self.entries[..self.entries.len().min(LISTED)];
        let title = |entry: &Entry| match link(entry) {
            Some(to) => Cell::text(Inline::default().link(&entry.title, to)),
            None => Cell::text(&entry.title),
        };
        let brief = Table::of(listed)
            .words("date", day)
            .words("verdicts", |entry: &Entry| {
                let mark = if entry.is_distrusted { "! " } else { "" };
                Cell::text(format!("{mark}{}", entry.verdicts.signs()))
            })
            .numbers("largest", |entry| largest(entry, false))
            .numbers("fastest", fastest)
            .words("store", |entry| Cell::text(&entry.place))
            .set(|table| set_rows(table, listed))
            .block();
        let mut brief = vec![brief];
        let more = self.entries.len() - listed.len();
        if more > 0 {
            brief.push(Block::text(format!(
                "{more} older ones: --filter and --machine choose, --format html and csv have all"
            )));
        }
        let legend = "verdicts: + better, - worse, = equivalent, ? inconclusive or without an answer, ! not to be trusted; largest: the \
                      largest effect that was found; ~ day of the software, > software newer than that day";
        brief.push(Block::text(legend));
        let whole = Table::of(&self.entries)
            .words("title", title)
            .keys(&["title"])
            .words("date", time)
            .keys(&["date"])
            .about("time (UTC) at which the first run began, else day (~) of the software that was measured, or (>) one that it is newer than")
            .words("revision", |entry: &Entry| match &entry.revision {
                Some(revision) => {
                    Cell::Values(short_revision(revision).into(), vec![revision.as_str().into()])
                }
                None => Cell::None,
            })
            .words("verdicts", |entry: &Entry| Cell::text(entry.verdicts.words()))
            .words("doubts", doubts)
            .keys(&["doubts", "is_distrusted"])
            .about("recorded runs with a warning, and if the numbers can't be trusted for one")
            .words("largest effect", |entry| largest(entry, true))
            .keys(&["largest_ratio", "largest_variant"])
            .about("largest effect that was found, and the variant that has it")
            .numbers("fastest", fastest)
            .keys(&["fastest_pps"])
            .about("largest median rate of any variant")
            .numbers("runs", |entry| {
                let (recorded, planned) = (entry.runs_recorded, entry.runs_planned);
                let text = match recorded == planned {
                    true => recorded.to_string(),
                    false => format!("{recorded}/{planned}"),
                };
                Cell::Values(text.into(), vec![recorded.into(), planned.into()])
            })
            .keys(&["runs", "runs_planned"])
            .hidden("variants", |entry| Cell::count(entry.variants))
            .words("testbed", |entry| Cell::text(&entry.testbed))
            .words("store", |entry| Cell::text(&entry.place))
            .words("machine", |entry| Cell::text(&entry.facts.machine))
            .words("interface", |entry| Cell::text(&entry.facts.interface))
            .set(|table| {
                table.name = Some("stores");
                table.first_keys = FIRST_KEYS;
                table.brief = Some(LISTED);
                table.rest = "and {} older ones: index.html has all, --filter and --machine choose";
                set_rows(table, &self.entries);
                table.flexible = 1;
            })
            .block();
        let table = Block::Brief { brief, whole: vec![whole] };
        let has_dates = self.entries.iter().any(|entry| !entry.sorted.0.is_empty());
        let order = if has_dates { "the newest first" } else { "by name" };
        Block::section(format!("Experiments, {order}"), vec![table])
    }
}

/// Sets the properties that both tables of stores share.
fn set_rows(table: &mut Table, entries: &[Entry]) {
    table.flexible = table.columns.len() - 1;
    for (row, entry) in table.rows.iter_mut().zip(entries) {
        row.is_same = entry.largest.is_none();
        row.name.clone_from(&entry.place);
        row.tone = match entry.verdicts {
            _ if entry.is_distrusted => Tone::Doubt,
            tally if tally.worse > 0 => Tone::Worse,
            tally if tally.better > 0 => Tone::Better,
            _ => Tone::Plain,
        };
    }
}

fn day(entry: &Entry) -> Cell {
    let made = || entry.made.as_ref().map(|made| format!("~{made}"));
    let newer = || entry.newer_than.as_ref().map(|than| format!(">{than}"));
    match &entry.date {
        Some(date) => {
            let day = date.get(..10).unwrap_or(date).to_owned();
            Cell::Values(day.into(), vec![date.as_str().into()])
        }
        None => made().or_else(newer).map_or(Cell::None, Cell::text),
    }
}

/// The start time to the minute, or the day as in [`day`].
fn time(entry: &Entry) -> Cell {
    match &entry.date {
        Some(date) => Cell::Values(minute(date).into(), vec![date.as_str().into()]),
        None => day(entry),
    }
}

/// The largest effect, optionally with its variant.
fn largest(entry: &Entry, with_variant: bool) -> Cell {
    entry.largest.as_ref().map_or(Cell::None, |largest| {
        let effect = signed_percent(largest.ratio - 1.0, 1);
        let text = if with_variant { format!("{effect} {}", largest.variant) } else { effect };
        Cell::Values(text.into(), vec![largest.ratio.into(), largest.variant.as_str().into()])
    })
}

/// The warnings of the runs, in words.
fn doubts(entry: &Entry) -> Cell {
    let runs = format!("{} of {}", entry.runs_in_doubt, runs_of(entry.runs_recorded));
    let text = match (entry.is_distrusted, entry.runs_in_doubt) {
        (true, _) => Inline::default().strong("NOT TO BE TRUSTED").text(format!(", {runs}")),
        (false, 0) => "none".into(),
        (false, _) => runs.into(),
    };
    Cell::Values(text, vec![entry.runs_in_doubt.into(), entry.is_distrusted.into()])
}

fn fastest(entry: &Entry) -> Cell {
    let rates = entry.rates.iter().map(|rate| rate.median);
    let fastest = rates.fold(f64::NEG_INFINITY, f64::max);
    match fastest.is_finite() {
        true => Cell::Values(format_pps(fastest).into(), vec![fastest.into()]),
        false => Cell::None,
    }
}

/// Percent-encodes a path for a link.
fn percent_encode(path: &str) -> String {
    let mut encoded = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' => {
                encoded.push(char::from(byte));
            }
            byte => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encode_escapes_reserved_characters() {
        assert_eq!(percent_encode("a b/c#1?%/d.e"), "a%20b/c%231%3F%25/d.e");
        assert_eq!(percent_encode("größe"), "gr%C3%B6%C3%9Fe");
    }
}
