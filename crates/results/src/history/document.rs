//! The history as a document, and its files.

use super::draw;
use super::minute;
use super::results::{Agreement, Change, Detection, Direction, History, Outlier, SeriesResult};
use crate::document::form::{html, markdown};
use crate::document::judgement::Judgement;
use crate::document::table::{Cell, Digits, Row};
use crate::document::{Block, DetailLevel, Document, Figure, Inline, Remark, Table};
use crate::format::{listed, percent, signed_percent};
use crate::plot::Drawing;
use crate::report::{ReportFile, safe_name};
use crate::text::Tone;
use std::collections::BTreeSet;

/// Version of the JSON fields; raised when an existing field is renamed or changes its meaning.
const VERSION: u32 = 1;

/// Caveat to print with every change.
const CAUTION: &str = "These change points are candidates: run both revisions again in one \
                       experiment before acting on one. Each point is one build.";

/// Maximum number of series that are shown one by one without `all`.
const FEW: usize = 6;
/// Maximum number of changes listed in terminals and in pages that cannot fold.
const LISTED: usize = 50;

impl History {
    /// Builds the document: one line per change, the newest first; then a section with figure,
    /// changes and points for each series that has changes. Figures are drawn, or only named if
    /// `pictures` is false. With `all`, every series has a section.
    pub fn document(&self, pictures: bool, all: bool) -> Document<'_> {
        let mut conclusion = vec![Block::Paragraph(totals(self), Tone::Heading)];
        if self.counts.changes > 0 {
            conclusion.push(Block::remark(Remark::Caution, CAUTION));
        }
        conclusion.extend(Block::notes(&self.notes));
        if !self.agreements.is_empty() {
            let agreements = agreements(&self.agreements);
            conclusion.push(Block::section("Changes on several machines", vec![agreements]));
        }
        let is_short = self.series.len() <= FEW;
        let mut blocks = Vec::new();
        if is_short {
            blocks.push(Block::Where(DetailLevel::All, vec![self.overview()]));
        } else {
            if self.counts.changes > 0 {
                let newest = vec![self.newest()];
                blocks.push(Block::section("What changed, the newest first", newest));
            }
            let overview = Block::section("All series", vec![self.overview()]);
            let overview = if self.counts.changes > 0 { overview.folded() } else { overview };
            blocks.push(Block::Where(DetailLevel::Page, vec![overview]));
        }
        let mut detailed = self.drawn(all);
        // Changed series first.
        detailed.sort_by_key(|(series, _)| !has_story(series));
        blocks.extend(detailed.into_iter().map(|(series, file)| {
            let drawing = match pictures {
                true => draw::drawing(series, self.threshold),
                false => Drawing::default(),
            };
            let figure = Figure { title: series.title.clone(), file: Some(file), drawing };
            let section = Block::section(&series.title, section(series, figure, self.confidence));
            // In a terminal each series has one line, unless `all` is set.
            match is_short || all {
                true => section,
                false => Block::Where(DetailLevel::Page, vec![section]),
            }
        }));
        let single: Vec<String> = match is_short || all {
            true => self.series.iter().filter_map(single_point_line).collect(),
            false => Vec::new(),
        };
        if !single.is_empty() {
            blocks.push(Block::section("Series of one point", vec![Block::list(single)]));
        }
        Document { title: "History".to_owned(), conclusion, blocks, data: self, version: VERSION }
    }

    /// Returns `history.md`, `index.html` and a figure for each series with changes, or for each
    /// series with `all`. The figure of a single series is `history.svg`, otherwise
    /// `history-<title>.svg`.
    pub fn files(&self, all: bool) -> Vec<ReportFile> {
        let page = markdown::render(&self.document(false, all));
        let html = html::render(&self.document(true, all));
        let mut files = vec![
            ReportFile { name: "history.md".into(), bytes: page.into_bytes() },
            ReportFile { name: "index.html".into(), bytes: html.into_bytes() },
        ];
        files.extend(self.drawn(all).into_iter().map(|(series, name)| {
            let drawing = draw::drawing(series, self.threshold);
            ReportFile { name, bytes: drawing.wide.into_bytes() }
        }));
        files
    }

    /// Series that have a section with a figure, and the figure's name. With `all`, or if there are
    /// few series, every series of two or more points; else the series with changes.
    fn drawn(&self, all: bool) -> Vec<(&SeriesResult, String)> {
        let has_section = |series: &SeriesResult| match all || self.series.len() <= FEW {
            true => series.points.len() > 1,
            false => has_story(series),
        };
        self.series.iter().zip(figures(self)).filter(|(series, _)| has_section(series)).collect()
    }

    /// Table of changes, the newest first and undated ones last.
    fn newest(&self) -> Block {
        let mut changes: Vec<(&SeriesResult, &Change)> = self
            .series
            .iter()
            .flat_map(|series| series.changes.iter().map(move |change| (series, change)))
            .collect();
        // Changes of one day: by series, the later one first.
        changes.sort_by(|a, b| {
            let key = |of: &(&SeriesResult, &Change)| (of.0.points[of.1.at].recent, of.1.at);
            key(b).cmp(&key(a)).then_with(|| a.0.title.cmp(&b.0.title))
        });
        Table::of(&changes)
            .words("date", |(series, change)| day(series, change.at))
            .about("day on which the point after the change was measured, else (~) of its source")
            .numbers("effect", |(_, change)| {
                let percent = |ratio: f64| signed_percent(ratio - 1.0, 1);
                let ends = format!("[{}, {}]", percent(change.low), percent(change.high));
                let text = format!("{} {}", percent(change.ratio), ends.replace(" %", ""));
                Cell::Values(text.into(), vec![change.ratio.into()])
            })
            .words("between", |(series, change)| Cell::text(between(series, change)))
            .words("holds", |(_, change)| match change.holds_among_all {
                true => Cell::text("among all"),
                false => Cell::text("alone"),
            })
            .about(
                "among all: at a level that holds for all series together; --fail-on counts these",
            )
            .numbers("level", |(series, change)| {
                let segment = series.segments.iter().find(|segment| segment.first == change.at);
                Cell::text(
                    segment.map_or(String::new(), |segment| series.quantity.print(segment.level)),
                )
            })
            .page_only()
            .words("series", |(series, _)| Cell::text(&series.title))
            .set(|table| {
                for (row, (_, change)) in table.rows.iter_mut().zip(&changes) {
                    row.tone = tone(change.direction);
                }
                table.brief = Some(LISTED);
                table.rest = "{} older ones: --format html has them";
                table.flexible = table.columns.len() - 1;
            })
            .block()
    }

    /// Table of the current state of each series.
    fn overview(&self) -> Block {
        Table::of(&self.series)
            .words("series", |series| Cell::text(&series.title))
            .numbers("points", |series| Cell::count(series.points.len()))
            .words("last", |series| match series.points.iter().rposition(|p| !p.patched) {
                Some(at) => Cell::text(series.points[at].revision.as_str()),
                None => Cell::None,
            })
            .words("date", |series| day(series, series.points.len().saturating_sub(1)))
            .numbers("median there", |series| {
                let last = series.points.iter().rfind(|point| !point.patched);
                Cell::text(last.map_or("-".to_owned(), |point| series.quantity.print(point.median)))
            })
            .numbers("changes", |series| Cell::count(series.changes.len()))
            .words("in short", |series| Cell::text(state(series)))
            .set(|table| {
                for (row, series) in table.rows.iter_mut().zip(&self.series) {
                    row.is_same = series.changes.is_empty();
                    row.name.clone_from(&series.title);
                    row.judgement = Some(judgement(series));
                }
            })
            .block()
    }
}

/// Returns true for a series with changes.
fn has_story(series: &SeriesResult) -> bool {
    !series.changes.is_empty()
}

/// A series of one point in a line. `None` if the series is longer.
fn single_point_line(series: &SeriesResult) -> Option<String> {
    let [point] = series.points.as_slice() else { return None };
    let caption = match series.caption.as_str() {
        "" => String::new(),
        caption => format!(" ({})", caption.trim_end_matches('.')),
    };
    let (title, rate) = (&series.title, series.quantity.print(point.median));
    let date = point.date.as_deref().map(minute).filter(|date| *date != point.name());
    let at = date.map_or(String::new(), |date| format!(", {date}"));
    Some(format!("{title}: {rate} at {}{at}{caption}", point.name()))
}

/// The day of a point.
fn day(series: &SeriesResult, at: usize) -> Cell {
    series.points.get(at).and_then(|point| point.day()).map_or(Cell::None, Cell::text)
}

/// The revisions around a change, with what distinguishes the two points if both have one revision.
fn between(series: &SeriesResult, change: &Change) -> String {
    let before = series.points.iter().find(|point| point.name() == change.before);
    match (before, series.points.get(change.at)) {
        (Some(before), Some(after)) if !change.same_revision => {
            format!("{} -> {}", before.revision, after.revision)
        }
        _ => format!("{} -> {}", change.before, change.after),
    }
}

/// Test result of a series, by the change that `--fail-on` reads.
fn judgement(series: &SeriesResult) -> Judgement {
    match (series.latest_change(), &series.detection) {
        (Some(change), _) if change.direction == Direction::Worse => Judgement::Fail,
        (Some(_), _) | (None, Detection::Done { can_tell: true, .. }) => Judgement::Pass,
        (None, _) => Judgement::Skip(state(series).to_owned()),
    }
}

/// The state of a series in two words.
fn state(series: &SeriesResult) -> &'static str {
    match series.detection {
        _ if !series.changes.is_empty() => "changed",
        Detection::TooShort { .. } => "too short",
        Detection::NothingForwarded => "not looked for",
        Detection::Done { can_tell: true, .. } => "no change",
        Detection::Done { can_tell: false, .. } => "can't tell",
    }
}

/// Names of the figures, all different, in the order of the series.
fn figures(history: &History) -> Vec<String> {
    if history.series.len() == 1 {
        return vec!["history.svg".to_owned()];
    }
    let mut used = BTreeSet::new();
    history
        .series
        .iter()
        .map(|series| {
            let stem = safe_name(&series.title);
            let numbered = |n: usize| match n {
                1 => format!("history-{stem}.svg"),
                n => format!("history-{stem}-{n}.svg"),
            };
            let names = (1..).map(numbered);
            let mut unused = names.filter(|name| used.insert(name.to_ascii_lowercase()));
            unused.next().unwrap_or_default()
        })
        .collect()
}

fn section(series: &SeriesResult, figure: Figure, confidence: f64) -> Vec<Block> {
    let mut blocks: Vec<Block> = Block::caption(&series.caption).into_iter().collect();
    blocks.extend(series.warnings.iter().map(|text| Block::remark(Remark::Warning, text)));
    let odd =
        series.apart.iter().map(|apart| Block::remark(Remark::Caution, outlier_advice(apart)));
    blocks.extend(odd);
    blocks.push(Block::text(format!("{}.", points(series))));
    blocks.push(Block::Figure(figure));
    if !series.changes.is_empty() {
        blocks.push(changes(series, confidence));
    }
    blocks.push(Block::text(format!("In short: {}.", status(series))));
    let table = Table::of(&series.points)
        .words("revision", |point| Cell::text(point.name()))
        .words("measured", |point| {
            point
                .date
                .as_deref()
                .map_or(Cell::None, |date| Cell::Values(minute(date).into(), vec![date.into()]))
        })
        .keys(&["date"])
        .numbers("runs", |point| Cell::count(point.n))
        .numbers("median", |point| series.quantity.cell(point.median))
        .numbers("minimum", |point| series.quantity.cell(point.min))
        .numbers("maximum", |point| series.quantity.cell(point.max))
        .words("", |point| {
            let shown = if point.patched { "patched" } else { "" };
            Cell::Values(shown.into(), vec![point.patched.into()])
        })
        .keys(&["patched"])
        .hidden("series", |_| Cell::text(&series.title))
        .set(|table| {
            table.name = Some("points");
            table.first_keys = &["series"];
        });
    blocks.push(Block::Where(DetailLevel::Page, vec![table.block()]));
    blocks
}

fn changes(series: &SeriesResult, confidence: f64) -> Block {
    let remarks = |change: &Change| {
        let other = match change.same_revision {
            true => "; one revision, so something else has changed",
            false => "",
        };
        let alone = match change.holds_among_all {
            true => "",
            false => "; not shown among all series",
        };
        Cell::text(format!("{}; to be confirmed{alone}{other}", word(change.direction)))
    };
    Table::of(&series.changes)
        .words("between", |change| Cell::text(&change.before))
        .keys(&["before"])
        .words("and", |change| Cell::text(&change.after))
        .keys(&["after"])
        .numbers("effect", |change| Cell::number(change.ratio, Digits::Ratio(1)))
        .keys(&["ratio"])
        .words(format!("{} % interval", confidence.trunc()), |change| {
            let percent = |ratio: f64| signed_percent(ratio - 1.0, 1);
            let text = format!("{} to {}", percent(change.low), percent(change.high));
            Cell::Values(text.into(), vec![change.low.into(), change.high.into()])
        })
        .keys(&["low", "high"])
        .numbers("points", |change| {
            let text = format!("{} + {}", change.n_before, change.n_after);
            Cell::Values(text.into(), vec![change.n_before.into(), change.n_after.into()])
        })
        .keys(&["n_before", "n_after"])
        .words("", remarks)
        .keys(&["remarks"])
        .hidden("series", |_| Cell::text(&series.title))
        .with_words(|change: &Change, row: &mut Row| {
            row.name = format!("{} -> {}", change.before, change.after);
            let [before, after] = &change.run_again;
            row.words = vec![
                change.sentence.clone(),
                format!("to be confirmed: run {before} and {after} again"),
            ];
            if !change.holds_among_all {
                row.words.push("not shown at a level that holds for all series".to_owned());
            }
            row.tone = tone(change.direction);
        })
        .set(|table| {
            table.name = Some("changes");
            table.in_words = true;
            table.first_keys = &["series"];
        })
        .block()
}

fn agreements(agreements: &[Agreement]) -> Block {
    Table::of(agreements)
        .words("after", |agreement| Cell::text(&agreement.before))
        .words("up to", |agreement| Cell::text(&agreement.after))
        .words("direction", |agreement| Cell::text(word(agreement.direction)))
        .words("machines", |agreement| Cell::text(agreement.machines.join("; ")))
        .with_words(|agreement: &Agreement, row: &mut Row| {
            row.name = format!("{} machines change together", agreement.machines.len());
            row.words.push(agreement_sentence(agreement));
            row.tone = tone(agreement.direction);
        })
        .set(|table| table.in_words = true)
        .block()
}

/// Totals in one sentence.
fn totals(history: &History) -> Inline {
    let counts = history.counts;
    let plural =
        |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let mut parts = Vec::new();
    if history.stores > 0 || history.files == 0 {
        parts.push(plural(history.stores, "store", "stores"));
    }
    if history.files > 0 {
        parts.push(plural(history.files, "file of other tools", "files of other tools"));
    }
    parts.extend([
        plural(counts.series, "series", "series"),
        match counts.changes {
            0 => "no changes found".to_owned(),
            n => format!(
                "{} ({} better, {} worse)",
                plural(n, "change", "changes"),
                counts.better,
                counts.worse
            ),
        },
    ]);
    if counts.suppressed > 0 {
        let size = percent(history.threshold, 1);
        parts.push(format!("{} below {size} not listed", counts.suppressed));
    }
    if counts.apart > 0 {
        parts.push(plural(counts.apart, "outlier", "outliers"));
    }
    if counts.cant_tell > 0 {
        parts.push(format!("{} series scatter too widely to tell", counts.cant_tell));
    }
    if counts.too_short > 0 {
        parts.push(format!("{} series too short to look for changes", counts.too_short));
    }
    format!("{}.", parts.join("; ")).into()
}

/// Number of points, and the first and the last one.
fn points(series: &SeriesResult) -> String {
    let patched = series.points.iter().filter(|point| point.patched).count();
    let mut text = match &series.points[..] {
        [] => "no points".to_owned(),
        [one] => format!("1 point, {}", one.name()),
        [first, .., last] => {
            let n = series.points.len();
            format!("{n} points, {} to {}", first.name(), last.name())
        }
    };
    if patched > 0 {
        text += &format!(" ({patched} with a patch, not part of the series)");
    }
    if let Detection::Done { noise, .. } = series.detection {
        text += &format!("; scatter between points {}", percent(noise, 1));
    }
    text
}

/// Advice about an outlier.
fn outlier_advice(apart: &Outlier) -> String {
    let size = signed_percent(apart.ratio - 1.0, 1);
    let doubt = if apart.is_latest {
        "the latest point, perhaps the first after a change"
    } else {
        "one point is no level"
    };
    format!("{} is an outlier, {size} from its neighbours ({doubt}): run it again.", apart.point)
}

/// Current level of the series, and the limits of the search.
fn status(series: &SeriesResult) -> String {
    let now = series.segments.last().map(|segment| {
        let since = format!("since {} ({} points)", segment.first_point, segment.n);
        format!("{} {since}", series.quantity.print(segment.level))
    });
    let small = match series.suppressed {
        0 => String::new(),
        1 => "; 1 smaller change not listed".to_owned(),
        n => format!("; {n} smaller changes not listed"),
    };
    match (series.detection, now) {
        (Detection::TooShort { points, need }, _) => {
            let last = series.points.iter().rfind(|point| !point.patched);
            let last = last.map_or(String::new(), |point| {
                format!("; the last is {} at {}", series.quantity.print(point.median), point.name())
            });
            format!("too short to look for changes: {points} of at least {need} points{last}")
        }
        (Detection::NothingForwarded, _) => {
            "not looked for changes: nothing was forwarded at some revision".to_owned()
        }
        (Detection::Done { detectable, can_tell, .. }, Some(now)) if series.changes.is_empty() => {
            let smallest = percent(detectable, 1);
            match can_tell {
                true => format!(
                    "no change: {now}{small}; a step of {smallest} halfway would have been found \
                     nine times in ten"
                ),
                false => format!(
                    "can't tell: {now}{small}; the points scatter so widely that a step below \
                     {smallest} halfway could have been missed"
                ),
            }
        }
        (Detection::Done { .. }, now) => format!("now {}{small}", now.unwrap_or_default()),
    }
}

/// Changes that several machines share.
fn agreement_sentence(agreement: &Agreement) -> String {
    let place = if agreement.before == agreement.after {
        format!("at {}", agreement.after)
    } else {
        format!("after {}, up to {}", agreement.before, agreement.after)
    };
    format!("{place}, for the {}: {}", word(agreement.direction), listed(&agreement.machines))
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Better => "better",
        Direction::Worse => "worse",
    }
}

fn tone(direction: Direction) -> Tone {
    match direction {
        Direction::Better => Tone::Better,
        Direction::Worse => Tone::Worse,
    }
}
