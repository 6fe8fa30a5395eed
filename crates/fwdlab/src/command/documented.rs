//! Checks that the program accepts every command line in documents, examples and help texts, so
//! that renamed options are not forgotten there, and that the files that they name exist.

use super::Arguments;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use fwdlab_model::words;
use std::path::{Path, PathBuf};

/// A command line and its location.
struct Line {
    at: String,
    text: String,
    /// True for a command line in a block; false for one within a sentence, which may omit
    /// arguments.
    is_whole: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(directory)).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    paths.sort();
    paths
}

/// The text after the program's name; `None` if the line does not begin with it.
fn command(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    let line = line.strip_prefix("target/release/").unwrap_or(line);
    line.strip_prefix("fwdlab ")
}

/// Removes shell syntax and comments.
fn without_shell(line: &str) -> String {
    let ends = [" | ", " || ", " && ", " >", " 2>", "  ", " # ", " ...", " \\"];
    let cut = ends.iter().filter_map(|end| line.find(end)).min();
    let line = line[..cut.unwrap_or(line.len())].trim_end().trim_end_matches(';');
    // The end of a string that contains the whole command.
    let is_within = line.matches('\'').count() % 2 == 1;
    let line = if is_within { line.trim_end_matches('\'') } else { line };
    // A shell variable is some word; `N` is a number of the reader's choice.
    line.replace(" N ", " 3 ").replace('$', "")
}

/// Command lines in a Markdown text.
fn of_markdown(name: &str, text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut is_code = false;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let at = format!("{name}:{}", number + 1);
        if line.starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            let Some(begin) = command(line) else { continue };
            let mut text = begin.to_owned();
            while let Some(more) = text.strip_suffix('\\') {
                let next = lines.next().map_or("", |(_, next)| next.trim_start());
                text = format!("{}{next}", more);
            }
            found.push(Line { at, text: without_shell(&text), is_whole: true });
        } else {
            let quoted = line.split('`').skip(1).step_by(2).filter_map(command);
            found.extend(quoted.map(|text| Line {
                at: at.clone(),
                text: without_shell(text),
                is_whole: false,
            }));
        }
    }
    found
}

/// Command lines in the comments of an example, or after `Examples:` in a help text.
fn of_text(name: &str, text: &str) -> Vec<Line> {
    let lines = text.lines().enumerate();
    let found = lines.filter_map(|(number, line)| {
        let text = command(line.trim_start_matches('#'))?;
        let text = without_shell(text);
        Some(Line { at: format!("{name}:{}", number + 1), text, is_whole: false })
    });
    found.collect()
}

/// Returns the fault of a command line; `None` if the program accepts it.
fn fault(line: &Line) -> Option<String> {
    let report = |why: String| Some(format!("{}: `fwdlab {}`: {why}", line.at, line.text));
    let words = match words::split(&line.text) {
        Ok(words) => [vec!["fwdlab".to_owned()], words].concat(),
        Err(why) => return report(why),
    };
    let is_of_this_repository =
        |word: &&String| word.starts_with("experiments/") && word.ends_with(".toml");
    let is_missing = |word: &&String| !root().join(word.as_str()).is_file();
    if let Some(missing) = words.iter().find(|w| is_of_this_repository(w) && is_missing(w)) {
        return report(format!("there is no {missing}"));
    }
    // ministat reads its arguments itself, as ministat(1) does; clap would misread some.
    if words[1] == "ministat" {
        return None;
    }
    let error = Arguments::try_parse_from(&words).err()?;
    // A sentence names an option without its value.
    let is_named = error.to_string().contains("but none was supplied");
    match error.kind() {
        _ if is_named && !line.is_whole => None,
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            if !line.is_whole =>
        {
            None
        }
        _ => report(error.to_string()),
    }
}

#[test]
fn documents_contain_only_accepted_command_lines() {
    let mut documents = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    documents.extend(["docs", "docs/method"].iter().flat_map(|folder| files(folder, ".md")));
    let mut lines = Vec::new();
    let named = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for path in documents {
        let text = std::fs::read_to_string(&path).expect("a document");
        lines.extend(of_markdown(&named(&path), &text));
    }
    assert!(lines.iter().filter(|line| line.is_whole).count() > 40, "blocks are read");
    for path in files("experiments", ".toml") {
        let text = std::fs::read_to_string(&path).expect("an example");
        lines.extend(of_text(&named(&path), &text));
    }
    let faults: Vec<String> = lines.iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn help_contains_only_accepted_examples() {
    let mut whole = Arguments::command();
    whole.build();
    let mut lines = Vec::new();
    let mut commands = vec![("fwdlab".to_owned(), whole)];
    while let Some((name, mut command)) = commands.pop() {
        lines.extend(of_text(&name, &command.render_long_help().to_string()));
        let below = command.get_subcommands().cloned();
        commands.extend(below.map(|below| (format!("{name} {}", below.get_name()), below)));
    }
    // Usage lines contain placeholders in brackets and are not examples.
    lines.retain(|line| !line.text.contains(['<', '[']));
    assert!(lines.len() > 40, "{} examples", lines.len());
    let faults: Vec<String> = lines.iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn fault_names_the_location_of_a_rejected_line() {
    let text = "`fwdlab run` and `fwdlab run x.toml --no-such`\n```\n$ fwdlab run\n\
                sudo fwdlab plan experiments/none.toml | less\nfwdlab show x \\\n    --json  # c\n```\n";
    let lines = of_markdown("x.md", text);
    let faults: Vec<String> = lines.iter().filter_map(fault).collect();
    assert_eq!((lines.len(), faults.len()), (5, 3), "{faults:?}");
    assert!(faults[0].starts_with("x.md:1: `fwdlab run x.toml --no-such`: "), "{faults:?}");
    assert!(faults[1].starts_with("x.md:3: `fwdlab run`: "), "{faults:?}");
    assert_eq!(
        faults[2],
        "x.md:4: `fwdlab plan experiments/none.toml`: there is no experiments/none.toml"
    );
    assert_eq!(lines[4].text, "show x --json");
}
