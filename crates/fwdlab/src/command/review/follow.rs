//! `fwdlab review --follow`: fetches the new kernels of a distribution, and reports those that no
//! earlier call has reported.

use super::Arguments;
use super::steps::Review;
use crate::command::kernels;
use crate::error::CliError;
use anyhow::{Context, Result};
use fwdlab_results::document::{Document, Form};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// File with the names of all reported builds, one per line.
const REPORTED: &str = "reported.txt";
/// Page with all builds.
const PAGE: &str = "review.html";
/// Width in columns, which HTML ignores.
const WIDTH: usize = 80;

/// Builds that earlier calls have reported, and where they are recorded.
pub(super) struct Follow {
    out: PathBuf,
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
        write(&self.out, PAGE, &(form.render)(&page(review), WIDTH)?)?;
        let Review { steps, builds, .. } = &mut *review;
        steps.retain(|step| !self.reported.contains(&builds[step.build].name));
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
        let names = complete.map(|step| review.builds[step.build].name.clone());
        let all: BTreeSet<String> = self.reported.iter().cloned().chain(names).collect();
        let text: String = all.iter().map(|name| format!("{name}\n")).collect();
        write(&self.out, REPORTED, &text)
    }

    /// Path of the page of all builds.
    pub(super) fn page(&self) -> PathBuf {
        self.out.join(PAGE)
    }
}

/// Replaces a file, complete or not at all.
fn write(directory: &Path, name: &str, text: &str) -> Result<()> {
    let (path, part) = (directory.join(name), directory.join(format!(".{name}.part")));
    let written = fs::create_dir_all(directory).and_then(|()| fs::write(&part, text));
    written.and_then(|()| fs::rename(&part, &path)).with_context(|| path.display().to_string())
}
