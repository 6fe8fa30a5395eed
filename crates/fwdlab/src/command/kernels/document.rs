//! Document of the kernels.

use super::apt::Source;
use super::catalogue::Offer;
use super::fetch::{self, Failure};
use fwdlab_results::document::table::Cell;
use fwdlab_results::document::{Block, Document, Remark, Table};
use fwdlab_vm::kernel::Installed;
use serde::{Serialize, Serializer};
use std::path::PathBuf;

/// Package of a kernel in a directory.
#[derive(Debug, Serialize)]
pub(super) struct Fetched {
    /// Its file.
    pub(super) file: PathBuf,
    /// Packages that it needs and that are not in its directory.
    pub(super) missing: Vec<String>,
}

/// All results, as `--json` prints them.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    flavour: String,
    /// Installed kernels.
    #[serde(serialize_with = "serialize_installed")]
    pub(super) installed: Vec<Installed>,
    /// Kernels in the directory of `--fetched`.
    pub(super) fetched: Vec<Fetched>,
    /// Mirror and suites; `None` if no mirror was queried.
    pub(super) source: Option<Source>,
    /// Unavailable suites, with the reason.
    pub(super) troubles: Vec<String>,
    /// Kernels of the suites that match the selection.
    pub(super) offers: Vec<Offer>,
    /// Directory for fetched kernels; `None` if none are fetched.
    pub(super) directory: Option<PathBuf>,
    /// Kernels that could not be fetched.
    pub(super) failures: Vec<Failure>,
}

fn serialize_installed<S: Serializer>(list: &[Installed], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(list.iter().map(|one| {
        serde_json::json!({
            "release": one.release,
            "image": one.image,
            "has_modules": one.has_modules,
            "is_running": one.is_running,
        })
    }))
}

impl Findings {
    /// Creates findings without kernels.
    pub(super) fn new(flavour: &str) -> Findings {
        Findings {
            flavour: flavour.to_owned(),
            installed: Vec::new(),
            fetched: Vec::new(),
            source: None,
            troubles: Vec::new(),
            offers: Vec::new(),
            directory: None,
            failures: Vec::new(),
        }
    }

    /// Returns the document.
    pub(super) fn document(&self) -> Document<'_> {
        let mut blocks = Vec::new();
        if self.directory.is_none() {
            blocks.push(self.installed());
        }
        if !self.fetched.is_empty() {
            blocks.push(self.fetched());
        }
        if !self.offers.is_empty() {
            blocks.push(self.offers());
        }
        let failures = self.failures.iter();
        let failures =
            failures.map(|one| format!("{} could not be fetched: {}", one.release, one.why));
        let warnings = self.troubles.iter().cloned().chain(failures);
        let in_one_line = |text: String| text.replace("\n  next step:", "; next step:");
        blocks.extend(warnings.map(|text| Block::remark(Remark::Warning, in_one_line(text))));
        if let Some(directory) = &self.directory {
            let text =
                format!("fwdlab count {} boots them, the oldest first.", directory.display());
            blocks.push(Block::text(text));
        }
        Document {
            title: "kernels".to_owned(),
            conclusion: Vec::new(),
            blocks,
            data: self,
            version: 1,
        }
    }

    fn installed(&self) -> Block {
        if self.installed.is_empty() {
            let text = "No kernel is installed on this machine (a container has only its host's).";
            return Block::text(text);
        }
        let table = Table::of(&self.installed)
            .words("installed", |one: &Installed| Cell::text(one.release.as_str()))
            .words("image", |one| Cell::text(one.image.display().to_string()))
            .words("remarks", |one| match (one.is_running, one.has_modules) {
                (true, true) => Cell::text("running"),
                (true, false) => Cell::text("running, no modules"),
                (false, true) => Cell::None,
                (false, false) => Cell::text("no modules"),
            });
        table.set(|table| table.name = Some("installed")).block()
    }

    fn fetched(&self) -> Block {
        let name =
            |one: &Fetched| one.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Table::of(&self.fetched)
            .words("fetched", move |one: &Fetched| Cell::text(name(one)))
            .words("state", |one| Cell::text(state(&one.missing, "complete")))
            .set(|table| table.name = Some("fetched"))
            .block()
    }

    fn offers(&self) -> Block {
        let title = if self.directory.is_some() { "kernel" } else { "available" };
        Table::of(&self.offers)
            .words(title, |offer: &Offer| Cell::text(offer.release.as_str()))
            .keys(&["release"])
            .hidden("version", |offer| Cell::text(offer.version.as_str()))
            .words("suites", |offer| Cell::text(offer.suites.join(", ")))
            .words("state", |offer| Cell::text(self.state(offer)))
            .set(|table| table.name = Some("available"))
            .block()
    }

    fn state(&self, offer: &Offer) -> String {
        let is_failed = self.failures.iter().any(|failure| failure.release == offer.release);
        let is_here = |file: &PathBuf| self.fetched.iter().any(|one| one.file.ends_with(file));
        let image = offer.packages.last().map(|package| fetch::file(package));
        let word = match &self.directory {
            Some(_) if is_failed => "failed",
            Some(_) => "fetched",
            None if image.as_ref().is_some_and(is_here) => "fetched",
            None => "available",
        };
        state(&offer.missing, &format!("{word}, {}", offer.size()))
    }
}

/// Returns the state of a kernel by the packages that are missing.
fn state(missing: &[String], complete: &str) -> String {
    // All names contain the release, as the row does.
    let part = |one: &String| one.split('-').take(2).collect::<Vec<_>>().join("-");
    match missing.is_empty() {
        true => complete.to_owned(),
        false => {
            let parts: Vec<String> = missing.iter().map(part).collect();
            format!("unavailable: no {}-*", parts.join("-*, no "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_results::document::Form;

    fn offer(release: &str, missing: &[&str]) -> Offer {
        Offer {
            release: release.to_owned(),
            series: "6.19".to_owned(),
            version: "6.19-1".to_owned(),
            suites: vec!["sid".to_owned()],
            packages: vec![format!("linux-image-{release}=6.19-1")],
            bytes: 34_671_208,
            missing: missing.iter().map(|one| (*one).to_owned()).collect(),
        }
    }

    #[test]
    fn document_lists_missing_packages_and_fetched_kernels() {
        let mut findings = Findings::new("cloud-amd64");
        findings.offers =
            vec![offer("6.19.1", &[]), offer("6.19.2", &["linux-modules-6.19.2=6.19-1"])];
        findings.fetched = vec![Fetched {
            file: "kernels/linux-image-6.19.1_6.19-1_amd64.deb".into(),
            missing: Vec::new(),
        }];
        let document = findings.document();
        let markdown = Form::named("markdown").unwrap();
        let text = (markdown.render)(&document, 160).unwrap();
        for part in
            ["34.7 MB", "unavailable: no linux-modules-", "fetched", "No kernel is installed"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
