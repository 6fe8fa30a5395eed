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
    pub(super) name: String,
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
        let name = |kernel: &Kernel| BuildName { name: kernel.name.clone(), subject: None };
        self.kernels.iter().map(name).collect()
    }

    fn profiles(&self) -> Vec<String> {
        self.counter.profiles()
    }

    fn code(&mut self, build: usize) -> Result<Result<Build, String>> {
        match &self.kernels[build].subject {
            Ok(subject) => Ok(Ok(subject.code(self.counter.has_features())?)),
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

/// Name of a kernel without the parts that packages of kernels share.
pub(super) fn short(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name = name.strip_suffix(".deb").unwrap_or(&name);
    let name = name.strip_prefix("linux-image-").unwrap_or(name);
    name.split('_').next().unwrap_or(name).to_owned()
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
        let subject = Subject::of_image(&image, self.cache)?;
        let code = subject.code(self.counter.has_features())?;
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
