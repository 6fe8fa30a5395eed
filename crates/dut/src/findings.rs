//! Results of configuring a DUT: settings read back, and warnings.

use fwdlab_host::error::BenchError;
use fwdlab_model::warning::Warning;
use std::collections::BTreeMap;

/// Warning that a setting was not restored and may affect later variants.
pub fn not_put_back(error: BenchError) -> Warning {
    Warning::NotVerified {
        setting: "what was changed before".into(),
        wanted: "put back".into(),
        found: error.to_string().replace('\n', ";"),
    }
}

/// Results of configuring a DUT.
#[derive(Debug, Default)]
pub struct Findings {
    /// Settings as read back.
    pub facts: BTreeMap<String, String>,
    /// Warnings about settings.
    pub warnings: Vec<Warning>,
}

impl Findings {
    /// Turns a setting that was not restored into a warning: the others are restored, and the
    /// variant's own settings are read back after they are applied.
    ///
    /// # Errors
    /// Returns any other error of `undone`.
    pub(crate) fn accept_not_put_back(
        &mut self,
        undone: Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        match undone {
            Err(left @ BenchError::NotPutBack { .. }) => {
                self.warnings.push(not_put_back(left));
                Ok(())
            }
            other => other,
        }
    }

    /// Records a setting as read back; adds a warning if it differs from `expected`.
    pub fn expect(&mut self, setting: &str, expected: &str, found: &str) {
        self.facts.insert(setting.to_owned(), found.to_owned());
        if expected != found {
            self.warnings.push(Warning::NotVerified {
                setting: setting.to_owned(),
                wanted: expected.to_owned(),
                found: found.to_owned(),
            });
        }
    }
    /// Like [`Findings::expect`] for a sysctl; values of several numbers read back with tabs.
    pub fn expect_sysctl(&mut self, name: &str, expected: &str, found: &str) {
        let found = found.split_whitespace().collect::<Vec<_>>().join(" ");
        self.expect(&format!("sysctl {name}"), expected, &found);
    }
}
