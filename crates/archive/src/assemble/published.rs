//! Results published with the logs, and their reproduction from the logs.

use super::documents::{self, FileClass, LARGEST};
use super::journal::Journal;
use super::lists::{self, Agreement, List};
use super::{Group, Tally};
use crate::found::{FoundFile, ResultSet};
use crate::published;
use crate::published::Readme;
use fwdlab_results::store::{
    Document, DocumentKind, Likeness, ReproducedBlock, Reproductions, UnpatchedSet,
};

/// Everything published, after reading.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// The texts and pictures to keep.
    pub(super) documents: Vec<Document>,
    /// The parsed text.
    pub(super) readme: Option<Readme>,
    /// Path of the text's document.
    text: Option<String>,
    /// True if the lists were made with the upper median.
    pub(super) upper: bool,
}

/// Reproduced results.
#[derive(Debug, Default)]
pub(super) struct Matched {
    /// For each published block the reference variant and the variants compared with it.
    pub(super) references: Vec<(usize, Vec<usize>)>,
    /// Counts.
    pub(super) tally: Tally,
    /// Differences, one sentence each.
    pub(super) notes: Vec<String>,
    /// The comparison to store.
    pub(super) reproductions: Reproductions,
}

impl Published {
    /// Reads the files that are not logs, and assigns lists to groups.
    pub(super) fn read(
        set: &ResultSet,
        others: &[&FoundFile],
        groups: &mut [Group],
        read: &impl Fn(&FoundFile) -> std::io::Result<Vec<u8>>,
        journal: &mut Journal,
    ) -> Published {
        let names: Vec<String> = groups.iter().map(|group| group.identity.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut published = Published::default();
        let mut lists: Vec<(List, Document)> = Vec::new();
        for file in others {
            let taken = documents::taken(file, &names);
            if let FileClass::Left(why) = taken {
                journal.ignore(file, why);
                continue;
            }
            if file.size > LARGEST {
                journal.ignore(file, "larger than what is kept of a published file");
                continue;
            }
            let content = match read(file) {
                Ok(content) => content,
                Err(error) => {
                    journal.refuse(file, error.to_string());
                    continue;
                }
            };
            let kind = match taken {
                FileClass::Kept(kind) => kind,
                _ => DocumentKind::List,
            };
            let variant = documents::group(file.base(), &names);
            let document = Document { path: file.name.clone(), kind, variant, content };
            if kind != DocumentKind::List {
                published.add(document);
                continue;
            }
            match published::lists::List::read(&document.content) {
                Some(list) => {
                    let (base, values) = (file.base().to_owned(), list.numbers());
                    lists.push((List { base, values }, document));
                }
                None if file.base().ends_with(".pps") => {
                    journal.refuse(file, list_fault(&document.content));
                }
                None => journal.ignore(file, "of no kind that holds results"),
            }
        }
        published.assign(lists, groups, journal);
        published.add_configurations(set, read, journal);
        published.documents.sort_by(|a, b| a.path.cmp(&b.path));
        published.documents.dedup_by(|a, b| a.path == b.path);
        published
    }

    fn add(&mut self, document: Document) {
        if document.kind == DocumentKind::Readme && self.readme.is_none() {
            self.text = Some(document.path.clone());
            self.readme = Some(Readme::parse(&String::from_utf8_lossy(&document.content)));
        }
        self.documents.push(document);
    }

    fn assign(
        &mut self,
        lists: Vec<(List, Document)>,
        groups: &mut [Group],
        journal: &mut Journal,
    ) {
        let plain: Vec<List> = lists.iter().map(|(list, _)| list.clone()).collect();
        let pairs: Vec<(&str, &lists::Figures)> =
            groups.iter().map(|group| (group.identity.name.as_str(), &group.figures)).collect();
        let assigned = lists::assign(&plain, &pairs);
        for (group, found) in groups.iter_mut().zip(&assigned) {
            group.list = found.map(|at| plain[at].clone());
        }
        self.upper = lists::is_upper(
            groups.iter().filter_map(|group| Some((group.list.as_ref()?, &group.figures))),
        );
        for (at, (list, mut document)) in lists.into_iter().enumerate() {
            document.variant = assigned.iter().position(|found| *found == Some(at));
            if document.variant.is_none() {
                journal
                    .notes
                    .push(format!("{}: published list with no raw logs; not checked", list.base));
            }
            self.documents.push(document);
        }
    }

    /// Keeps the configurations of the bench and of the harness unchanged.
    fn add_configurations(
        &mut self,
        set: &ResultSet,
        read: &impl Fn(&FoundFile) -> std::io::Result<Vec<u8>>,
        journal: &mut Journal,
    ) {
        let trees = set.configurations.iter().flat_map(|tree| &tree.files);
        let trees = trees.map(|file| (file, DocumentKind::Configuration));
        for (file, kind) in trees.chain(set.lab.iter().map(|file| (file, DocumentKind::Lab))) {
            match read(file) {
                Ok(content) => {
                    let path = file.name.clone();
                    self.documents.push(Document { path, kind, variant: None, content });
                }
                Err(error) => journal.refuse(file, error.to_string()),
            }
        }
    }

    /// Returns the published title.
    pub(super) fn title(&self) -> Option<String> {
        let title = self.readme.as_ref()?.title.as_ref()?;
        Some(title.trim_end_matches([':', ' ']).to_owned()).filter(|title| !title.is_empty())
    }

    /// Compares lists, blocks and tables with the groups' values, and with the values of the set
    /// without the patch.
    pub(super) fn matched(
        &self,
        groups: &[Group],
        values: &[Vec<f64>],
        unpatched: Option<&UnpatchedSet>,
    ) -> Matched {
        let mut matched = Matched::default();
        let tally = &mut matched.tally;
        for group in groups {
            match group.list.as_ref().map(|l| lists::agreement(l, &group.figures, self.upper)) {
                None => tally.lists_absent += 1,
                Some(Agreement::Equal) => tally.lists_equal += 1,
                Some(Agreement::Different(how)) => {
                    tally.lists_different += 1;
                    matched.notes.push(format!("published otherwise: {how}"));
                }
            }
        }
        let variants: Vec<(&str, &[f64])> = groups
            .iter()
            .zip(values)
            .map(|(group, values)| (group.identity.name.as_str(), values.as_slice()))
            .collect();
        let found = published::reproductions(&self.documents, &variants, unpatched);
        // The first text determines which variants are compared.
        let is_first = |block: &&ReproducedBlock| self.text.as_ref() == Some(&block.document);
        for block in found.blocks.iter().filter(is_first) {
            match block.likeness {
                Likeness::Equal => tally.blocks_equal += 1,
                Likeness::Different => tally.blocks_different += 1,
                Likeness::Unmatched => tally.blocks_unmatched += 1,
            }
            if let Some((Some(reference), others)) = block.members.split_first() {
                matched.references.push((*reference, others.iter().flatten().copied().collect()));
            }
        }
        for table in &found.tables {
            tally.rows_equal += table.equal;
            tally.rows_different += table.rows - table.equal;
        }
        matched.reproductions = found;
        matched
    }
}

/// Describes the first line of a list that is not a number.
fn list_fault(content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let Some(&line) = published::lists::List::parse(&text).others.first() else {
        return "no value in it".to_owned();
    };
    let shown: String = text.lines().nth(line - 1).unwrap_or_default().chars().take(60).collect();
    format!("line {line}: {shown:?} is no number of packets per second")
}
