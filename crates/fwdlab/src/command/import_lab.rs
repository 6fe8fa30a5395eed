//! `fwdlab import-lab`: imports a laboratory of bench-lab.sh.

use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal::{self, wrap};
use anyhow::Result;
use fwdlab_model::bench_lab::{Imported, import};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Create a laboratory and an experiment from a configuration of bench-lab.sh.
///
/// bench-lab.sh is the harness of the FreeBSD netbenches. Its configuration is a shell script of
/// assignments with a diagram in its comments; it is read, never executed. Two files are written:
/// lab.toml with hosts, interfaces and cables, and experiment.toml with the traffic. Settings that
/// are not translated are listed, and are in the comments of the files.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab import-lab bench-lab.config
  fwdlab import-lab machine/bench-lab.config --configs configs --out rack
  fwdlab lab show rack/lab.toml
  fwdlab plan rack/experiment.toml")]
pub(crate) struct Arguments {
    /// Configuration of bench-lab.sh
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Directory of lab.toml and experiment.toml; neither file may exist
    #[arg(long, short, value_name = "DIR", default_value = ".", alias = "output")]
    out: PathBuf,
    /// Directory of configurations of the DUT: each directory in it becomes a level of a factor,
    /// copied over the DUT's files
    #[arg(long, value_name = "DIR")]
    configs: Option<PathBuf>,
}

/// Writes the translation, and lists settings that are not translated.
///
/// # Errors
/// Lines that are not assignments, missing settings, files that can't be read or written, and files
/// that already exist.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let shown = arguments.file.display().to_string();
    let text = fs::read(&arguments.file)
        .map_err(|error| CliError::Mistake(format!("can't read {shown}: {error}")))?;
    let text = String::from_utf8(text)
        .map_err(|_| CliError::Mistake(format!("{shown} is no text in UTF-8")))?;
    let overlays = match &arguments.configs {
        Some(configs) => overlays(configs, &arguments.out)?,
        None => Vec::new(),
    };
    let Imported { lab, experiment, remarks } = import(&shown, &text, &overlays)?;
    let directory = &arguments.out;
    fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
    let files =
        [(directory.join("lab.toml"), lab), (directory.join("experiment.toml"), experiment)];
    for (path, _) in &files {
        if path.exists() {
            let why = format!("{} exists; name another directory with --out", path.display());
            return Err(CliError::Mistake(why).into());
        }
    }
    for (path, text) in &files {
        File::create_new(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| unwritable(path, &error))?;
    }
    terminal::print(&written(&files.map(|(path, _)| path), &remarks, terminal::width()))?;
    Ok(Exit::Done)
}

fn written([lab, experiment]: &[PathBuf; 2], remarks: &[String], width: usize) -> String {
    let mut out = format!("written: {} and {}\n", lab.display(), experiment.display());
    if !remarks.is_empty() {
        out += "\nNot translated, or assumed (also in the files' comments):\n";
    }
    for remark in remarks {
        out += &wrap(&format!("- {remark}"), width, "  ");
    }
    out += &format!(
        "\nnext step: fwdlab lab show {}; fwdlab plan {}\n",
        lab.display(),
        experiment.display()
    );
    out
}

/// The directories in `configs`, sorted by name (numbers by value), with the paths that an
/// experiment in `output` uses.
fn overlays(configs: &Path, output: &Path) -> Result<Vec<String>> {
    let unreadable =
        |error: io::Error| CliError::Mistake(format!("can't read {}: {error}", configs.display()));
    let mut names = Vec::new();
    for entry in fs::read_dir(configs).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if !path.is_dir() {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        names.extend(name.filter(|name| !name.starts_with('.')));
    }
    if names.is_empty() {
        let why = format!("there is no directory in {}", configs.display());
        return Err(CliError::Mistake(why).into());
    }
    names.sort_by_key(|name| (name.parse::<u64>().unwrap_or(u64::MAX), name.clone()));
    let base = configs.canonicalize().map_err(unreadable)?;
    let output = output.canonicalize().ok();
    let base = match output.as_ref().and_then(|output| base.strip_prefix(output).ok()) {
        Some(relative) => relative.to_path_buf(),
        None => base,
    };
    Ok(names.into_iter().map(|name| base.join(name).display().to_string()).collect())
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    CliError::Environment(format!("can't write {}: {error}", path.display()))
}
