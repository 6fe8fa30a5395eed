//! Prints a published block again from the runs' figures.

use super::Block;
use super::printed::{PrintedFigures, same};
use fwdlab_results::stats::ministat::{DataSet, Generation, MinistatError, Options, render};
use std::collections::BTreeSet;

/// Width if the published block has no plot.
const USUAL_WIDTH: usize = 74;
/// Limit on the width of a reprinted plot. No terminal is wider, but a line of a README can have
/// any length.
const WIDTH_MAX: usize = 1000;
/// Limit on pairs of lines compared for the longest common subsequence; larger blocks are compared
/// line by line.
const PAIRS_MAX: usize = 4_000_000;

/// Result of reproducing a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproduction {
    /// For each set of the block, the variant with its figures.
    pub members: Vec<Option<usize>>,
    /// Result of comparing the texts.
    pub outcome: Outcome,
}

/// Result of comparing a published block with ministat's output.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Equal to the byte, except for blanks pasted in place of tabs.
    Exact {
        /// The generations that print it, most recent first.
        generations: Vec<Generation>,
        /// Their output.
        text: String,
    },
    /// Every published line is equal to the byte; the rest of ministat's output was not published.
    Cut {
        /// The generations that print it, most recent first.
        generations: Vec<Generation>,
        /// The published text.
        text: String,
        /// Number of unpublished lines.
        left_out: usize,
    },
    /// Every set has a variant, but no generation prints this text.
    Differs {
        /// The generation with the closest output; the most recent one if several tie.
        generation: Generation,
        /// Its output.
        text: String,
        /// The first difference between the texts.
        first_difference: LineDifference,
        /// Number of common lines, in the same order.
        same_lines: usize,
        /// Number of published lines.
        lines: usize,
    },
    /// No variant has the figures of some sets.
    Unmatched {
        /// Indices of these sets.
        sets: Vec<usize>,
    },
    /// ministat cannot print the figures.
    Unprintable(MinistatError),
}

/// The first line in which two texts differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineDifference {
    /// Line within the block, from 1.
    pub line: usize,
    /// The published line; `None` if the published text has ended.
    pub published: Option<String>,
    /// The computed line; `None` if the computed text has ended.
    pub computed: Option<String>,
}

/// Finds the block's sets among `variants` (name, figures of its runs in published order) by their
/// numbers, and prints the block again by the rules of every generation, with and without `-s`. The
/// sets keep their published names. A block without a plot is compared with the output of `-A`.
pub fn reproduce(block: &Block, variants: &[(&str, &[f64])]) -> Reproduction {
    let members = members(block, variants);
    let sets: Vec<usize> = (0..members.len()).filter(|&set| members[set].is_none()).collect();
    let outcome = if sets.is_empty() {
        print(block, variants, &members)
    } else {
        Outcome::Unmatched { sets }
    };
    Reproduction { members, outcome }
}

/// Replaces every 8 leading blanks of a line with a tab, to undo the effect of pasting.
pub fn with_tabs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while let Some(after) = rest.strip_prefix("        ") {
            out.push('\t');
            rest = after;
        }
        out.push_str(rest);
    }
    out
}

/// Returns the number of lines of `text` after the published ones; `None` if `text` does not begin
/// with these.
fn left_out(published: &str, text: &str) -> Option<usize> {
    let published = published.trim_end_matches('\n');
    let rest = text.strip_prefix(published)?.strip_prefix('\n')?;
    (!published.is_empty()).then(|| rest.lines().count()).filter(|lines| *lines > 0)
}

/// Returns, for each set, a variant with its numbers; preferably one that no other set uses.
fn members(block: &Block, variants: &[(&str, &[f64])]) -> Vec<Option<usize>> {
    let printed: Vec<Option<PrintedFigures>> =
        variants.iter().map(|(_, values)| PrintedFigures::of(values)).collect();
    let mut taken = BTreeSet::new();
    let find = |set: &super::SetLine| {
        let fitting = |index: &usize| {
            printed[*index].as_ref().is_some_and(|printed| {
                printed.n == set.n
                    && same(&set.min, &printed.min)
                    && same(&set.max, &printed.max)
                    && same(&set.average, &printed.average)
                    && printed.median_rule(&set.median).is_some()
            })
        };
        let mut all = (0..printed.len()).filter(fitting);
        let first = all.next()?;
        let member = std::iter::once(first).chain(all).find(|index| !taken.contains(index));
        taken.insert(member.unwrap_or(first));
        Some(member.unwrap_or(first))
    };
    block.sets.iter().map(find).collect()
}

fn print(block: &Block, variants: &[(&str, &[f64])], members: &[Option<usize>]) -> Outcome {
    let sets: Vec<DataSet> = block
        .sets
        .iter()
        .zip(members.iter().flatten())
        .filter_map(|(set, member)| {
            let (name, values) = variants.get(*member)?;
            let name = set.name.clone().unwrap_or_else(|| (*name).to_owned());
            Some(DataSet { name, values: values.to_vec() })
        })
        .collect();
    let published = with_tabs(&block.text);
    let mut exact: Option<(Vec<Generation>, String)> = None;
    let mut cut: Option<(Vec<Generation>, usize)> = None;
    let mut closest: Option<(usize, Generation, String)> = None;
    for generation in Generation::of_freebsd().rev() {
        for separate_bars in [block.separate_bars, !block.separate_bars] {
            let options = Options {
                confidence: block.confidence,
                width: block.width.unwrap_or(USUAL_WIDTH).min(WIDTH_MAX),
                separate_bars,
                no_plot: block.width.is_none(),
                generation,
                ..Options::default()
            };
            let text = match render(&sets, &options) {
                Ok(text) => text,
                Err(error) => return Outcome::Unprintable(error),
            };
            if text == published {
                exact.get_or_insert_with(|| (Vec::new(), text)).0.push(generation);
                break;
            }
            if let Some(left_out) = left_out(&published, &text) {
                cut.get_or_insert_with(|| (Vec::new(), left_out)).0.push(generation);
                break;
            }
            let common = common_lines(&published, &text);
            if closest.as_ref().is_none_or(|(most, ..)| common > *most) {
                closest = Some((common, generation, text));
            }
        }
    }
    if let Some((generations, text)) = exact {
        return Outcome::Exact { generations, text };
    }
    if let Some((generations, left_out)) = cut {
        return Outcome::Cut { generations, text: published, left_out };
    }
    let Some((same_lines, generation, text)) = closest else {
        return Outcome::Unmatched { sets: Vec::new() };
    };
    let first_difference = first_difference(&published, &text);
    let lines = published.lines().count();
    Outcome::Differs { generation, text, first_difference, same_lines, lines }
}

fn first_difference(published: &str, computed: &str) -> LineDifference {
    let (mut published, mut computed) = (published.lines(), computed.lines());
    let mut line = 1;
    loop {
        let (one, other) = (published.next(), computed.next());
        if one != other || one.is_none() {
            let owned = |line: Option<&str>| line.map(str::to_owned);
            return LineDifference { line, published: owned(one), computed: owned(other) };
        }
        line += 1;
    }
}

/// Returns the length of the longest common subsequence of lines.
fn common_lines(one: &str, other: &str) -> usize {
    let (one, other): (Vec<&str>, Vec<&str>) = (one.lines().collect(), other.lines().collect());
    if one.len().saturating_mul(other.len()) > PAIRS_MAX {
        return one.iter().zip(&other).filter(|(one, other)| one == other).count();
    }
    let mut row = vec![0_usize; other.len() + 1];
    for line in &one {
        let mut diagonal = 0;
        for (index, candidate) in other.iter().enumerate() {
            let above = row[index + 1];
            row[index + 1] = if line == candidate { diagonal + 1 } else { above.max(row[index]) };
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::Readme;
    use super::*;

    const VARIANTS: [(&str, &[f64]); 3] = [
        ("a", &[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0]),
        ("b", &[150.0, 400.0, 720.0, 500.0, 930.0]),
        ("c", &[1.0, 2.0, 3.0, 4.0]),
    ];

    /// A README block with the output of `generation` for the first two variants.
    fn readme(generation: Generation, edit: impl Fn(String) -> String) -> Block {
        let sets = VARIANTS[..2].iter().map(|(name, values)| DataSet {
            name: format!("{name} by hand"),
            values: values.to_vec(),
        });
        let options = Options { generation, confidence: 80.0, width: 60, ..Options::default() };
        let text = render(&sets.collect::<Vec<_>>(), &options).unwrap();
        Readme::parse(&format!("```\n{}\n```\n", edit(text))).blocks.remove(0)
    }

    #[test]
    fn reproduce_finds_all_matching_generations() {
        let tabs_lost = |text: String| text.replace('\t', "        ");
        for (generation, expected) in [
            (Generation::Fbsd14, vec![Generation::Fbsd15, Generation::Fbsd14, Generation::Fbsd12]),
            (Generation::Fbsd10, vec![Generation::Fbsd11_0, Generation::Fbsd10]),
        ] {
            let block = readme(generation, tabs_lost);
            let Reproduction { members, outcome } = reproduce(&block, &VARIANTS);
            assert_eq!(members, [Some(0), Some(1)]);
            let Outcome::Exact { generations, .. } = outcome else { panic!("{outcome:?}") };
            assert_eq!(generations, expected);
        }
    }

    /// Returns the numbers of common and published lines, and the first difference.
    fn differs(edit: impl Fn(String) -> String) -> (usize, usize, LineDifference) {
        match reproduce(&readme(Generation::Fbsd14, edit), &VARIANTS).outcome {
            Outcome::Differs { same_lines, lines, first_difference, .. } => {
                (same_lines, lines, first_difference)
            }
            other => panic!("{other:?}"),
        }
    }

    fn without(text: &str, drop: impl Fn(&str) -> bool) -> String {
        text.lines().filter(|line| !drop(line)).flat_map(|line| [line, "\n"]).collect()
    }

    #[test]
    fn reproduce_reports_a_block_without_its_last_line_as_cut() {
        let plot = |line: &str| line.starts_with('|') || line.starts_with("+-");
        for has_plot in [true, false] {
            let is_dropped =
                move |line: &str| line.contains("Student") || (plot(line) && !has_plot);
            let block = readme(Generation::Fbsd14, |text| without(&text, is_dropped));
            let outcome = reproduce(&block, &VARIANTS).outcome;
            let Outcome::Cut { text, left_out, .. } = outcome else { panic!("{outcome:?}") };
            assert_eq!((text, left_out), (with_tabs(&block.text), 1));
        }
    }

    #[test]
    fn reproduce_reports_the_first_edited_line() {
        let whole = readme(Generation::Fbsd14, |text| text).text.lines().count();
        let (same, lines, first) =
            differs(|text| text.replacen("+ b by hand\n", "+ b by hand\n\n", 1));
        assert_eq!((same, lines, first.line), (whole, whole + 1, 3));
        assert_eq!(first.published.as_deref(), Some(""));
        let (same, lines, first) = differs(|text| text.replacen("x a by hand\n", "", 1));
        assert_eq!((same, lines), (whole - 1, whole - 1));
        assert_eq!(first.computed.as_deref(), Some("x a"), "the variant lends its name");
        let (same, lines, first) = differs(|text| text + "foreign\n");
        assert_eq!((same, lines, first.computed), (whole, whole + 1, None));
        let plot = |line: &str| line.starts_with('|') || line.starts_with("+-");
        let block = readme(Generation::Fbsd14, |text| without(&text, plot));
        let outcome = reproduce(&block, &VARIANTS).outcome;
        assert!(matches!(outcome, Outcome::Exact { .. }), "as without a plot: {outcome:?}");
    }

    #[test]
    fn reproduce_names_unmatched_sets() {
        let block = readme(Generation::Fbsd14, |text| text);
        let Reproduction { members, outcome } = reproduce(&block, &VARIANTS[1..]);
        assert_eq!(members, [None, Some(0)]);
        assert_eq!(outcome, Outcome::Unmatched { sets: vec![0] });
    }

    #[test]
    fn with_tabs_replaces_leading_blanks_only() {
        assert_eq!(with_tabs("        a\n    b\n         c        d"), "\ta\n    b\n\t c        d");
    }
}
