//! Logs of many kinds of runs: they begin before the traffic, warm up, settle late, or end among
//! other lines.

use crate::lines::{Entry, entries};
use crate::pkt_gen::{Layout, Log};

/// A log with its expected contents.
#[derive(Clone, Debug)]
pub struct FixtureLog {
    /// Two digits, as in the larger set's names.
    pub number: String,
    /// The text, as printed by pkt-gen.
    pub text: String,
    /// Expected contents of its lines.
    pub expected: Expected,
}

/// Expected contents of a log. The harness's own shell pipeline and ministat computed the medians.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Format of the rates.
    pub layout: Layout,
    /// Number of lines in the log.
    pub lines: u64,
    /// Packets per second, line by line.
    pub rates_pps: Vec<u64>,
    /// Number of rates that the harness keeps.
    pub kept: usize,
    /// Median of the kept rates; the mean of the two middle ones of an even number.
    pub median: String,
    /// Median of the kept rates; the upper middle one of an even number.
    pub upper_median: String,
}

/// Returns all logs of the repository.
#[must_use]
pub fn logs() -> Vec<FixtureLog> {
    entries(include_str!("../fixtures/logs.txt")).iter().map(log).collect()
}

/// Parses `log NUMBER LAYOUT VERSION END`, then lines, medians and rates.
fn log(entry: &Entry<'_>) -> FixtureLog {
    let words: Vec<&str> = entry.rest.split(' ').collect();
    let [number, layout, version, end] = words[..] else { panic!("{}", entry.rest) };
    let [positions, medians, rates @ ..] = &entry.body[..] else { panic!("{number} is cut off") };
    let numbers =
        |text: &str| -> Vec<u64> { text.split(' ').filter_map(|word| word.parse().ok()).collect() };
    let (positions, gaps) = positions.split_once(" but ").unwrap_or((positions, ""));
    let ([lines, head], gaps) =
        (numbers(positions)[..].try_into().expect("two numbers"), numbers(gaps));
    let rates: Vec<u64> = rates.iter().flat_map(|line| numbers(line)).collect();
    let medians: Vec<&str> = medians.split(' ').collect();
    let expected = Expected {
        layout: Layout::named(layout),
        lines,
        rates_pps: rates,
        kept: medians[4].parse().expect("a number"),
        median: medians[1].to_owned(),
        upper_median: medians[2].to_owned(),
    };
    let text = text(&expected, number, version, end, (head, &gaps));
    FixtureLog { number: number.to_owned(), text, expected }
}

fn text(
    expected: &Expected,
    number: &str,
    version: &str,
    end: &str,
    (head, gaps): (u64, &[u64]),
) -> String {
    let is_sender = end.starts_with("sender");
    let command = if is_sender {
        "CMD: pkt-gen -f tx -i ix0 -n 1000000000 -l 60 -d 198.19.10.1:2000-198.19.10.100 \
         -D 02:00:00:00:00:01 -s 198.18.10.1:2000-198.18.10.20 -w 4"
    } else {
        "CMD: pkt-gen -f rx -i ix1 -w 4"
    };
    let version = version.parse().expect("a number");
    let mut log = Log::new(&format!("{number}.{end}"), expected.layout, version, command);
    log.head(if is_sender { "ix0" } else { "ix1" }, head as usize - 1);
    let mut line = 0;
    for &rate in &expected.rates_pps {
        while gaps.contains(&line) {
            log.noise();
            line += 1;
        }
        log.rate(rate);
        line += 1;
    }
    let remaining = expected.lines - head - line;
    for _ in 0..remaining.saturating_sub(2) {
        log.noise();
    }
    match remaining {
        0 => {}
        1 => log.terminated(),
        _ => log.totals(60),
    }
    log.text
}
