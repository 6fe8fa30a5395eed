//! Import of configurations of `bench-lab.sh`, the FreeBSD netbenches harness, as a laboratory and
//! an experiment.
//!
//! Such a file is a shell script of assignments, with a diagram in its comments. A strict reader of
//! that subset parses it and never executes it. Settings without an equivalent in fwdlab's files
//! are reported, and kept in them as comments: nothing is lost silently.
//!
//! Out of scope: whether the machines match the file (`fwdlab lab check`), and the tested variants,
//! which are in directories next to the file.

mod diagram;
mod rack;
mod script;
mod traffic;
mod write;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lab::Lab;
use script::{Script, Variable};
use std::collections::BTreeSet;

/// Result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Text of `lab.toml`.
    pub lab: String,
    /// Text of `experiment.toml`, which expects `lab.toml` in the same directory.
    pub experiment: String,
    /// Settings without a place in either file, assumptions, and points to check; one sentence
    /// each.
    pub remarks: Vec<String>,
}

/// Imports a configuration. `path` is the path given by the user. `overlays` are directories of
/// configurations as the experiment should name them; if there are any, they become a factor.
///
/// # Errors
/// Every line that is neither an assignment nor a comment, and everything that is missing,
/// together.
pub fn import(path: &str, text: &str, overlays: &[String]) -> Result<Imported, Diagnostics> {
    // Lines may end as in MS-DOS; a shell would keep the carriage return.
    let text = &text.replace("\r\n", "\n");
    let (script, mut faults) = script::read(text);
    let drawn = diagram::boxes(script.comments.iter().map(|(_, comment)| comment.as_str()));
    let mut source = Source { script: &script, used: BTreeSet::new(), remarks: Vec::new() };
    let rack = match rack::of(&mut source, &drawn) {
        Ok(rack) if faults.is_empty() => rack,
        Ok(_) => return Err(Diagnostics::new(path, text, faults)),
        Err(missing) => {
            // An unreadable part may be the one that seems to be missing.
            if faults.is_empty() {
                faults = missing;
            }
            return Err(Diagnostics::new(path, text, faults));
        }
    };
    let traffic = traffic::of(&mut source, &rack);
    source.unplaced();
    let mut remarks = source.remarks;
    let name = write::name_of(path);
    let lab = write::lab(&name, &rack, &script, &remarks);
    if let Err(faults) = Lab::parse("lab.toml", &lab) {
        remarks.extend(
            faults
                .list
                .iter()
                .map(|fault| format!("lab.toml is to be completed by hand: {}", fault.message)),
        );
    }
    let experiment = write::experiment(&name, &traffic, &script, &remarks, overlays);
    Ok(Imported { lab, experiment, remarks })
}

/// A configuration during its import: the variables that were used, and the remarks.
struct Source<'a> {
    script: &'a Script,
    used: BTreeSet<&'a str>,
    remarks: Vec<String>,
}

impl<'a> Source<'a> {
    /// Returns a variable that is set and not empty.
    fn variable(&mut self, name: &str) -> Option<&'a Variable> {
        let variables = &self.script.variables;
        let variable = variables.iter().find(|v| v.name == name && !v.value.is_empty())?;
        self.used.insert(&variable.name);
        Some(variable)
    }

    fn get(&mut self, name: &str) -> Option<&'a str> {
        self.variable(name).map(|variable| variable.value.as_str())
    }

    /// Returns a required variable.
    fn required(&mut self, name: &str, faults: &mut Vec<Diagnostic>) -> &'a str {
        self.get(name).unwrap_or_else(|| {
            faults.push(
                Diagnostic::new(0..0, format!("`{name}` is not set"))
                    .help(format!("write {name}=\"...\" as bench-lab.sh requires")),
            );
            ""
        })
    }

    fn remark(&mut self, text: String) {
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    /// Reports variables that were not used, neither directly nor through others.
    fn unplaced(&mut self) {
        let referred: BTreeSet<&str> = self
            .script
            .variables
            .iter()
            .flat_map(|variable| variable.refers_to.iter().map(String::as_str))
            .collect();
        for Variable { name, value, line, .. } in &self.script.variables {
            let is_placed = self.used.contains(name.as_str()) || referred.contains(name.as_str());
            if is_placed || value.is_empty() {
                continue;
            }
            let why = match name.as_str() {
                "PMC_EVENT" => "fwdlab counts no events on FreeBSD",
                "SENDER_STOP_CMD" | "RECEIVER_STOP_CMD" | "SENDER_2_STOP_CMD" => {
                    "fwdlab ends what it started"
                }
                "RECEIVER_START_CMD" => "fwdlab starts the receiver itself",
                _ => "it has no place in fwdlab's files",
            };
            self.remark(format!("line {line}: {name}=\"{value}\": {why}"));
        }
    }
}

#[cfg(test)]
mod tests;
