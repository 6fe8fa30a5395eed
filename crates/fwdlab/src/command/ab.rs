//! `fwdlab ab`: compares commands without an experiment file.

use super::run;
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::{Overrides, STORE};
use anyhow::{Context, Result};
use clap::{Args as _, FromArgMatches as _};
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the experiment file in the directory of store and report.
const FILE: &str = "ab.toml";
/// Maximum number of variants: one for each letter.
const MOST: usize = 26;

/// Measure whether a command changes the forwarding rate.
///
/// Each command is a variant, A, B and so on, and each is compared with A. A variant's command runs
/// before each of its runs, in the device's namespace (or on its host, with --lab). It is split
/// into words as by a shell (`sh -c '...'` for shell syntax). An empty one, '', leaves the device
/// unchanged. The experiment is written to DIR/ab.toml, from which `fwdlab run` can continue it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab ab '' 'nft -f edge.nft'
  fwdlab ab 'sysctl net.ipv4.ip_early_demux=1' 'sysctl net.ipv4.ip_early_demux=0' --blocks 20
  fwdlab ab '' 'ethtool -K d0 gro on' --set traffic.family=inet6 --format mail
  fwdlab ab '' 'insmod patched.ko' --teardown 'rmmod patched' --out results/patched")]
pub(crate) struct Arguments {
    /// Command to run before each run of a variant; the first is the baseline
    #[arg(value_name = "COMMAND", required = true, num_args = 2..=MOST)]
    commands: Vec<String>,
    /// Command to run after each run; may be given several times
    #[arg(long, value_name = "COMMAND")]
    teardown: Vec<String>,
    /// Directory of experiment, store and report
    #[arg(long, short, value_name = "DIR", default_value = "results/ab")]
    out: PathBuf,
    /// Start again; the old store is kept as run.sqlite.1
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    common: run::Common,
}

/// Writes the experiment and runs it.
///
/// # Errors
/// The errors of `fwdlab run`; a DIR that contains another experiment.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let out = &arguments.out;
    let (file, text) = (out.join(FILE), experiment(&arguments.commands, &arguments.teardown));
    let is_other = fs::read_to_string(&file).is_ok_and(|found| found != text);
    if is_other && !arguments.fresh && out.join(STORE).exists() {
        let why = format!(
            "{} holds the runs of other commands (they are in {FILE} there)\n  next step: name \
             another directory (--out), or start over (--fresh)",
            out.display()
        );
        return Err(CliError::Mistake(why).into());
    }
    let written = fs::create_dir_all(out).and_then(|()| fs::write(&file, text));
    written.with_context(|| format!("writing {}", file.display()))?;
    run::execute(&run_arguments(arguments, &file)?)
}

fn run_arguments(arguments: &Arguments, file: &Path) -> Result<run::Arguments> {
    let line = ["run".as_ref(), file.as_os_str(), "--out".as_ref(), arguments.out.as_os_str()];
    let command = run::Arguments::augment_args(clap::Command::new("run"));
    let mut run = run::Arguments::from_arg_matches(&command.try_get_matches_from(line)?)?;
    run.set(arguments.fresh, arguments.overrides.clone(), arguments.common.clone());
    Ok(run)
}

/// The text of the experiment file.
fn experiment(commands: &[String], teardown: &[String]) -> String {
    // A JSON string is also a TOML string.
    let string = |text: &str| serde_json::Value::from(text).to_string();
    let list = |commands: &[String]| {
        let all: Vec<String> = commands.iter().map(|command| string(command)).collect();
        format!("[{}]", all.join(", "))
    };
    let letters = ('A'..='Z').map(String::from);
    let named: Vec<(String, &String)> = letters.zip(commands).collect();
    let title = named.iter().map(|(letter, command)| match command.trim() {
        "" => format!("{letter}: as it is"),
        command => format!("{letter}: {command}"),
    });
    let title = title.collect::<Vec<String>>().join("; ");
    let levels = named.iter().map(|(letter, command)| {
        let setup = match command.trim() {
            "" => String::new(),
            _ => format!(", setup = {}", list(&[(*command).clone()])),
        };
        format!("  {{ label = \"{letter}\"{setup} }},\n")
    });
    let levels: String = levels.collect();
    let dut = match teardown {
        [] => String::new(),
        teardown => format!("[dut]\nteardown = {}\n\n", list(teardown)),
    };
    format!(
        "# Made by `fwdlab ab`: each level runs its command before each run.\nversion = 1\n\
         title = {}\n\n{dut}[[factor]]\nname = \"command\"\nlevels = [\n{levels}]\n\n[compare]\n\
         baseline = {{ command = \"A\" }}\n\n[trial]\nwarmup = \"200ms\"\nduration = \"1s\"\n\n\
         [design]\nblocks = 10\n",
        string(&title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn experiment_quotes_commands_as_levels() {
        let (odd, down) = ("sh -c 'echo \"a\\b\"; # c'", words(&["down one"]));
        let text = experiment(&words(&["", odd, "x"]), &down);
        let plan = fwdlab_model::load("ab.toml", &text, &|_| Err("none".into()));
        let plan = plan.unwrap_or_else(|faults| panic!("{text}\n{faults}"));
        let hooks: Vec<_> = plan.variants.iter().map(|v| &v.settings.dut.hooks).collect();
        assert_eq!(hooks[0].setup, Vec::<String>::new());
        assert_eq!(hooks[1].setup, [odd]);
        assert_eq!(hooks[2].setup, ["x"]);
        assert!(hooks.iter().all(|hooks| hooks.teardown == down));
        let labels: Vec<&str> = plan.variants.iter().map(|v| v.label.as_str()).collect();
        assert_eq!(labels, ["A", "B", "C"]);
        assert!(plan.title.starts_with("A: as it is; B: sh -c"), "{}", plan.title);
    }
}
