//! Notifications at the end of an experiment: a local program or a web hook, from the lab
//! file or the command line.
//!
//! A failed notification does not change the experiment's result.

use crate::error::CliError;
use crate::terminal;
use anyhow::Result;
use fwdlab_model::lab::Notify;
use fwdlab_model::{Lab, Plan, words};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// Time limit of a notification.
const PATIENCE: Duration = Duration::from_secs(60);

/// The outcome of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All runs are complete.
    Finished,
    /// It was stopped by an error.
    Failed,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Outcome::Finished => "finished",
            Outcome::Failed => "failed",
        }
    }
}

/// A notification.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    /// Title of the experiment.
    pub(crate) title: &'a str,
    /// The outcome.
    pub(crate) outcome: Outcome,
    /// The report's file, or the directory where it would be.
    pub(crate) report: &'a Path,
    /// The results, or the error.
    pub(crate) summary: &'a str,
}

/// The receivers of notifications: the receivers of the plan's laboratory, and the command given on
/// the command line.
///
/// # Errors
/// Fails if that command cannot be split into words.
pub(crate) fn recipients(
    plan: &Plan,
    directory: &Path,
    command: Option<&str>,
) -> Result<Vec<Notify>> {
    let mut all = Vec::new();
    // An unreadable lab file is reported when the testbed is opened.
    let lab = plan.base.testbed.lab.as_ref().and_then(|lab| {
        let path = directory.join(lab);
        Lab::parse(lab, &fs::read_to_string(path).ok()?).ok()
    });
    all.extend(lab.map(|lab| lab.notify));
    if let Some(command) = command {
        let command = words::split(command)
            .map_err(|why| CliError::Mistake(format!("--notify-command: {why}")))?;
        all.push(Notify { command: Some(command), url: None });
    }
    Ok(all)
}

/// Sends the notification to all receivers. Failures become remarks.
pub(crate) fn tell(recipients: &[Notify], message: &Message) {
    for Notify { command, url } in recipients {
        if let Some(command) = command {
            let words: Vec<String> = command.iter().map(|word| filled(word, message)).collect();
            remark(&words, run(&words, message.summary));
        }
        if let Some(url) = url {
            let words = ["curl", "-fsS", "-m", "30", "--json", "@-", "--url", url];
            let words = words.map(str::to_owned);
            remark(&words, run(&words, &body(message)));
        }
    }
}

/// A word with its placeholders replaced.
fn filled(word: &str, message: &Message) -> String {
    let report = message.report.display().to_string();
    let values =
        [("{title}", message.title), ("{outcome}", message.outcome.name()), ("{report}", &report)];
    let mut out = String::new();
    let mut rest = word;
    // From left to right, so that a title with braces in it stays unchanged.
    while let Some(at) = rest.find('{') {
        out += &rest[..at];
        rest = &rest[at..];
        let known = values.iter().find(|(name, _)| rest.starts_with(name));
        let (value, length) = known.map_or(("{", 1), |(name, value)| (*value, name.len()));
        out += value;
        rest = &rest[length..];
    }
    out + rest
}

fn body(message: &Message) -> String {
    json!({
        "title": message.title,
        "outcome": message.outcome.name(),
        "report": message.report.display().to_string(),
        "summary": message.summary,
    })
    .to_string()
}

fn remark(words: &[String], result: io::Result<()>) {
    if let Err(error) = result {
        terminal::warn(&format!("nobody was told by `{}`: {error}", words::join(words)));
    }
}

/// Runs a program with `input` on its standard input.
fn run(words: &[String], input: &str) -> io::Result<()> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let stdin = child.stdin.take();
    let input = input.to_owned();
    // In a thread, since a program that does not read would block us; one that reads only a part
    // closes the pipe, which is no failure.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return if status.success() {
                Ok(())
            } else {
                Err(io::Error::other(status.to_string()))
            };
        }
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(format!("it took more than {} s", PATIENCE.as_secs())));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(title: &str) -> Message<'_> {
        let report = Path::new("results/x/README.md");
        Message { title, outcome: Outcome::Failed, report, summary: "1.0 Mpps\n" }
    }

    #[test]
    fn placeholders_are_replaced_once() {
        let message = message("a {report} b");
        let got = filled("fwdlab: {title} {outcome}, {report} {other} {", &message);
        assert_eq!(got, "fwdlab: a {report} b failed, results/x/README.md {other} {");
    }

    #[test]
    fn hook_body_is_json() {
        let body: serde_json::Value = serde_json::from_str(&body(&message("t \"x\""))).unwrap();
        assert_eq!((&body["title"], &body["outcome"]), (&json!("t \"x\""), &json!("failed")));
        assert_eq!(body["summary"], "1.0 Mpps\n");
    }

    #[test]
    fn program_receives_the_summary_and_its_failure_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("got");
        let script = format!("cat > '{}'", file.display());
        let words = ["sh", "-c", &script].map(str::to_owned);
        run(&words, "the summary").unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), "the summary");
        assert!(run(&["false".to_owned()], "").is_err());
        assert!(run(&["/no/such/program".to_owned()], "").is_err());
        // More than a pipe holds, to a program that reads nothing.
        run(&["true".to_owned()], &"x".repeat(1 << 20)).unwrap();
    }
}
