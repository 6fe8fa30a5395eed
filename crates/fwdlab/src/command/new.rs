//! `fwdlab new`: a commented experiment file for the question that is asked.

use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal;
use anyhow::{Context, Result};
use fwdlab_model::assign::assign;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A question, with the file that asks it.
struct Question {
    name: &'static str,
    asks: &'static str,
    text: &'static str,
    /// A file that it names, by its path from there.
    beside: Option<(&'static str, &'static str)>,
}

macro_rules! experiment {
    ($name:literal) => {
        include_str!(concat!("../../../../experiments/", $name))
    };
}

/// Those that can be asked, by what is varied.
static QUESTIONS: [Question; 10] = [
    question("tunable", "what does a sysctl cost?", experiment!("tutorial.toml")),
    question("commands", "what does it cost what a command does?", experiment!("commands.toml")),
    question("firewall", "what does a firewall cost?", experiment!("firewalls.toml")),
    question("queues", "how many queues, bound to CPUs or not?", experiment!("queues.toml")),
    question("frame-size", "does the frame size matter?", experiment!("frame-sizes.toml")),
    question(
        "rate",
        "at which rate is nothing lost? (NDR, PDR)",
        experiment!("ndr-firewalls.toml"),
    ),
    question("latency", "how long do packets take?", experiment!("latency.toml")),
    question(
        "router",
        "which FIB is fastest? (no privileges needed)",
        experiment!("router-fib.toml"),
    ),
    question(
        "kernels",
        "what does a packet cost in two kernels? (QEMU, instructions)",
        experiment!("vm-linux-revisions.toml"),
    ),
    Question {
        beside: Some(("labs/two-machines.toml", experiment!("labs/two-machines.toml"))),
        ..question(
            "laboratory",
            "two kernels of a machine of its own, over ssh",
            experiment!("lab-linux-kernels.toml"),
        )
    },
];

const fn question(name: &'static str, asks: &'static str, text: &'static str) -> Question {
    Question { name, asks, text, beside: None }
}

/// Write a commented experiment file for a question
///
/// Without a question the ones that there are are listed. The file is one of fwdlab's own
/// experiments: change what is varied, keep the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab new
  fwdlab new tunable
  fwdlab new firewall my-firewall.toml --set traffic.family=inet6 --set design.blocks=20
  fwdlab new router - | fwdlab plan -")]
pub(crate) struct Arguments {
    /// What is asked
    #[arg(value_parser = QUESTIONS.each_ref().map(|question| question.name))]
    question: Option<String>,
    /// The file; - is standard output [default: QUESTION.toml]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// A value of the file: trial.duration=5s. May be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Lists the questions, or writes the file.
///
/// # Errors
/// When a file is there already, or can't be written.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let asked = |question: &&Question| Some(question.name) == arguments.question.as_deref();
    let Some(question) = QUESTIONS.iter().find(asked) else {
        let width = QUESTIONS.iter().map(|question| question.name.len()).max().unwrap_or(0);
        let line = |Question { name, asks, .. }: &Question| format!("  {name:width$}  {asks}\n");
        let lines: String = QUESTIONS.iter().map(line).collect();
        terminal::print(&format!("questions, for `fwdlab new QUESTION`:\n{}", lines.trim_end()))?;
        return Ok(Exit::Done);
    };
    let own = question.text.to_owned();
    let text = arguments.set.iter().try_fold(own, |text, assignment| assign(&text, assignment));
    let text = text.map_err(|error| CliError::Mistake(format!("--set {error}")))?;
    let default = PathBuf::from(format!("{}.toml", question.name));
    let file = arguments.file.as_ref().unwrap_or(&default);
    if file == Path::new("-") {
        terminal::print(text.trim_end())?;
        return Ok(Exit::Done);
    }
    create(file, &text)?;
    terminal::print(&format!("wrote {}", file.display()))?;
    if let Some((name, text)) = question.beside {
        let other = file.with_file_name(name);
        if !other.exists() {
            create(&other, text)?;
            terminal::print(&format!("wrote {}", other.display()))?;
        }
    }
    terminal::print(&format!("next: change it, then\n  fwdlab plan {}", file.display()))?;
    Ok(Exit::Done)
}

fn create(file: &Path, text: &str) -> Result<()> {
    if file.exists() {
        let why = format!("{} is there already\n  next step: name another file", file.display());
        return Err(CliError::Mistake(why).into());
    }
    let directory = file.parent().unwrap_or(Path::new(""));
    let made = fs::create_dir_all(directory).and_then(|()| {
        OpenOptions::new().write(true).create_new(true).open(file)?.write_all(text.as_bytes())
    });
    made.with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_a_file_that_can_be_planned() {
        for question in &QUESTIONS {
            let beside = |name: &str| match question.beside {
                Some((path, text)) if path == name => Ok(text.into()),
                _ => Err(format!("{name} is not written with it")),
            };
            let plan = fwdlab_model::load(question.name, question.text, &beside);
            let plan = plan.unwrap_or_else(|faults| panic!("{}: {faults}", question.name));
            assert!(plan.variants.len() > 1, "{} varies nothing", question.name);
        }
    }
}
