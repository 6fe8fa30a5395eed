//! ministat output quoted in a README.

use serde::Serialize;
use std::fmt;

/// Symbols of the sets.
const SYMBOLS: &str = "x+*%#@O";

/// A block of ministat output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    /// Line of the README on which the block begins, from 1.
    pub line: usize,
    /// The nearest text above it, or the README's title.
    pub heading: String,
    /// The text as published, without trailing blank lines.
    pub text: String,
    /// The names of the sets in its legend.
    pub legends: Vec<String>,
    /// The lines of its table.
    pub sets: Vec<SetLine>,
    /// Width in cells between the borders of its plot; `None` if it has no plot.
    pub width: Option<usize>,
    /// True if the plot has a line of bars for each set (`-s`).
    pub separate_bars: bool,
    /// Confidence of its tests in percent; 95 if not stated.
    pub confidence: f64,
}

/// A line of the table, numbers as printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetLine {
    /// Symbol of the set.
    pub symbol: char,
    /// Its name in the legend; `None` if that line is missing.
    pub name: Option<String>,
    /// Number of values.
    pub n: usize,
    /// Smallest value.
    pub min: String,
    /// Largest value.
    pub max: String,
    /// Median, by the rule of its generation.
    pub median: String,
    /// Mean.
    pub average: String,
    /// Standard deviation.
    pub stddev: String,
    /// The published comparison with the first set.
    pub difference: Option<Difference>,
}

/// Published result of a test, numbers as printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Difference {
    /// "No difference proven".
    NotProven,
    /// "Difference".
    Proven {
        /// Mean of this set minus mean of the first set.
        change: String,
        /// Half the width of its interval.
        error: String,
        /// The change in percent of the first set's mean, without the `%` sign; empty if the line
        /// is missing.
        percent: String,
        /// Half the width of its interval.
        percent_error: String,
    },
}

/// Shortened quotation: `No difference proven`, `Difference 5.5058% +/- 0.71459%`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Difference::NotProven => f.write_str("No difference proven"),
            Difference::Proven { change, error, percent, .. } if percent.is_empty() => {
                write!(f, "Difference {change} +/- {error}")
            }
            Difference::Proven { percent, percent_error, .. } => {
                write!(f, "Difference {percent}% +/- {percent_error}%")
            }
        }
    }
}

impl Block {
    /// Parses the blocks in a fence whose first line is `line` of the README: one per table.
    pub(super) fn parse(line: usize, heading: &str, lines: &[&str]) -> Vec<Block> {
        let mut starts = vec![0];
        let mut in_table = false;
        for (index, line) in lines.iter().enumerate() {
            in_table |= set_line(line).is_some();
            // The first set's legend after a table begins another block.
            if in_table && line.starts_with("x ") && set_line(line).is_none() {
                starts.push(index);
                in_table = false;
            }
        }
        let ends = starts.iter().skip(1).copied().chain([lines.len()]);
        starts
            .iter()
            .zip(ends)
            .filter_map(|(&start, end)| Block::of(line + start, heading, lines.get(start..end)?))
            .collect()
    }

    fn of(line: usize, heading: &str, lines: &[&str]) -> Option<Block> {
        let end = lines.iter().rposition(|line| !line.trim().is_empty())? + 1;
        let lines = &lines[..end];
        let mut block = Block {
            line,
            heading: heading.to_owned(),
            text: lines.iter().flat_map(|line| [line, "\n"]).collect(),
            legends: Vec::new(),
            sets: Vec::new(),
            width: lines.iter().find_map(|line| border(line)),
            separate_bars: lines.iter().filter(|line| is_bar(line)).count() > 1,
            confidence: lines.iter().find_map(|line| confidence(line)).unwrap_or(95.0),
        };
        let mut legend = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            if let Some(mut set) = set_line(line) {
                set.difference = difference(&lines[index + 1..]);
                let named = legend.iter().find(|(symbol, _)| *symbol == set.symbol);
                set.name = named.map(|(_, name): &(char, String)| name.clone());
                block.sets.push(set);
            } else if block.sets.is_empty()
                && let Some(entry) = legend_line(line)
            {
                legend.push(entry);
            }
        }
        block.legends = legend.into_iter().map(|(_, name)| name).collect();
        (!block.sets.is_empty()).then_some(block)
    }
}

/// Parses `x name`.
fn legend_line(line: &str) -> Option<(char, String)> {
    let symbol = line.chars().next().filter(|&c| SYMBOLS.contains(c))?;
    let name = line.get(1..)?.strip_prefix(' ')?;
    (!name.trim().is_empty()).then(|| (symbol, name.to_owned()))
}

/// Parses `x   5   1189795   1200125   1199682   1197806.6   4489.3479`.
fn set_line(line: &str) -> Option<SetLine> {
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    let [symbol, n, numbers @ ..] = &words[..] else { return None };
    let numbers: &[&str; 5] = numbers.try_into().ok()?;
    let mut characters = symbol.chars();
    let symbol = characters.next().filter(|&c| SYMBOLS.contains(c))?;
    let all_numbers = numbers.iter().all(|number| number.parse::<f64>().is_ok());
    let [min, max, median, average, stddev] = numbers.map(str::to_owned);
    (characters.next().is_none() && all_numbers).then_some(SetLine {
        symbol,
        name: None,
        n: n.parse().ok()?,
        min,
        max,
        median,
        average,
        stddev,
        difference: None,
    })
}

/// Parses the test result on the lines that follow a set's own line.
fn difference(lines: &[&str]) -> Option<Difference> {
    let mut lines = lines.iter().take_while(|line| set_line(line).is_none());
    let verdict = lines.find(|line| confidence(line).is_some())?;
    if verdict.trim_start().starts_with("No difference") {
        return Some(Difference::NotProven);
    }
    let mut amounts = lines.map_while(|line| {
        let (change, error) = line.trim().split_once(" +/- ")?;
        let amount = |text: &str| text.strip_suffix('%').unwrap_or(text).to_owned();
        Some((amount(change), amount(error)))
    });
    let (change, error) = amounts.next()?;
    let (percent, percent_error) = amounts.next().unwrap_or_default();
    Some(Difference::Proven { change, error, percent, percent_error })
}

/// Parses the confidence in `Difference at 95.0% confidence` and its negation.
fn confidence(line: &str) -> Option<f64> {
    let line = line.trim();
    let rest = line.strip_prefix("Difference at ");
    let rest = rest.or_else(|| line.strip_prefix("No difference proven at "))?;
    rest.strip_suffix("% confidence")?.parse().ok()
}

/// Returns the number of cells between the corners of a plot's border.
fn border(line: &str) -> Option<usize> {
    let inner = line.trim_end().strip_prefix('+')?.strip_suffix('+')?;
    (inner.len() >= 2 && inner.bytes().all(|byte| byte == b'-')).then_some(inner.len())
}

/// Returns true for a bar line. Bars mark an average with `A`; lines of points never contain one.
fn is_bar(line: &str) -> bool {
    let inner = line.trim_end().strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.is_some_and(|inner| {
        inner.contains('A') && inner.chars().all(|c| matches!(c, ' ' | '|' | '_' | 'M' | 'A'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
x one file
+ another
+----------+
|x  x   x +|
| |_MA__|  |
|        A |
+----------+
    N           Min           Max        Median           Avg        Stddev
x   3             1             8             4     4.3333333     3.5118846
+  10           nan            10            10            10             0
Difference at 99.5% confidence
        5.66667 +/- 5.6
        130.769% +/- 129%
        (Student's t, pooled s = 2.48328)

";

    fn parse(text: &str) -> Vec<Block> {
        Block::parse(7, "IPv4:", &text.lines().collect::<Vec<_>>())
    }

    #[test]
    fn parse_reads_all_parts_of_a_block() {
        let blocks = parse(TEXT);
        assert_eq!(blocks.len(), 1);
        let block = &blocks[0];
        assert_eq!((block.line, block.heading.as_str()), (7, "IPv4:"));
        assert_eq!(block.legends, ["one file", "another"]);
        assert_eq!((block.width, block.separate_bars, block.confidence), (Some(10), true, 99.5));
        assert!(block.text.ends_with("2.48328)\n"), "{:?}", block.text);
        assert_eq!(block.sets[0].difference, None);
        assert_eq!(block.sets[0].name.as_deref(), Some("one file"));
        let SetLine { n, min, difference, .. } = &block.sets[1];
        assert_eq!((*n, min.as_str()), (10, "nan"));
        let expected = Difference::Proven {
            change: "5.66667".into(),
            error: "5.6".into(),
            percent: "130.769".into(),
            percent_error: "129".into(),
        };
        assert_eq!(difference.as_ref(), Some(&expected));
        assert_eq!(expected.to_string(), "Difference 130.769% +/- 129%");
    }

    #[test]
    fn parse_splits_two_tables_in_a_fence() {
        let blocks = parse(&TEXT.repeat(2));
        assert_eq!(blocks.iter().map(|block| block.line).collect::<Vec<_>>(), [7, 7 + 15]);
        assert_eq!(blocks[0].text, blocks[1].text);
    }

    #[test]
    fn parse_tolerates_missing_parts() {
        let without = |drop: fn(&str) -> bool| {
            let kept: Vec<&str> = TEXT.lines().filter(|line| !drop(line)).collect();
            parse(&kept.join("\n")).remove(0)
        };
        let no_plot = without(|line| line.starts_with('|') || line.starts_with("+-"));
        assert_eq!((no_plot.width, no_plot.sets.len()), (None, 2));
        let no_legend = without(|line| line == "x one file");
        assert_eq!(no_legend.sets[0].name, None);
        assert_eq!(no_legend.sets[1].name.as_deref(), Some("another"));
        let no_test = without(|line| line.starts_with("Difference"));
        assert_eq!(no_test.sets[1].difference, None);
        assert!(parse("no\ntable").is_empty());
    }
}
