//! `--rule`: the number that represents an imported run.

use crate::error::CliError;
use fwdlab_model::plan::Rule;
use fwdlab_results::store::{Contents, Store};
use std::path::Path;

/// Reads the whole store at `path`; `rule` selects the number that represents imported runs.
///
/// # Errors
/// Fails if there is no store, or if a rule is given for fwdlab's own runs.
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
    Ok(contents.by_rule(rule))
}
