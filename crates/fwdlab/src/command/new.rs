//! `fwdlab new`: writes a commented experiment file for a question.

use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal;
use anyhow::{Context, Result};
use fwdlab_model::assign::assign;
use fwdlab_vm::kernel;
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// A question, and the file that answers it.
struct Question {
    name: &'static str,
    meaning: &'static str,
    text: &'static str,
    /// Files that the text refers to: their paths relative to the text's file, and their contents.
    companions: &'static [(&'static str, &'static str)],
    kernels: Kernels,
}

/// Kernels that a question compares or measures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kernels {
    None,
    /// `kernel` in `[vm]`.
    One,
    /// Levels of the factor `revision`.
    Several,
}

macro_rules! experiment {
    ($name:literal) => {
        include_str!(concat!("../../../../experiments/", $name))
    };
}

/// All questions, by the subject of the variation or measurement.
static QUESTIONS: [Question; 17] = [
    question("tunable", "what does a sysctl cost?", experiment!("tutorial.toml")),
    question("commands", "what does the effect of a command cost?", experiment!("commands.toml")),
    question("firewall", "what does a firewall cost?", experiment!("firewalls.toml")),
    question("rules", "what does my ruleset cost? (nft, pf, ipfw)", experiment!("rules.toml"))
        .with(&[("rulesets/edge.nft", experiment!("rulesets/edge.nft"))]),
    question("nat", "what does NAT cost? (masquerade, SNAT)", experiment!("nat.toml"))
        .with(&[("rulesets/masquerade.nft", experiment!("rulesets/masquerade.nft"))]),
    question("dnat", "what does port forwarding cost? (DNAT)", experiment!("dnat.toml")).with(&[
        ("rulesets/dnat.nft", experiment!("rulesets/dnat.nft")),
        ("rulesets/dnat-masquerade.nft", experiment!("rulesets/dnat-masquerade.nft")),
    ]),
    question("vlan", "what does forwarding into a VLAN cost?", experiment!("vlan.toml")),
    question("queues", "how many queues, bound to CPUs or not?", experiment!("queues.toml")),
    question("frame-size", "does the frame size matter?", experiment!("frame-sizes.toml")),
    question(
        "throughput",
        "up to which rate is nothing lost? (NDR, PDR)",
        experiment!("ndr-firewalls.toml"),
    ),
    question("latency", "how long do packets take?", experiment!("latency.toml")),
    question(
        "forwarder",
        "how fast is another program that forwards?",
        experiment!("forwarder.toml"),
    ),
    question(
        "router",
        "which FIB is fastest? (no privileges needed)",
        experiment!("router-fib.toml"),
    ),
    question(
        "kernel",
        "what does a packet cost in a kernel? (QEMU, instructions)",
        experiment!("vm-linux-settings.toml"),
    )
    .about(Kernels::One),
    question(
        "kernels",
        "the same in two kernels: what has changed?",
        experiment!("vm-linux-revisions.toml"),
    )
    .about(Kernels::Several),
    question(
        "laboratory",
        "two kernels of a machine of its own, over ssh",
        experiment!("lab-linux-kernels.toml"),
    )
    .with(&[("labs/two-machines.toml", experiment!("labs/two-machines.toml"))]),
    question(
        "freebsd",
        "two kernels of a FreeBSD machine, over ssh",
        experiment!("lab-freebsd-kernels.toml"),
    )
    .with(&[("labs/two-machines.toml", experiment!("labs/two-machines.toml"))]),
];

const fn question(name: &'static str, meaning: &'static str, text: &'static str) -> Question {
    Question { name, meaning, text, companions: &[], kernels: Kernels::None }
}

impl Question {
    const fn with(self, companions: &'static [(&'static str, &'static str)]) -> Question {
        Question { companions, ..self }
    }

    const fn about(self, kernels: Kernels) -> Question {
        Question { kernels, ..self }
    }
}

/// Write a commented experiment file for a question
///
/// Without a question, lists the questions. The file is one of fwdlab's own experiments: change the
/// varied settings, and keep the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab new
  fwdlab new tunable
  fwdlab new rules edge.toml
  fwdlab new firewall my-firewall.toml --set traffic.family=inet6 --set design.blocks=20
  fwdlab new kernel --kernel linux-image-6.12.107_1_amd64.deb
  fwdlab new kernels --kernel before.deb --kernel after.deb
  fwdlab new router - | fwdlab plan -")]
pub(crate) struct Arguments {
    /// The question
    #[arg(value_parser = QUESTIONS.each_ref().map(|question| question.name))]
    question: Option<String>,
    /// Output file; - is standard output [default: QUESTION.toml]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Set a value of the file: trial.duration=5s (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A kernel of `kernel` or `kernels`: a package, a build tree, an image, an installed release,
    /// or `running` (repeatable) [default: the packages in kernels, or in target/kernels/packages]
    #[arg(long, value_name = "KERNEL")]
    kernel: Vec<PathBuf>,
}

/// Lists the questions, or writes the file.
///
/// # Errors
/// If the file exists or can't be written, or the question's kernels are missing.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let chosen = |question: &&Question| Some(question.name) == arguments.question.as_deref();
    let Some(question) = QUESTIONS.iter().find(chosen) else {
        let width = QUESTIONS.iter().map(|question| question.name.len()).max().unwrap_or(0);
        let line =
            |Question { name, meaning, .. }: &Question| format!("  {name:width$}  {meaning}\n");
        let lines: String = QUESTIONS.iter().map(line).collect();
        terminal::print(&format!("questions, for `fwdlab new QUESTION`:\n{}", lines.trim_end()))?;
        return Ok(Exit::Done);
    };
    let default = PathBuf::from(format!("{}.toml", question.name));
    let file = arguments.file.as_ref().unwrap_or(&default);
    let assignments = kernels(question, &arguments.kernel, file)?;
    let all = assignments.iter().chain(&arguments.set);
    let text = all.into_iter().try_fold(question.text.to_owned(), |text, one| assign(&text, one));
    let text = text.map_err(|error| CliError::Mistake(format!("--set {error}")))?;
    if file == Path::new("-") {
        terminal::print(text.trim_end())?;
        return Ok(Exit::Done);
    }
    create(file, &text)?;
    terminal::print(&format!("wrote {}", file.display()))?;
    for (path, text) in question.companions {
        let companion = file.with_file_name(path);
        if !companion.exists() {
            create(&companion, text)?;
            terminal::print(&format!("wrote {}", companion.display()))?;
        }
    }
    terminal::print(&format!("next: change it, then\n  fwdlab plan {}", file.display()))?;
    Ok(Exit::Done)
}

/// Returns the assignments for the kernels of a question, with paths relative to `file`.
fn kernels(question: &Question, given: &[PathBuf], file: &Path) -> Result<Vec<String>> {
    if question.kernels == Kernels::None {
        return match given {
            [] => Ok(Vec::new()),
            _ => {
                let name = question.name;
                let why = format!(
                    "{name} takes no --kernel\n  next step: `fwdlab new kernel` or `fwdlab new \
                     kernels`"
                );
                Err(CliError::Mistake(why).into())
            }
        };
    }
    let found = match given {
        [] => ["kernels", "target/kernels/packages"]
            .map(|directory| kernel::packages(Path::new(directory)))
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default(),
        given => given.to_vec(),
    };
    let is_missing = |path: &&PathBuf| !path.exists() && !kernel::is_name(path);
    if let Some(missing) = found.iter().find(is_missing) {
        let why = format!("there is no {}\n  next step: correct --kernel", missing.display());
        return Err(CliError::Mistake(why).into());
    }
    let named = |path: &PathBuf| match path.exists() {
        true => from_file(file, path).display().to_string(),
        false => path.display().to_string(),
    };
    match (question.kernels, found.as_slice()) {
        (Kernels::One, [.., newest]) => Ok(vec![format!("vm.kernel={}", json!(named(newest)))]),
        (Kernels::Several, [_, _, ..]) => {
            // Without --kernel the first and last one: kernels between them would make the
            // experiment longer.
            let ends = [&found[0], &found[found.len() - 1]];
            let chosen = if given.is_empty() { ends.to_vec() } else { found.iter().collect() };
            let mut labels: Vec<String> = chosen.iter().map(|path| label(path)).collect();
            if (1..labels.len()).any(|at| labels[..at].contains(&labels[at])) {
                labels = chosen.iter().map(|path| path.display().to_string()).collect();
            }
            let levels = chosen.into_iter().zip(labels).map(|(path, label)| {
                format!("    {{ label = {}, kernel = {} }},\n", json!(label), json!(named(path)))
            });
            let levels: String = levels.collect();
            Ok(vec![format!("factor.revision.levels=[\n{levels}]")])
        }
        (kind, _) => {
            let (number, take) = match kind {
                Kernels::Several => ("two kernels", "ends"),
                _ => ("a kernel", "newest"),
            };
            let why = format!(
                "{} needs {number}\n  next step: name them with --kernel, or fetch them with \
                 `fwdlab kernels --fetch kernels --series host --take {take}` and try again",
                question.name
            );
            Err(CliError::Environment(why).into())
        }
    }
}

/// Returns the label of a kernel: the release in the name of a package, else the file's name.
fn label(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name = name.strip_suffix(".deb").unwrap_or(&name);
    let package = name.split('_').next().unwrap_or(name);
    package.strip_prefix("linux-image-").unwrap_or(package).to_owned()
}

/// Returns `path` relative to the directory of `file`: unchanged if that is the working directory
/// or the path is absolute.
fn from_file(file: &Path, path: &Path) -> PathBuf {
    let directory = file.parent().unwrap_or(Path::new(""));
    if path.is_absolute() {
        return path.to_owned();
    }
    let parts = directory.components().filter(|part| *part != Component::CurDir);
    let up: Option<PathBuf> =
        parts.map(|part| matches!(part, Component::Normal(_)).then_some("..")).collect();
    match up {
        Some(up) => up.join(path),
        None => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

fn create(file: &Path, text: &str) -> Result<()> {
    if file.exists() {
        let why = format!("{} exists already\n  next step: name another file", file.display());
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
    fn from_file_returns_paths_relative_to_the_file() {
        let path = |file: &str, path: &str| from_file(Path::new(file), Path::new(path));
        assert_eq!(path("x.toml", "kernels/a.deb"), Path::new("kernels/a.deb"));
        assert_eq!(path("./x.toml", "kernels/a.deb"), Path::new("kernels/a.deb"));
        assert_eq!(path("a/b/x.toml", "kernels/a.deb"), Path::new("../../kernels/a.deb"));
        assert_eq!(path("a/x.toml", "/k/a.deb"), Path::new("/k/a.deb"));
        assert!(path("../x.toml", "a.deb").is_absolute());
    }

    #[test]
    fn label_is_the_release_of_a_package() {
        let of = |path: &str| label(Path::new(path));
        assert_eq!(
            of("k/linux-image-6.12.43+deb13-cloud-amd64_6.12.43-1_amd64.deb"),
            "6.12.43+deb13-cloud-amd64"
        );
        assert_eq!(of("before.deb"), "before");
        assert_eq!(of("running"), "running");
    }
}
