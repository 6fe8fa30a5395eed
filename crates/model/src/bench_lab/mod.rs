//! Configurations of `bench-lab.sh`, the FreeBSD netbenches harness, as a laboratory and an
//! experiment of fwdlab's.
//!
//! Such a file is a shell script of assignments, with a diagram in its comments. It is read
//! by a strict reader of that subset and never executed. What has no place in fwdlab's
//! files is reported, and kept in them as comments: nothing is lost silently.
//!
//! Left out on purpose: whether the machines are as the file says (`fwdlab lab check`), and
//! the variants that were tested, which lie in directories beside the file.

mod diagram;
mod rack;
mod script;
mod traffic;
mod write;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lab::Lab;
use script::{Script, Variable};
use std::collections::BTreeSet;

/// What was made of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Text of `lab.toml`.
    pub lab: String,
    /// Text of `experiment.toml`, which expects the former beside it.
    pub experiment: String,
    /// What has no place in either, was assumed, or is to be looked at; a sentence each.
    pub remarks: Vec<String>,
}

/// Reads a configuration. `path` is what the user called it; `overlays` are directories of
/// configurations as the experiment shall name them: with any, they become a factor.
///
/// # Errors
/// Every line that is no assignment or comment, and what is missing, at once.
pub fn import(path: &str, text: &str, overlays: &[String]) -> Result<Imported, Diagnostics> {
    // Lines may end as those of MS-DOS do; a shell would keep the carriage return.
    let text = &text.replace("\r\n", "\n");
    let (script, mut faults) = script::read(text);
    let drawn = diagram::boxes(script.comments.iter().map(|(_, comment)| comment.as_str()));
    let mut source = Source { script: &script, used: BTreeSet::new(), remarks: Vec::new() };
    let rack = match rack::of(&mut source, &drawn) {
        Ok(rack) if faults.is_empty() => rack,
        Ok(_) => return Err(Diagnostics::new(path, text, faults)),
        Err(missing) => {
            // What could not be read may be what seems to be missing.
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

/// A configuration while it is imported: which variables found their place, and what is to
/// be told.
struct Source<'a> {
    script: &'a Script,
    used: BTreeSet<&'a str>,
    remarks: Vec<String>,
}

impl<'a> Source<'a> {
    /// A variable that is set and not empty.
    fn variable(&mut self, name: &str) -> Option<&'a Variable> {
        let variables = &self.script.variables;
        let variable = variables.iter().find(|v| v.name == name && !v.value.is_empty())?;
        self.used.insert(&variable.name);
        Some(variable)
    }

    fn get(&mut self, name: &str) -> Option<&'a str> {
        self.variable(name).map(|variable| variable.value.as_str())
    }

    /// One that must be there.
    fn required(&mut self, name: &str, faults: &mut Vec<Diagnostic>) -> &'a str {
        self.get(name).unwrap_or_else(|| {
            faults.push(
                Diagnostic::new(0..0, format!("`{name}` is not set"))
                    .help(format!("write {name}=\"...\" as bench-lab.sh wants it")),
            );
            ""
        })
    }

    fn remark(&mut self, text: String) {
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    /// Tells of variables that nothing was made of, neither directly nor through others.
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
