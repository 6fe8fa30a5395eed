//! A sender's or receiver's log of the pkt-gen family.

use super::command::Command;
use super::cursor::Cursor;
use super::fault::LogError;
use super::interval::{Form, Interval};
use super::known::{self, Known};
use super::lines::{Line, NumberedLine, keep, lines, newlines, shown, text};
use super::summary::{Speed, Total};
use std::ops::Range;

/// Number of lines that netbenches drops at the beginning of a log.
const DROPPED_FIRST: usize = 15;
/// Number of lines that netbenches drops at the end of a log (`bench-lab-ministat.sh`, unchanged
/// since 2015).
const DROPPED_LAST: usize = 10;

/// One sender's or receiver's log.
///
/// If a line that normally occurs once occurs twice, the first one is used, and the others count as
/// unknown lines.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratorLog {
    /// Number of line feeds, as counted by `wc -l`.
    pub newlines: usize,
    /// Number of lines, including an unterminated last one.
    pub lines: usize,
    /// All intervals, in order.
    pub intervals: Vec<Interval>,
    /// The command line.
    pub command: Option<Command>,
    /// Line of pkt-gen's source that printed the first interval; identifies the version.
    pub version: Option<u32>,
    /// Format of the intervals; `None` without intervals.
    pub form: Option<Form>,
    /// Total of packets.
    pub total: Option<Total>,
    /// Mean rates.
    pub speed: Option<Speed>,
    /// End of the log.
    pub ending: LogEnd,
    /// The sender's line with sources and destinations: `A -> B (mac -> mac)`.
    pub flows_line: Option<String>,
    /// Number of lines of known kinds without figures.
    pub known_noise: usize,
    /// The first lines in which the tool itself reports an error.
    pub errors: Vec<NumberedLine>,
    /// Number of these lines.
    pub error_count: usize,
    /// The first lines of unknown kinds.
    pub unknown: Vec<NumberedLine>,
    /// Number of these lines.
    pub unknown_count: usize,
}

/// End of a log, ignoring blank lines and the shell's echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogEnd {
    /// Totals: a normal end.
    Total,
    /// `Terminated`: killed.
    Terminated,
    /// An interval: truncated.
    Interval,
    /// Anything else.
    Other,
}

impl GeneratorLog {
    /// Reads a log.
    ///
    /// # Errors
    /// [`LogError`] for empty input, for binary data, and for text without any line of pkt-gen.
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

    /// Returns the range of [`GeneratorLog::intervals`] in the lines that netbenches uses: from 16
    /// up to the number of line feeds minus 10. Its script passes a log through `head -n (L - 10) |
    /// tail -n (L - 25)`, with L as counted by `wc -l`; nothing is left of a log of at most 25
    /// lines.
    pub fn kept_range(&self) -> Range<usize> {
        let last = self.newlines.saturating_sub(DROPPED_LAST);
        let before = |line| self.intervals.partition_point(|interval| interval.line <= line);
        if last <= DROPPED_FIRST { 0..0 } else { before(DROPPED_FIRST)..before(last) }
    }

    /// Returns the intervals that netbenches keeps: those of [`GeneratorLog::kept_range`] with a
    /// rate above zero.
    pub fn kept_by_netbenches_rule(&self) -> impl Iterator<Item = &Interval> {
        self.intervals[self.kept_range()].iter().filter(|interval| interval.pps > 0)
    }
}

/// A partially read log.
struct Reader {
    log: GeneratorLog,
    /// True once a line was seen that only pkt-gen or the scripts around it print.
    is_of_the_family: bool,
}

impl Reader {
    fn new(bytes: &[u8]) -> Self {
        let newlines = newlines(bytes);
        let log = GeneratorLog {
            newlines,
            lines: 0,
            // Most lines are intervals, which are at least this long.
            intervals: Vec::with_capacity(newlines.min(bytes.len() / 64)),
            command: None,
            version: None,
            form: None,
            total: None,
            speed: None,
            ending: LogEnd::Other,
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
                self.log.ending = LogEnd::Interval;
                return;
            }
        }
        self.known(line, known::message(stamped.message));
    }

    /// Processes a line of another program, or of pkt-gen's standard output.
    fn plain(&mut self, line: &Line) {
        let log = &mut self.log;
        let ending = if log.command.is_none()
            && let Some(command) = Command::parse(line, b"CMD")
        {
            log.command = Some(command);
            LogEnd::Other
        } else if log.total.is_none()
            && let Some(total) = Total::parse(line)
        {
            log.total = Some(total);
            LogEnd::Total
        } else if log.speed.is_none()
            && let Some(speed) = Speed::parse(line)
        {
            log.speed = Some(speed);
            LogEnd::Total
        } else if log.flows_line.is_none() && is_flows_line(line.bytes) {
            log.flows_line = Some(text(line.bytes));
            LogEnd::Other
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
                log.ending = LogEnd::Other;
            }
            Some(Known::Terminated) => {
                log.known_noise += 1;
                log.ending = LogEnd::Terminated;
            }
            Some(Known::Error) => {
                keep(&mut log.errors, &mut log.error_count, line.number, line.bytes);
                log.ending = LogEnd::Other;
            }
            None => self.unknown(line),
        }
    }

    fn unknown(&mut self, line: &Line) {
        let log = &mut self.log;
        keep(&mut log.unknown, &mut log.unknown_count, line.number, line.bytes);
        log.ending = LogEnd::Other;
    }
}

/// A timestamped line of pkt-gen: `577.690670 receiver_body [1744] reading from ...`.
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
        // A message may be empty; the blank before it is then trimmed.
        let _ = at.eat(b" ");
        let clock_us = seconds * 1_000_000 + microseconds;
        Some(Self { clock_us, function, source_line, message: at.0 })
    }
}

/// True for `198.18.10.1:2000-198.18.10.20 -> 198.19.10.1 (00:07:43:2e:e4:71 ->
/// 90:e2:ba:84:20:38)`.
fn is_flows_line(line: &[u8]) -> bool {
    let mut at = Cursor(line);
    let parts = [at.until(b" -> "), at.until(b" ("), at.until(b" -> ")];
    let addresses =
        parts.iter().all(|part| part.is_some_and(|part| !part.is_empty() && !part.contains(&b' ')));
    addresses && at.0.ends_with(b")") && !at.0.contains(&b' ')
}

#[cfg(test)]
mod tests;
