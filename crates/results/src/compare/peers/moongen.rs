//! MoonGen and libmoon: lines of the counters, as text or as CSV.
//!
//! A counter prints a line per second and a last line with the average of the seconds, without the
//! first one. The last line is the run; the lines before it are its parts. In CSV it is recognised
//! by its value, the average. Counters that receive are read; `--only "NAME TX"` selects a sending
//! one. Source: `lua/stats.lua` of libmoon/libmoon.

use super::content::Content;
use super::{Benchmark, Fault, Format, Reader, Reading, Request, excerpt};
use crate::quantity::Quantity;
use std::borrow::Cow;

pub(super) const READER: Reader =
    Reader { format: Format::MoonGen, file: "MoonGen's counters", recognises, read };

const HEADER: &str =
    "Time,Device,Direction,PacketRate,Mbit,MbitWithFraming,TotalPackets,TotalBytes";
const COLUMNS: [&str; 2] = ["packets", "bits"];
/// Relative difference of a rounded average.
const ROUNDING: f64 = 1e-6;

/// A line of a counter.
#[derive(Clone, Debug)]
struct Line {
    number: usize,
    /// Name and direction: `Device: id=0 RX`.
    counter: String,
    mpps: f64,
    mbit: f64,
    /// True for the last line of a run. `None` in CSV, which does not mark it.
    is_last: Option<bool>,
    /// Packets since the start of the run, in CSV.
    total: f64,
    /// Number of headers before the line, in CSV.
    session: usize,
}

fn recognises(content: &Content<'_>) -> bool {
    let text = content.text();
    text.lines().any(|line| line.trim_end() == HEADER || plain(&uncoloured(line), 0).is_some())
}

fn read(content: &Content<'_>, request: Request<'_>) -> Result<Reading, Fault> {
    let column = request.column.unwrap_or(COLUMNS[0]);
    if !COLUMNS.contains(&column) {
        return Err(Fault::no_column(column, &COLUMNS));
    }
    let text = content.text();
    let is_csv = text.lines().any(|line| line.trim_end() == HEADER);
    let (mut lines, mut session) = (Vec::new(), 0);
    for (number, line) in (1..).zip(text.lines()) {
        match is_csv {
            true if line.trim_end() == HEADER => session += 1,
            true if line.trim().is_empty() => {}
            true => lines.push(row(line, number, session)?),
            false => lines.extend(plain(&uncoloured(line), number)),
        }
    }
    let is_cut = !text.is_empty() && !text.ends_with('\n');
    if let (true, Some(last)) = (is_cut, text.lines().last())
        && (is_csv || last.contains("] RX") || last.contains("] TX"))
    {
        let next = "write the output again, whole";
        return Err(Fault::at(text.lines().count(), "the file ends within a line", next));
    }
    let mut reading = Reading::default();
    let mut counters: Vec<(&str, Vec<&Line>)> = Vec::new();
    for line in &lines {
        match counters.iter_mut().find(|(name, _)| *name == line.counter) {
            Some((_, lines)) => lines.push(line),
            None => counters.push((&line.counter, vec![line])),
        }
    }
    let mut parts = 0;
    for (name, lines) in counters {
        let mut seconds: Vec<&Line> = Vec::new();
        let mut values = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let is_last = line.is_last.unwrap_or_else(|| {
                // The counter starts again with the next line, or the file ends.
                let restarts =
                    |next: &&Line| next.total < line.total || next.session != line.session;
                lines.get(at + 1).is_none_or(restarts)
            });
            if !is_last {
                seconds.push(line);
                continue;
            }
            if line.is_last.is_none() {
                check_average(line, &seconds)?;
            }
            parts += seconds.len();
            seconds.clear();
            values.push(if column == "bits" { line.mbit * 1e6 } else { line.mpps * 1e6 });
        }
        if let Some(open) = seconds.first() {
            let what = format!("the run of `{}` has no last line with its average", excerpt(name));
            let next = "let the program end by itself, or remove the lines of this run";
            return Err(Fault::at(open.number, what, next));
        }
        // The average of less than three seconds is not a number.
        let (good, short): (Vec<f64>, Vec<f64>) =
            values.into_iter().partition(|value| value.is_finite());
        let kind = "runs that were too short for an average";
        reading.unusable(Some(name.to_owned()), kind, short.len());
        let (quantity, what) = match (column, name.ends_with("RX")) {
            ("bits", true) => (Quantity::BIT_RATE, "received"),
            ("bits", false) => (Quantity::BIT_RATE, "sent"),
            (_, true) => (Quantity::PACKET_RATE, "received"),
            (_, false) => (Quantity::PACKET_RATE, "sent"),
        };
        reading.benchmarks.push(Benchmark {
            is_secondary: name.ends_with("TX"),
            values: good,
            ..Benchmark::new(name, quantity, what)
        });
    }
    reading.parts = (parts > 0).then_some(("seconds", parts));
    Ok(reading)
}

/// The line without colours of a terminal.
fn uncoloured(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut parts = line.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += part.split_once('m').map_or(part, |(_, rest)| rest);
    }
    Cow::Owned(plain)
}

/// Parses `[NAME] RX: 14.88 Mpps, 7619 Mbit/s (...)`, and with `(StdDev 0.01)` the last line.
fn plain(line: &str, number: usize) -> Option<Line> {
    let rest = line.trim().strip_prefix('[')?;
    let at = rest.find("] RX: ").or_else(|| rest.find("] TX: "))?;
    let (name, direction) = (&rest[..at], &rest[at + 2..at + 4]);
    let mut words = rest[at + 6..].split_whitespace();
    let mpps = words.next()?.parse().ok()?;
    let is_last = rest[at + 6..].contains("(StdDev ");
    if is_last {
        words.nth(1);
    }
    if words.next()? != "Mpps," {
        return None;
    }
    let mbit = words.next()?.parse().ok()?;
    let counter = format!("{name} {direction}");
    Some(Line { number, counter, mpps, mbit, is_last: Some(is_last), total: 0.0, session: 0 })
}

/// Parses a line of CSV. Names of devices have no comma.
fn row(line: &str, number: usize, session: usize) -> Result<Line, Fault> {
    let fields: Vec<&str> = line.trim_end().split(',').collect();
    let [_, name, direction, mpps, mbit, _, total, _] = fields[..] else {
        let what = format!("{} fields instead of 8", fields.len());
        return Err(Fault::at(number, what, "write the output again, whole"));
    };
    let parse = |field: &str| {
        let field = field.trim();
        // The sign of `nan` depends on the machine.
        let number_text = if field == "-nan" { "nan" } else { field };
        number_text.parse::<f64>().map_err(|_| {
            let what = format!("`{}` is not a number", excerpt(field));
            Fault::at(number, what, "write the output again, whole")
        })
    };
    Ok(Line {
        number,
        counter: format!("{name} {}", direction.to_uppercase()),
        mpps: parse(mpps)?,
        mbit: parse(mbit)?,
        is_last: None,
        total: parse(total)?,
        session,
    })
}

/// Checks that the last line of a run in CSV has the average of its seconds without the first one.
fn check_average(last: &Line, seconds: &[&Line]) -> Result<(), Fault> {
    let averaged = seconds.get(1..).unwrap_or_default();
    let average = averaged.iter().map(|line| line.mpps).sum::<f64>() / averaged.len() as f64;
    let is_average = match average.is_finite() {
        true => (last.mpps - average).abs() <= ROUNDING * average.abs(),
        false => !last.mpps.is_finite(),
    };
    if is_average {
        return Ok(());
    }
    let what = format!(
        "the last line of `{}` has not the average of its seconds, so the run did not end",
        excerpt(&last.counter)
    );
    Err(Fault::at(last.number, what, "let the program end by itself, or remove the lines"))
}
