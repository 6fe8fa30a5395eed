//! The history for a terminal, also a narrow one.

use super::{CAUTION, totals};
use crate::compare::{Line, Tone};
use crate::history::results::{
    Agreement, Apart, Change, Detection, Direction, History, SeriesResult,
};
use crate::report::format::{listed, percent, signed_percent};
use crate::report::terminal::Text;
use fwdlab_model::units::format_pps;

/// Each series with its changes, then what several have in common and the
/// totals, as lines of at most `width` columns (words longer than that stay
/// whole).
pub fn text(history: &History, width: usize) -> Vec<Line> {
    let mut lines = Lines { width, lines: Vec::new() };
    for series in &history.series {
        show(&mut lines, series);
        lines.empty();
    }
    for agreement in &history.agreements {
        lines.add(tone(agreement.direction), &together(agreement), "  ");
    }
    for note in &history.notes {
        lines.add(Tone::Doubt, &format!("note: {note}"), "  ");
    }
    lines.add(Tone::Heading, &totals(history), "  ");
    if history.counts.changes > 0 {
        lines.add(Tone::Doubt, CAUTION, "  ");
    }
    lines.lines
}

/// Lines so far.
struct Lines {
    width: usize,
    lines: Vec<Line>,
}

impl Lines {
    /// A paragraph; its lines after the first, and the first if `text` begins
    /// with blanks, are indented.
    fn add(&mut self, tone: Tone, text: &str, indent: &str) {
        let begin = &text[..text.len() - text.trim_start().len()];
        let mut part = Text::new(self.width.saturating_sub(begin.len()));
        part.wrapped(text.trim_start(), indent);
        let lines =
            part.lines.into_iter().map(|text| Line { text: format!("{begin}{text}"), tone });
        self.lines.extend(lines);
    }

    fn empty(&mut self) {
        self.lines.push(Line { text: String::new(), tone: Tone::Plain });
    }
}

fn show(lines: &mut Lines, series: &SeriesResult) {
    lines.add(Tone::Heading, &series.title, "  ");
    if !series.caption.is_empty() {
        lines.add(Tone::Doubt, &format!("  {}", series.caption), "  ");
    }
    lines.add(Tone::Plain, &format!("  {}", points(series)), "  ");
    for warning in &series.warnings {
        lines.add(Tone::Doubt, &format!("  warning: {warning}"), "  ");
    }
    for change in &series.changes {
        let line = format!("  {} -> {}: {}", change.before, change.after, change.sentence);
        lines.add(tone(change.direction), &line, "  ");
        lines.add(Tone::Plain, &format!("    {}", again(change)), "  ");
    }
    for apart in &series.apart {
        lines.add(Tone::Doubt, &format!("  {}", odd(apart)), "  ");
    }
    lines.add(Tone::Plain, &format!("  {}", status(series)), "  ");
}

/// How many points, from where to where.
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
        text += &format!(" ({patched} with a patch, beside the line)");
    }
    if let Detection::Done { noise, .. } = series.detection {
        text += &format!("; scatter between points {}", percent(noise, 1));
    }
    text
}

/// What to do about a change.
fn again(change: &Change) -> String {
    format!("to be confirmed: run {} and {} again", change.run_again[0], change.run_again[1])
}

/// What to do about a point that lies apart.
pub(super) fn odd(apart: &Apart) -> String {
    let size = signed_percent(apart.ratio - 1.0, 1);
    let doubt = if apart.is_latest {
        "the latest point, perhaps the first after a change"
    } else {
        "one point is no level"
    };
    format!("{} lies apart, {size} from its neighbours ({doubt}): run it again", apart.point)
}

/// Where the series stands now, and what was not looked for.
pub(super) fn status(series: &SeriesResult) -> String {
    let now = series.segments.last().map(|segment| {
        let since = format!("since {} ({} points)", segment.first_point, segment.n);
        format!("{} {since}", format_pps(segment.level))
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
                format!("; the last is {} at {}", format_pps(point.median), point.name())
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

/// What several machines have in common.
fn together(agreement: &Agreement) -> String {
    let machines = agreement.machines.len();
    let place = if agreement.before == agreement.after {
        format!("at {}", agreement.after)
    } else {
        format!("after {}, up to {}", agreement.before, agreement.after)
    };
    let direction = match agreement.direction {
        Direction::Better => "better",
        Direction::Worse => "worse",
    };
    format!(
        "{machines} machines change together {place}, for the {direction}: {}",
        listed(&agreement.machines)
    )
}

fn tone(direction: Direction) -> Tone {
    match direction {
        Direction::Better => Tone::Better,
        Direction::Worse => Tone::Worse,
    }
}
