//! Logs of many kinds of runs: that begin before the traffic, warm up, come to rest late,
//! or end among other lines.

use crate::lines::{Entry, entries};
use crate::pkt_gen::{Layout, Log};

/// A log with what is known of it.
#[derive(Clone, Debug)]
pub struct FixtureLog {
    /// Two digits, as in the larger set's names.
    pub number: String,
    /// The text, as pkt-gen would have left it.
    pub text: String,
    /// What its lines say.
    pub expected: Expected,
}

/// What the lines of a log say. Medians were computed by the harness's own shell pipeline
/// and by ministat.
#[derive(Clone, Debug)]
pub struct Expected {
    /// How rates are printed.
    pub layout: Layout,
    /// Lines of the log.
    pub lines: u64,
    /// Packets per second, line by line.
    pub rates_pps: Vec<u64>,
    /// How many of the rates the harness keeps.
    pub kept: usize,
    /// Median of those, of an even number the mean of two.
    pub median: String,
    /// The same with the upper one of two.
    pub upper_median: String,
}

/// All logs of the repository.
#[must_use]
pub fn logs() -> Vec<FixtureLog> {
    entries(include_str!("../fixtures/logs.txt")).iter().map(log).collect()
}

/// `log NUMBER LAYOUT VERSION END`, then lines, medians and rates.
fn log(entry: &Entry<'_>) -> FixtureLog {
    let words: Vec<&str> = entry.rest.split(' ').collect();
    let [number, layout, version, end] = words[..] else { panic!("{}", entry.rest) };
    let [places, medians, rates @ ..] = &entry.body[..] else { panic!("{number} is cut off") };
    let numbers =
        |text: &str| -> Vec<u64> { text.split(' ').filter_map(|word| word.parse().ok()).collect() };
    let (places, gaps) = places.split_once(" but ").unwrap_or((places, ""));
    let ([lines, head], gaps) =
        (numbers(places)[..].try_into().expect("two numbers"), numbers(gaps));
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
    let left = expected.lines - head - line;
    for _ in 0..left.saturating_sub(2) {
        log.noise();
    }
    match left {
        0 => {}
        1 => log.terminated(),
        _ => log.totals(60),
    }
    log.text
}
