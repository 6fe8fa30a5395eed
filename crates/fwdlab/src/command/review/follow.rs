//! `fwdlab review --follow`: fetches the new kernels of a distribution, and reports those that no
//! earlier call has reported.

use super::Arguments;
use super::steps::{BuildName, Review};
use crate::command::kernels;
use crate::error::CliError;
use anyhow::{Context, Result};
use fwdlab_results::document::{Document, Form};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of the reported builds: a line with the profiles and the kernel's file for each.
const REPORTED: &str = "reported.txt";
/// Beginning of the name of the page with all builds; the profiles follow.
const PAGE: &str = "review";
/// Width in columns, which HTML ignores.
const WIDTH: usize = 80;

/// Builds that earlier calls have reported, and where they are recorded.
pub(super) struct Follow {
    out: PathBuf,
    /// Lines of the file.
    reported: BTreeSet<String>,
}

impl Follow {
    /// Fetches new kernels, and reads the builds that were reported before; `None` without
    /// `--follow`.
    ///
    /// # Errors
    /// If there is not exactly one directory, kernels can't be fetched, or files can't be read.
    pub(super) fn begin(arguments: &Arguments) -> Result<Option<Follow>> {
        if !arguments.follow {
            let is_default = arguments.source == kernels::SourceArguments::default();
            return match is_default {
                true => Ok(None),
                false => Err(CliError::Mistake(
                    "options that select Debian's kernels need --follow\n  next step: add --follow, \
                     or fetch kernels with `fwdlab kernels --fetch DIRECTORY`"
                        .to_owned(),
                )
                .into()),
            };
        }
        let directory = match arguments.builds.as_slice() {
            [one] if one.is_dir() || !one.exists() => one,
            _ => {
                return Err(CliError::Mistake(
                    "--follow needs one directory of kernel packages\n  next step: name the \
                     directory into which kernels are fetched, such as `kernels`"
                        .to_owned(),
                )
                .into());
            }
        };
        // A kernel that can't be fetched today is fetched tomorrow; the others are reviewed.
        for remark in kernels::fetch_new(&arguments.source, directory)? {
            eprintln!("fwdlab: {remark}");
        }
        Follow::read(&arguments.out).map(Some)
    }

    /// Reads the builds that were reported before.
    ///
    /// # Errors
    /// If the file can't be read.
    pub(super) fn read(out: &Path) -> Result<Follow> {
        let file = out.join(REPORTED);
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.with_context(|| file.display().to_string())?,
        };
        let reported = text.lines().map(str::to_owned).collect();
        Ok(Follow { out: out.to_owned(), reported })
    }

    /// Writes the page of all builds, and removes those from the review that were reported before.
    ///
    /// # Errors
    /// If the page can't be written.
    pub(super) fn keep_new(
        &self,
        review: &mut Review,
        page: impl Fn(&Review) -> Document<'_>,
    ) -> Result<()> {
        let form = Form::named("html").context("no HTML")?;
        let (name, text) = (page_name(review), (form.render)(&page(review), WIDTH)?);
        write(&self.out, &name, &text)?;
        let lines: Vec<String> = (0..review.builds.len()).map(|at| line(review, at)).collect();
        review.steps.retain(|step| !self.reported.contains(&lines[step.build]));
        if review.steps.len() < review.builds.len() - 1 {
            // They include builds that were reported before.
            review.ends.clear();
            review.gaps.clear();
        }
        Ok(())
    }

    /// Records the builds of a printed review. A build that failed is reported again.
    ///
    /// # Errors
    /// If the file can't be written.
    pub(super) fn record(&self, review: &Review) -> Result<()> {
        let complete = review.steps.iter().filter(|step| step.is_complete());
        let lines = complete.map(|step| line(review, step.build));
        let all: BTreeSet<String> = self.reported.iter().cloned().chain(lines).collect();
        let text: String = all.iter().map(|line| format!("{line}\n")).collect();
        write(&self.out, REPORTED, &text)
    }

    /// Path of the page of all builds.
    pub(super) fn page(&self, review: &Review) -> PathBuf {
        self.out.join(page_name(review))
    }
}

/// A build in the file: its kernel was reported for these profiles.
fn line(review: &Review, build: usize) -> String {
    let BuildName { name, file, .. } = &review.builds[build];
    format!("{}\t{}", review.profiles.join(", "), file.as_ref().unwrap_or(name))
}

/// Name of the page, which differs between reviews of other profiles.
fn page_name(review: &Review) -> String {
    let profiles: String = review.profiles.iter().map(|one| format!("-{one}")).collect();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let profiles: String = profiles.replace(' ', "-").chars().filter(is_plain).collect();
    format!("{PAGE}{profiles}.html")
}

/// Replaces a file, complete or not at all.
fn write(directory: &Path, name: &str, text: &str) -> Result<()> {
    let (path, part) = (directory.join(name), directory.join(format!(".{name}.part")));
    let written = fs::create_dir_all(directory).and_then(|()| fs::write(&part, text));
    written.and_then(|()| fs::rename(&part, &path)).with_context(|| path.display().to_string())
}
