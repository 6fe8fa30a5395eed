//! Runs the commands of docs/CI.md one after the other and compares their output with the document.

use crate::support::{INSTANT, Lab, machine};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Beginnings of commands that this test cannot run, with the reason.
const NOT_RUN: [(&str, &str); 7] = [
    ("apt-get ", "installs packages"),
    ("curl ", "needs the network"),
    ("dpkg ", "installs packages"),
    ("podman ", "needs a container engine"),
    ("fwdlab count ", "boots kernels: the tests of level vm do"),
    ("fwdlab lab check rack.toml", "needs a laboratory"),
    ("fwdlab run forwarding.toml --lab", "needs a laboratory"),
];

/// A command of the document, and the output shown after it.
#[derive(Debug, Default)]
struct Shown {
    command: String,
    output: Vec<String>,
}

/// Commands in blocks of `sh` and lines after `$ ` in blocks without a language.
fn commands(text: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let (mut language, mut is_continued) = (None, false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("```") {
            language = if language.is_some() { None } else { Some(name) };
            is_continued = false;
            continue;
        }
        let command = match language {
            Some("sh") => Some(line).filter(|line| !line.is_empty() && !line.starts_with('#')),
            Some("") => line.strip_prefix("$ "),
            _ => continue,
        };
        match (command, found.last_mut()) {
            (Some(line), Some(last)) if is_continued => last.command.push_str(line),
            (Some(line), _) => {
                found.push(Shown { command: line.to_owned(), ..Shown::default() });
            }
            (None, Some(last)) if language == Some("") => last.output.push(line.to_owned()),
            (None, _) => {}
        }
        is_continued = found.last().is_some_and(|last| last.command.ends_with('\\'));
        if let (true, Some(last)) = (is_continued, found.last_mut()) {
            last.command.pop();
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

/// A directory as the document expects it: the repository's experiments, two lists and stores.
fn prepared() -> Lab {
    let lab = Lab::new(INSTANT);
    symlink(root().join("experiments"), lab.path("experiments")).expect("a link");
    lab.write("before.pps", "1000000\n1002000\n990000\n1010000\n");
    lab.write("after.pps", "900000\n901000\n895000\n905000\n");
    for store in ["results/a", "results/b"] {
        lab.fwdlab(&["run", "x.toml", "--quiet", "--out", store]).expect(0);
    }
    lab
}

/// Runs a line in a shell with fwdlab in its path.
fn run(lab: &Lab, line: &str) -> (Option<i32>, String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_fwdlab"));
    let path = std::env::var("PATH").unwrap_or_default();
    let directory = program.parent().expect("a directory").display();
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(lab.path("."));
    command.env("PATH", format!("{directory}:{path}")).env("HOME", lab.path("."));
    command.env("XDG_CACHE_HOME", lab.path("cache"));
    let output = command.output().expect("a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn ci_document_commands_print_the_documented_output() {
    let text = std::fs::read_to_string(root().join("docs/CI.md")).expect("a document");
    let _alone = machine();
    let lab = prepared();
    let mut run_commands = 0;
    for Shown { command, output } in commands(&text) {
        if NOT_RUN.iter().any(|(start, _)| command.starts_with(start)) {
            continue;
        }
        run_commands += 1;
        let (code, stdout, stderr) = run(&lab, &command);
        // A measurement on this machine may have any result.
        let is_measured = command.contains("forwarding.sh");
        let codes: &[i32] = if is_measured { &[0, 1, 4] } else { &[0] };
        assert!(code.is_some_and(|code| codes.contains(&code)), "{command}: {code:?} {stderr}");
        let shown = output.iter().take_while(|line| *line != "...");
        for (line, (printed, number)) in shown.zip(stdout.lines().zip(1..)) {
            assert_eq!(line, printed, "{command}: line {number} of\n{stdout}");
        }
        let is_cut = output.iter().any(|line| line == "...");
        let whole = output.len() <= stdout.lines().count() || is_cut;
        assert!(whole, "{command}: shorter than the document shows:\n{stdout}");
    }
    assert!(run_commands >= 5, "only {run_commands} commands were found");
}

#[test]
fn commands_are_read_from_code_blocks() {
    let text = "```\n$ a b\nout\n...\n$ c\n```\n```sh\n# no\nd \\\n  e\n```\n```yaml\n$ f\n```\n";
    let found = commands(text);
    let commands: Vec<&str> = found.iter().map(|shown| shown.command.as_str()).collect();
    assert_eq!(commands, ["a b", "c", "d   e"]);
    assert_eq!(found[0].output, ["out", "..."]);
}
