//! Plain files: values for ministat and gnuplot, a table, and the environment.

use super::results::Analysis;
use crate::document::form::csv::line as csv_line;
use crate::label::{self, Label};
use crate::stats::log_rule;
use crate::store::Contents;
use fwdlab_model::plan::RunMetric;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Formats `<variant>.pps`: the label of the values as a comment, and one integer per run, in run
/// order, as ministat reads it.
pub(super) fn pps(label: &Label, values: &[f64]) -> String {
    values.iter().fold(format!("{label}\n"), |mut text, value| {
        let _ = writeln!(text, "{}", value.round());
        text
    })
}

/// Formats `<variant>.instructions`: instructions per packet, with as many digits as repeat.
pub(super) fn instructions(label: &Label, values: &[f64]) -> String {
    let lines = values.iter().map(|value| format!("{value:.3}\n"));
    format!("{label}\n{}", lines.collect::<String>())
}

/// Formats the list of an imported variant with eight significant digits, as in the archive's
/// lists.
pub(super) fn archived(label: &Label, values: &[f64]) -> String {
    values.iter().fold(format!("{label}\n"), |text, value| text + &log_rule::printed(*value) + "\n")
}

/// Formats `gnuplot.data`: a line per variant with median, minimum and maximum.
pub(super) fn gnuplot(analysis: &Analysis) -> String {
    let mut text = format!("{}\n#index median minimum maximum\n", analysis.core.label());
    for variant in &analysis.core.variants {
        if let Some(summary) = &variant.summary {
            let printed = |value: f64| match analysis.core.figure {
                RunMetric::Netbenches | RunMetric::NetbenchesUpper => log_rule::printed(value),
                RunMetric::Instructions => format!("{value:.3}"),
                _ => value.round().to_string(),
            };
            let _ = writeln!(
                text,
                "{} {} {} {}",
                gnuplot_word(&variant.label),
                printed(summary.median),
                printed(summary.min),
                printed(summary.max)
            );
        }
    }
    text
}

/// Formats a label as one column, in quotes if gnuplot would read several columns or a comment.
fn gnuplot_word(label: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | ':' | '/');
    if !label.is_empty() && label.chars().all(plain) {
        return label.to_owned();
    }
    format!("\"{}\"", label.replace(['"', '\n', '\r'], "'").replace('\\', "\\\\"))
}

/// Name of the column with the reason for excluding a run from verdicts; empty for included runs.
pub(crate) const LEFT_OUT: &str = "left_out";

/// Formats `runs.csv` (RFC 4180, lines end in LF): a line per run.
pub(super) fn runs_csv(analysis: &Analysis) -> String {
    let mut header = vec!["run", "block", "variant"];
    header.extend(analysis.core.factors.iter().map(|factor| factor.name.as_str()));
    header.push("started_at");
    header.extend(match analysis.core.figure.is_rate() {
        true => ["value_pps", "mean_pps", "p90_pps", "offered_pps"].as_slice(),
        false => &["instructions", "least", "most", "atomics", "bytes", "background"],
    });
    header.extend(["offered", "forwarded", "lost", "warnings"]);
    header.extend(label::COLUMNS);
    header.push(LEFT_OUT);
    let label = analysis.core.label().fields();
    let mut text = csv_line(header.into_iter().map(str::to_owned));
    for run in &analysis.core.runs {
        let settings = &analysis.core.variants[run.variant].settings;
        let mut fields = vec![run.run.to_string(), run.block.to_string(), run.label.clone()];
        fields.extend(analysis.core.factors.iter().map(|factor| settings[&factor.name].clone()));
        fields.push(run.started_at.clone());
        if analysis.core.figure.is_rate() {
            let rates = [run.value_pps, run.mean_pps, run.p90_pps, run.offered_pps];
            fields.extend(rates.map(|rate| rate.map_or(String::new(), |pps| format!("{pps:.1}"))));
        } else {
            let counts = run.counted.as_ref().map(|c| {
                let (least, most) = c.range();
                [c.instructions, least, most, c.atomics, c.bytes, c.background]
            });
            let shown = |at: usize| counts.map_or(String::new(), |c| format!("{:.3}", c[at]));
            fields.extend((0..6).map(shown));
        }
        fields.push(run.offered.to_string());
        fields.push(run.forwarded.to_string());
        fields.push((i128::from(run.offered) - i128::from(run.forwarded)).to_string());
        fields.push(run.warnings.to_string());
        fields.extend(label.clone());
        fields.push(run.absence(analysis.core.figure).unwrap_or_default().to_owned());
        text.push_str(&csv_line(fields));
    }
    text
}

/// Returns `environment.json`: the environment of each invocation.
pub(super) fn environment(contents: &Contents) -> Value {
    contents
        .invocations
        .iter()
        .map(|stored| {
            let invocation = &stored.invocation;
            json!({
                "invocation": stored.id,
                "started_at": invocation.started_at,
                "fwdlab_version": invocation.fwdlab_version,
                "testbed": invocation.testbed,
                "testbed_reason": invocation.testbed_reason,
                "simulated": invocation.simulated,
                "environment": invocation.environment,
            })
        })
        .collect()
}

/// Writes `bytes` to `path` atomically: into a temporary file next to it, followed by a rename.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written = std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // Removes only the temporary file; an existing file is not changed.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gnuplot_word_quotes_labels_as_one_column() {
        assert_eq!(gnuplot_word("r368287.inet4"), "r368287.inet4");
        assert_eq!(gnuplot_word("4, inet6"), "\"4, inet6\"");
        assert_eq!(gnuplot_word("#1"), "\"#1\"");
        assert_eq!(gnuplot_word("say \"hi\""), "\"say 'hi'\"");
        assert_eq!(gnuplot_word(""), "\"\"");
    }

    #[test]
    fn pps_file_has_one_integer_per_line() {
        let label = Label {
            testbed: "sim".parse().expect("a testbed"),
            simulated: true,
            figure: Some(RunMetric::P90),
            version: "0.1.0".into(),
        };
        let head = "# fwdlab 0.1.0; testbed: sim; simulated: yes; figure: p90; unit: packets per \
                    second\n";
        let list = format!("{head}1000000\n1000000\n");
        assert_eq!(pps(&label, &[1_000_000.4, 999_999.5]), list);
        assert_eq!(pps(&label, &[]), head);
        assert_eq!(archived(&label, &[1234.5]), format!("{head}1234.5\n"));
    }

    #[test]
    fn failed_write_keeps_old_file_and_removes_temporary() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        write_atomically(&path, b"old").unwrap();
        // A directory can't be replaced by a file.
        let blocked = directory.path().join("blocked");
        std::fs::create_dir(&blocked).unwrap();
        std::fs::write(blocked.join("inside"), "x").unwrap();
        assert!(write_atomically(&blocked, b"new").is_err());
        write_atomically(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
