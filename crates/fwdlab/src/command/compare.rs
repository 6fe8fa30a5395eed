//! `fwdlab compare`: comparisons of files and stores.

use crate::exit::Exit;
use crate::output_format::VerboseFormArguments;
use crate::peer_arguments::PeerArguments;
use crate::value_enum;
use crate::verdict::{self, FailOn};
use fwdlab_model::plan::Adjust;
use fwdlab_results::compare::{self, Question};

/// Compare variants of files and stores: the first one is the baseline.
///
/// Each argument is a file with one number per run (packets per second, or a report's instructions
/// per packet, one per line), a report's runs.csv, a store (run.sqlite or its directory),
/// FILE:LABEL for one variant of these, or - for standard input. A single argument with several
/// variants compares each with its baseline; two complete stores are compared variant by variant.
///
/// Results of iperf3 (-J), TRex (get_stats), testpmd, MoonGen, CSIT, hyperfine (--export-json),
/// criterion (sample.json) and `go test -bench` are compared in their units; less is better for
/// times.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab compare before.pps after.pps
  fwdlab compare before.pps after.pps --blocked       line k of each is of block k
  fwdlab compare results/demo                         as its plan says
  fwdlab compare results/demo --baseline \"stateless, inet\"
  fwdlab compare results/demo:\"none, inet\" results/demo:\"none, inet6\"
  fwdlab compare old/results/demo results/demo --fail-on worse || echo slower
  fwdlab compare before.json after.json               results of iperf3, hyperfine, ...
  fwdlab compare old.txt new.txt --only BenchmarkLookup-8 --column B/op
  fwdlab compare results/demo --json | jq '.comparisons[].outcome.compared.verdict'")]
pub(crate) struct Arguments {
    /// Files, stores, or one variant of them (FILE:LABEL)
    #[arg(value_name = "FILE[:LABEL]", required = true)]
    arguments: Vec<String>,
    /// For one file with several variants: the variant to compare the others with, or a level, so
    /// that each other variant is compared with the one that differs in that level alone
    #[arg(long, value_name = "LABEL")]
    baseline: Option<String>,
    /// Line k of each file belongs to block k
    #[arg(long)]
    blocked: bool,
    /// Confidence in percent [default: the plan's, or 95]
    #[arg(long, value_name = "PERCENT", value_parser = confidence)]
    confidence: Option<f64>,
    /// Margin of equivalence, e.g. 2% [default: the plan's, or 2%]
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    margin: Option<f64>,
    /// Adjustment of p-values for the number of comparisons
    #[arg(long, value_name = "METHOD", value_parser = value_enum::any::<Adjust>(), default_value_t = Adjust::Holm)]
    adjust: Adjust,
    /// Exit with 1 if a comparison has this verdict
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
    /// Exit as `git bisect run` expects: 0 good, 1 bad (worse), 125 undecided, 128 stop
    #[arg(long, conflicts_with = "fail_on")]
    bisect: bool,
    #[command(flatten)]
    peers: PeerArguments,
    #[command(flatten)]
    form: VerboseFormArguments,
}

/// Compares, and prints the results.
///
/// # Errors
/// Mistakes in the arguments or the files.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let results = compare::compare(&Question {
        arguments: arguments.arguments.clone(),
        baseline: arguments.baseline.clone(),
        blocked: arguments.blocked,
        confidence: arguments.confidence,
        margin: arguments.margin,
        adjustment: arguments.adjust.into(),
        only: arguments.peers.only.clone(),
        column: arguments.peers.column.clone(),
    })?;
    arguments.form.print(&results.document())?;
    if arguments.bisect {
        return verdict::exit_for_git(&results.comparisons);
    }
    Ok(verdict::exit_of(results.comparisons.iter(), arguments.fail_on))
}

impl Arguments {
    /// True if `git bisect run` reads the exit code.
    pub(crate) fn is_for_git(&self) -> bool {
        self.bisect
    }
}

/// Parses a confidence in percent; the percent sign is optional.
pub(super) fn confidence(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>();
    number
        .ok()
        .filter(|confidence| *confidence > 50.0 && *confidence < 100.0)
        .ok_or_else(|| "the confidence must be between 50 and 100 percent, e.g. 95".to_owned())
}

/// Parses a margin, and returns it as a ratio. The percent sign is required: 2 could be a factor.
pub(super) fn margin(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').map(|number| number.trim_end().parse::<f64>());
    match number {
        Some(Ok(percent)) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err("a margin is a percentage above 0 and below 100, written such as 2%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_and_margin_check_their_ranges() {
        assert_eq!((confidence("95"), confidence(" 99.5 %")), (Ok(95.0), Ok(99.5)));
        assert_eq!((margin("2%"), margin("0.5 %")), (Ok(0.02), Ok(0.005)));
        for wrong in ["", "50", "100", "NaN", "high"] {
            assert!(confidence(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "2", "0%", "-1%", "100%", "NaN%"] {
            assert!(margin(wrong).is_err(), "{wrong}");
        }
    }
}
