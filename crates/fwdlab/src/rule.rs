//! `--rule`: what one figure stands for an imported run.

use crate::error::CliError;
use clap::ValueEnum;
use fwdlab_results::stats::log_rule;
use fwdlab_results::store::{Contents, Store};
use std::path::Path;

/// Ways to make one figure of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rule {
    /// Median of the lines that the archive's scripts keep
    Netbenches,
    /// Mean rate of the steady state
    Steady,
}

impl From<Rule> for log_rule::Rule {
    fn from(rule: Rule) -> log_rule::Rule {
        match rule {
            Rule::Netbenches => log_rule::Rule::Netbenches,
            Rule::Steady => log_rule::Rule::Steady,
        }
    }
}

/// Everything in the store at `path`; with a rule, imported figures are made by it.
///
/// # Errors
/// When there is no store, and when a rule is named for runs of fwdlab's own.
pub(crate) fn contents(path: &Path, rule: Option<Rule>) -> anyhow::Result<Contents> {
    let mut contents = Store::open_read_only(path)?.contents()?;
    fwdlab_archive::complete(&mut contents);
    let Some(rule) = rule else { return Ok(contents) };
    if contents.import.is_none() {
        let why = format!(
            "{} holds runs that fwdlab measured itself: --rule is for imported logs; leave it out",
            path.display()
        );
        return Err(CliError::Mistake(why).into());
    }
    Ok(contents.by_rule(rule.into()))
}
