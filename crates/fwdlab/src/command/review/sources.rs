//! Builds to review: kernels, or commits.

use super::counts::{Counter, Counts};
use super::range::Range;
use super::steps::{BuildName, Source};
use crate::command::counted_guest::Subject;
use anyhow::Result;
use fwdlab_codediff::{Build, Comparison};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A kernel, or the reason if its package is no complete kernel.
pub(super) struct Kernel {
    /// Name of its file.
    pub(super) file: String,
    pub(super) subject: Result<Subject, String>,
}

/// Kernels.
pub(super) struct Kernels {
    pub(super) kernels: Vec<Kernel>,
    pub(super) counter: Counter,
}

impl Source for Kernels {
    type Code = Build;

    fn names(&self) -> Vec<BuildName> {
        names_of(&self.kernels)
    }

    fn profiles(&self) -> Vec<String> {
        self.counter.profiles()
    }

    fn code(&mut self, build: usize) -> Result<Result<Build, String>> {
        match &self.kernels[build].subject {
            Ok(subject) => {
                let code = subject.code(self.counter.has_features());
                Ok(code.map_err(|error| format!("its code can't be read: {error:#}")))
            }
            Err(why) => Ok(Err(why.clone())),
        }
    }

    fn compare(old: &Build, new: &Build, functions: &[&str]) -> Comparison {
        fwdlab_codediff::compare(old, new, functions.iter().copied())
    }

    fn callers<'n>(code: &Build, functions: &[&'n str]) -> BTreeMap<&'n str, BTreeSet<&'n str>> {
        fwdlab_codediff::callers(code, functions.iter().copied())
    }

    fn count(&mut self, build: usize) -> Result<Counts> {
        match &self.kernels[build].subject {
            Ok(subject) => self.counter.count(subject),
            Err(why) => anyhow::bail!("{why}"),
        }
    }
}

/// Names of kernels by their releases; with the packages' versions where these are the same.
pub(super) fn names_of(kernels: &[Kernel]) -> Vec<BuildName> {
    let releases: Vec<&str> = kernels.iter().map(|kernel| release(&kernel.file)).collect();
    let name = |kernel: &Kernel| {
        let of = release(&kernel.file);
        // Versions of a package can have the same release.
        let is_unique = releases.iter().filter(|other| **other == of).count() == 1;
        let name = if is_unique { of } else { short(&kernel.file) };
        let file = Some(kernel.file.clone());
        BuildName { name: name.to_owned(), subject: None, file }
    };
    kernels.iter().map(name).collect()
}

/// Name of a kernel's file without the parts that all packages of kernels share.
fn short(file: &str) -> &str {
    let name = file.strip_suffix(".deb").unwrap_or(file);
    name.strip_prefix("linux-image-").unwrap_or(name)
}

/// Release of a kernel by the name of its file.
fn release(file: &str) -> &str {
    let name = short(file);
    name.split('_').next().unwrap_or(name)
}

/// Commits, built when they are needed.
pub(super) struct Commits<'a> {
    pub(super) range: Range,
    pub(super) counter: Counter,
    pub(super) cache: &'a Path,
    /// The kernel of the last build.
    pub(super) code: Option<(usize, Subject)>,
}

impl Source for Commits<'_> {
    type Code = Build;

    fn names(&self) -> Vec<BuildName> {
        self.range.names()
    }

    fn profiles(&self) -> Vec<String> {
        self.counter.profiles()
    }

    fn code(&mut self, build: usize) -> Result<Result<Build, String>> {
        let image = match self.range.kernel(build)? {
            Ok(image) => image,
            Err(why) => return Ok(Err(why)),
        };
        let subject = match Subject::of_image(&image, self.cache) {
            Ok(subject) => subject,
            Err(error) => return Ok(Err(format!("its image can't be read: {error:#}"))),
        };
        let code = match subject.code(self.counter.has_features()) {
            Ok(code) => code,
            Err(error) => return Ok(Err(format!("its code can't be read: {error:#}"))),
        };
        self.code = Some((build, subject));
        Ok(Ok(code))
    }

    fn compare(old: &Build, new: &Build, functions: &[&str]) -> Comparison {
        fwdlab_codediff::compare(old, new, functions.iter().copied())
    }

    fn callers<'n>(code: &Build, functions: &[&'n str]) -> BTreeMap<&'n str, BTreeSet<&'n str>> {
        fwdlab_codediff::callers(code, functions.iter().copied())
    }

    fn count(&mut self, build: usize) -> Result<Counts> {
        match &self.code {
            Some((known, subject)) if *known == build => self.counter.count(subject),
            _ => match self.range.kernel(build)? {
                Ok(image) => self.counter.count(&Subject::of_image(&image, self.cache)?),
                Err(why) => anyhow::bail!("{why}"),
            },
        }
    }
}
