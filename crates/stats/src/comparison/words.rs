//! Wording of a comparison: a single function prints it completely.

use super::{Builds, Capacity, Comparison, Estimate, Layout, Method, Scope, Verdict};
use crate::power::MDE_POWER;
use std::fmt;

/// One line: effect, interval, p, sizes, minimum detectable effect, verdict.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.digits();
        let percent = |ratio: f64| signed_percent(ratio - 1.0, digits);
        write!(
            f,
            "{} [{}, {}] at {} %",
            percent(self.ratio),
            percent(self.low),
            percent(self.high),
            self.confidence
        )?;
        if self.is_joint() {
            f.write_str(" together")?;
        }
        write!(f, ", {}", p_value("p", self.p))?;
        if self.family > 1 {
            let adjusted = p_value("adjusted", self.p_adjusted);
            write!(f, " ({adjusted} for {} comparisons, {})", self.family, self.adjustment)?;
        }
        let (what, blocks) = match self.layout {
            Layout::Unblocked => ("runs", "without blocks".to_owned()),
            Layout::Blocks => ("runs", format!("in {} blocks", self.blocks)),
            Layout::Pairs => ("slices", format!("in {} pairs", self.blocks)),
            Layout::Streams => ("slices", format!("in {} streams", self.blocks)),
        };
        write!(f, ", n = {} + {} {what} {blocks}", self.n_a, self.n_b)?;
        if let Some(builds) = &self.builds {
            write!(f, " of {} + {} builds", builds.a, builds.b)?;
        }
        if self.left_out > 0 {
            write!(f, " ({} without partner left out)", self.left_out)?;
        }
        write!(
            f,
            ", MDE {} at {:.0} % power, {}, {}: {}",
            self.mde_text(digits),
            100.0 * MDE_POWER,
            self.method_text(),
            self.scope,
            self.qualified_verdict()
        )
    }
}

impl Comparison {
    /// Returns true if the intervals of a family hold simultaneously.
    pub fn is_joint(&self) -> bool {
        self.joint_confidence != self.confidence
    }

    /// Returns the verdict, qualified by the margin.
    pub fn qualified_verdict(&self) -> String {
        let margin = signed_percent(self.margin, 1);
        let margin = margin.trim_start_matches('+');
        let verdict = match (self.verdict(), &self.doubtful) {
            (Verdict::Equivalent, _) => format!("equivalent within {margin}"),
            (found @ (Verdict::Better | Verdict::Worse), _) if self.is_within_margin() => {
                format!("{found}, but within {margin}")
            }
            (found @ (Verdict::Better | Verdict::Worse), _) if self.is_beyond_margin() => {
                format!("{found} by more than {margin}")
            }
            (found @ (Verdict::Better | Verdict::Worse), _) if !self.excludes_no_change() => {
                format!("{found}, size open")
            }
            (found, Some(doubtful)) => format!("{found}: {doubtful}"),
            (found, None) => match self.capacity {
                Some(capacity) if self.is_within_margin() && !capacity.is_within_margin => {
                    format!("{found} (the rate is within {margin}, the capacity isn't shown to be)")
                }
                _ => found.to_string(),
            },
        };
        // Starts differ: a single start only represents itself.
        match self.scope {
            Scope::ThisStart => format!("{verdict}, this start"),
            Scope::AcrossStarts | Scope::Listed => verdict,
        }
    }

    /// Returns the method, with the word for values that are no rates.
    pub fn method_text(&self) -> String {
        let text = self.method.to_string();
        match self.is_smaller_better {
            false => text,
            true => text.replace("log rates", "log values"),
        }
    }

    /// Returns the minimum detectable effect.
    pub fn mde_text(&self, digits: usize) -> String {
        signed_percent(self.mde, digits).trim_start_matches('+').to_owned()
    }

    /// Returns the secondary results in one line; `None` if there are none.
    pub fn beside_sentence(&self) -> Option<String> {
        let digits = self.digits();
        let sentences: Vec<String> = [&self.beside, &self.robust]
            .into_iter()
            .flatten()
            .map(|estimate| estimate.sentence(digits))
            .collect();
        let capacity =
            self.capacity.map(|Capacity { ratio, low, high, unequal_steadiness, .. }| {
                let percent = |ratio: f64| signed_percent(ratio - 1.0, digits);
                let text =
                    format!("capacity: {} [{}, {}]", percent(ratio), percent(low), percent(high));
                match unequal_steadiness {
                    Some(share) => {
                        format!("{text}, not equally steady: rate over capacity {}", percent(share))
                    }
                    None => text,
                }
            });
        let sentences = sentences.into_iter().chain(capacity).chain(self.builds_sentence());
        let sentences: Vec<String> = sentences.collect();
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }

    /// Returns the scatter of builds of one revision, and the difference of exactly these builds;
    /// `None` without builds.
    pub fn builds_sentence(&self) -> Option<String> {
        self.builds.as_ref().map(|builds| builds.sentence(self.digits()))
    }

    /// Returns the decimals of percent that match the width of the interval.
    fn digits(&self) -> usize {
        match self.high - self.low {
            width if width < 0.002 => 3,
            width if width < 0.2 => 2,
            _ => 1,
        }
    }
}

impl Builds {
    fn sentence(&self, digits: usize) -> String {
        let percent = |ratio: f64| signed_percent(ratio, digits).replace('+', "");
        let Builds { scatter, scatter_of_runs, .. } = self;
        let these = self.these.sentence(digits);
        format!(
            "builds of one revision scatter by {} (standard deviation; their runs alone would by \
             {}); these very builds, {these}",
            percent(*scatter),
            percent(*scatter_of_runs),
        )
    }
}

impl Estimate {
    fn sentence(&self, digits: usize) -> String {
        let percent = |ratio: f64| signed_percent(ratio - 1.0, digits);
        let interval = match self.interval {
            Some((low, high)) => format!(" [{}, {}]", percent(low), percent(high)),
            None => ", too few runs for an interval".to_owned(),
        };
        format!("{}: {}{interval}, {}", self.method, percent(self.ratio), p_value("p", self.p))
    }
}

impl Method {
    /// Returns the method for figures from a list, without a claim that the order was drawn at
    /// random.
    fn of_list(self) -> Method {
        match self {
            Method::Exact { assignments } => Method::Permutation { assignments },
            Method::MonteCarlo { draws, seed } => Method::SampledPermutation { draws, seed },
            other => other,
        }
    }
}

impl Comparison {
    /// Returns the comparison for figures from a list, without claims about starts or a random
    /// order.
    pub fn of_list(self) -> Comparison {
        let beside = self.beside.map(|other| Estimate { method: other.method.of_list(), ..other });
        Comparison { scope: Scope::Listed, method: self.method.of_list(), beside, ..self }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Exact { assignments } => {
                write!(f, "exact randomisation ({assignments} assignments)")
            }
            Method::MonteCarlo { draws, seed } => {
                write!(f, "randomisation ({draws} assignments drawn, seed {seed})")
            }
            Method::Permutation { assignments } => {
                write!(f, "exact permutation within blocks ({assignments} assignments)")
            }
            Method::SampledPermutation { draws, seed } => {
                write!(f, "permutation within blocks ({draws} assignments drawn, seed {seed})")
            }
            Method::BlockedT => f.write_str("blocked t on log rates"),
            Method::Welch => f.write_str("Welch's t on log rates"),
            Method::BothTests => f.write_str("Welch's t and rank sum, the wider of both"),
            Method::Alternation => f.write_str("alternation"),
            Method::PlannedLooks { look, of, shared } => {
                write!(f, "planned looks ({look} of {of})")?;
                share(f, *shared)
            }
            Method::OpenEnded { looks, shared } => {
                write!(f, "open-ended e-process ({looks} looks)")?;
                share(f, *shared)
            }
            Method::Builds => f.write_str("t between builds on log rates"),
            Method::SignedRank => f.write_str("Hodges-Lehmann (signed rank)"),
            Method::RankSum => f.write_str("Hodges-Lehmann (rank sum)"),
        }
    }
}

fn share(f: &mut fmt::Formatter<'_>, comparisons: usize) -> fmt::Result {
    match comparisons {
        0 | 1 => Ok(()),
        many => write!(f, ", interval valid for {many} comparisons together"),
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::ThisStart => "this start",
            Scope::AcrossStarts => "across starts",
            Scope::Listed => "of these figures",
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotJudged => "not judged",
        })
    }
}

/// Formats a relative change as signed percent. Values beyond four digits are only marked as huge,
/// which happens to intervals of two noisy blocks.
fn signed_percent(change: f64, digits: usize) -> String {
    let percent = 100.0 * change;
    if percent >= 9999.5 || percent.is_nan() {
        return "+>9999 %".into();
    }
    let text = format!("{percent:+.digits$}");
    let is_zero = text.bytes().all(|b| matches!(b, b'+' | b'-' | b'0' | b'.'));
    if is_zero { format!("{} %", &text[1..]) } else { format!("{text} %") }
}

fn p_value(name: &str, p: f64) -> String {
    match p {
        p if p < 0.0001 => format!("{name} < 0.0001"),
        p if p < 0.01 => format!("{name} = {p:.4}"),
        p => format!("{name} = {p:.3}"),
    }
}
