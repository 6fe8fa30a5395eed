//! Results of a store in the forms of other tools.

mod csit;
mod otg;

use crate::error::CliError;
use fwdlab_results::report::Analysis;
use fwdlab_results::store::Contents;
use serde_json::{Value, json};
use std::path::Path;

/// A form of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PeerForm {
    /// Test cases of FD.io CSIT: one per variant with its runs as trials (MRR), or one per search
    /// for both NDR and PDR (NDRPDR)
    Csit,
    /// Metrics of an Open Traffic Generator: one flow per run
    Otg,
}

impl PeerForm {
    /// Writes the results of several stores as one JSON value.
    ///
    /// # Errors
    /// A mistake if a store has no results in this form.
    pub(crate) fn write(self, stores: &[(&Path, Contents, Analysis)]) -> Result<Value, CliError> {
        let of = match self {
            PeerForm::Csit => csit::test_cases,
            PeerForm::Otg => otg::flow_metrics,
        };
        let mut all = Vec::new();
        for (path, contents, analysis) in stores {
            all.extend(of(path, contents, analysis)?);
        }
        Ok(match self {
            PeerForm::Csit => Value::Array(all),
            PeerForm::Otg => json!({ "choice": "flow_metrics", "flow_metrics": all }),
        })
    }
}

fn refused(path: &Path, why: &str, next: &str) -> CliError {
    CliError::Mistake(format!("{}: {why}\n  next step: {next}", path.display()))
}

fn without_runs(path: &Path) -> CliError {
    refused(path, "no run counts", "measure runs, or see `fwdlab show`")
}
