//! One sender's or receiver's log of the pkt-gen family.

use super::command::Command;
use super::cursor::Cursor;
use super::fault::LogError;
use super::interval::{Form, Interval};
use super::known::{self, Known};
use super::lines::{Line, NumberedLine, keep, lines, newlines, shown, text};
use super::summary::{Speed, Total};
use std::ops::Range;

/// What netbenches leaves out: so many lines at the beginning,
const DROPPED_FIRST: usize = 15;
/// ... and so many at the end of a log (`bench-lab-ministat.sh`, unchanged since 2015).
const DROPPED_LAST: usize = 10;

/// One sender's or receiver's log.
///
/// Where a line that stands once in a log stands twice, the first counts, and
/// the others are unknown lines.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratorLog {
    /// Line feeds: what `wc -l` says.
    pub newlines: usize,
    /// Lines, an unterminated last one included.
    pub lines: usize,
    /// Every interval, in order.
    pub intervals: Vec<Interval>,
    /// The command line.
    pub command: Option<Command>,
    /// Line of pkt-gen's source that printed the first interval: tells versions apart.
    pub version: Option<u32>,
    /// What the intervals look like; none without one.
    pub form: Option<Form>,
    /// Packets in all.
    pub total: Option<Total>,
    /// Mean rates.
    pub speed: Option<Speed>,
    /// How it ends.
    pub ending: Ending,
    /// The sender's line of what goes where: `A -> B (mac -> mac)`.
    pub flows_line: Option<String>,
    /// Lines of known kinds that carry no figure.
    pub known_noise: usize,
    /// The first lines in which the tool itself reports an error.
    pub errors: Vec<NumberedLine>,
    /// How many such lines there are.
    pub error_count: usize,
    /// The first lines of no known kind.
    pub unknown: Vec<NumberedLine>,
    /// How many such lines there are.
    pub unknown_count: usize,
}

/// With what a log ends, blank lines and the shell's echo left aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// With its totals, in order.
    Total,
    /// Killed: `Terminated`.
    Terminated,
    /// With an interval: cut off.
    Interval,
    /// With anything else.
    Other,
}

impl GeneratorLog {
    /// Reads a log.
    ///
    /// # Errors
    /// [`LogError`] for nothing at all, for binary data, and for text in which
    /// no line is of pkt-gen.
    pub fn parse(bytes: &[u8]) -> Result<Self, LogError> {
        LogError::unless_text(bytes)?;
        let mut reader = Reader::new(bytes);
        let mut first = None;
        for line in lines(bytes) {
            first = first.or((!line.bytes.is_empty()).then_some(line.bytes));
            reader.read(&line);
        }
        let mut log = reader.log;
        if !reader.is_of_the_family && log.intervals.is_empty() {
            let first = first.map(shown).unwrap_or_default();
            return Err(LogError::Foreign { wanted: "pkt-gen", lines: log.lines, first });
        }
        log.version = log.intervals.first().map(|interval| interval.version);
        log.form = log.intervals.first().map(|first| Form {
            layout: first.layout(),
            units: log.intervals.iter().any(|interval| !interval.exact),
            averaged: log.intervals.iter().any(|interval| interval.averaged.is_some()),
        });
        Ok(log)
    }

    /// Which of [`GeneratorLog::intervals`] lie in the lines that netbenches
    /// looks at: 16 up to the number of line feeds less 10. Its script passes a
    /// log through `head -n (L - 10) | tail -n (L - 25)`, L being what `wc -l`
    /// says; of a log of at most 25 lines nothing is left.
    pub fn kept_range(&self) -> Range<usize> {
        let last = self.newlines.saturating_sub(DROPPED_LAST);
        let before = |line| self.intervals.partition_point(|interval| interval.line <= line);
        if last <= DROPPED_FIRST { 0..0 } else { before(DROPPED_FIRST)..before(last) }
    }

    /// The intervals that netbenches keeps: of those in
    /// [`GeneratorLog::kept_range`] the ones with a rate above zero.
    pub fn kept_by_netbenches_rule(&self) -> impl Iterator<Item = &Interval> {
        self.intervals[self.kept_range()].iter().filter(|interval| interval.pps > 0)
    }
}

/// A log as far as it is read.
struct Reader {
    log: GeneratorLog,
    /// A line was seen that only pkt-gen or the scripts around it print.
    is_of_the_family: bool,
}

impl Reader {
    fn new(bytes: &[u8]) -> Self {
        let newlines = newlines(bytes);
        let log = GeneratorLog {
            newlines,
            lines: 0,
            // Most lines are intervals, and those are not shorter than this.
            intervals: Vec::with_capacity(newlines.min(bytes.len() / 64)),
            command: None,
            version: None,
            form: None,
            total: None,
            speed: None,
            ending: Ending::Other,
            flows_line: None,
            known_noise: 0,
            errors: Vec::new(),
            error_count: 0,
            unknown: Vec::new(),
            unknown_count: 0,
        };
        Self { log, is_of_the_family: false }
    }

    fn read(&mut self, line: &Line) {
        self.log.lines = line.number;
        if line.is_too_long() {
            return self.unknown(line);
        }
        match Stamped::parse(line) {
            Some(stamped) => self.stamped(line, &stamped),
            None => self.plain(line),
        }
    }

    fn stamped(&mut self, line: &Line, stamped: &Stamped) {
        self.is_of_the_family = true;
        if stamped.function == b"main_thread" {
            let Stamped { clock_us, source_line, message, .. } = *stamped;
            let interval = Interval::parse(line.number, clock_us, source_line, Cursor(message));
            if let Some(interval) = interval {
                self.log.intervals.push(interval);
                self.log.ending = Ending::Interval;
                return;
            }
        }
        self.known(line, known::message(stamped.message));
    }

    /// A line of another program, or of pkt-gen's standard output.
    fn plain(&mut self, line: &Line) {
        let log = &mut self.log;
        let ending = if log.command.is_none()
            && let Some(command) = Command::parse(line, b"CMD")
        {
            log.command = Some(command);
            Ending::Other
        } else if log.total.is_none()
            && let Some(total) = Total::parse(line)
        {
            log.total = Some(total);
            Ending::Total
        } else if log.speed.is_none()
            && let Some(speed) = Speed::parse(line)
        {
            log.speed = Some(speed);
            Ending::Total
        } else if log.flows_line.is_none() && is_flows_line(line.bytes) {
            log.flows_line = Some(text(line.bytes));
            Ending::Other
        } else {
            return self.known(line, known::plain(line));
        };
        log.ending = ending;
        self.is_of_the_family = true;
    }

    fn known(&mut self, line: &Line, known: Option<Known>) {
        let log = &mut self.log;
        match known {
            Some(Known::Quiet) => log.known_noise += 1,
            Some(Known::Noise) => {
                log.known_noise += 1;
                log.ending = Ending::Other;
            }
            Some(Known::Terminated) => {
                log.known_noise += 1;
                log.ending = Ending::Terminated;
            }
            Some(Known::Error) => {
                keep(&mut log.errors, &mut log.error_count, line.number, line.bytes);
                log.ending = Ending::Other;
            }
            None => self.unknown(line),
        }
    }

    fn unknown(&mut self, line: &Line) {
        let log = &mut self.log;
        keep(&mut log.unknown, &mut log.unknown_count, line.number, line.bytes);
        log.ending = Ending::Other;
    }
}

/// A line of pkt-gen's own: `577.690670 receiver_body [1744] reading from ...`.
struct Stamped<'a> {
    clock_us: u64,
    function: &'a [u8],
    source_line: u32,
    message: &'a [u8],
}

impl<'a> Stamped<'a> {
    fn parse(line: &Line<'a>) -> Option<Self> {
        let mut at = Cursor(line.bytes);
        let seconds = at.number().filter(|&seconds| seconds < 1000)?;
        at.eat(b".")?;
        let before = at.0.len();
        let microseconds = at.number()?;
        (before - at.0.len() == 6).then_some(())?;
        at.eat(b" ")?;
        let function = if at.eat(b"main_thread [").is_some() {
            b"main_thread"
        } else {
            at.until(b" [").filter(|name| !name.is_empty() && !name.contains(&b' '))?
        };
        let source_line = u32::try_from(at.number()?).ok()?;
        at.eat(b"]")?;
        // A message may be empty; then the blank before it is trimmed away.
        let _ = at.eat(b" ");
        let clock_us = seconds * 1_000_000 + microseconds;
        Some(Self { clock_us, function, source_line, message: at.0 })
    }
}

/// `198.18.10.1:2000-198.18.10.20 -> 198.19.10.1 (00:07:43:2e:e4:71 -> 90:e2:ba:84:20:38)`.
fn is_flows_line(line: &[u8]) -> bool {
    let mut at = Cursor(line);
    let parts = [at.until(b" -> "), at.until(b" ("), at.until(b" -> ")];
    let addresses =
        parts.iter().all(|part| part.is_some_and(|part| !part.is_empty() && !part.contains(&b' ')));
    addresses && at.0.ends_with(b")") && !at.0.contains(&b' ')
}

#[cfg(test)]
mod tests;
