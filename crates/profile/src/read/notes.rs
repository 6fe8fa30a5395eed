//! Results of a reader in addition to the profile: everything that it left out, by kind.

use super::{Format, ProfileError, detect};
use serde::Serialize;

/// Lines that a reader could not parse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// Number of lines.
    pub count: usize,
    /// The first lines: number (from 1) and beginning of the text.
    pub first: Vec<(usize, String)>,
}

/// Parts of a file that a reader recognised but left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Kind of the parts, in the plural.
    pub kind: String,
    /// Number of parts.
    pub count: u64,
}

/// Notes of a reader.
#[derive(Debug)]
pub(super) struct Notes {
    format: Format,
    pub(super) unit: String,
    pub(super) event: Option<String>,
    pub(super) unknown: Unknown,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) remarks: Vec<String>,
    /// Number of records (samples, stacks, rectangles) that became part of the profile.
    pub(super) read: usize,
    /// Records that could not be used: their number, and the line of the first.
    unusable: Option<(usize, usize)>,
    /// First line that belongs to another format.
    foreign: Option<(usize, Format)>,
}

impl Notes {
    pub(super) fn new(format: Format) -> Notes {
        Notes {
            format,
            unit: "samples".to_owned(),
            event: None,
            unknown: Unknown::default(),
            left_out: Vec::new(),
            remarks: Vec::new(),
            read: 0,
            unusable: None,
            foreign: None,
        }
    }

    /// Counts a line that could not be parsed; `number` from 1.
    pub(super) fn unknown(&mut self, number: usize, line: &str) {
        /// Number of lines kept, enough to recognise their kind.
        const KEPT: usize = 5;
        const KEPT_CHARS: usize = 60;
        self.unknown.count += 1;
        if self.unknown.first.len() < KEPT {
            let start = line.trim().chars().take(KEPT_CHARS).collect();
            self.unknown.first.push((number, start));
        }
        if self.foreign.is_none() {
            self.foreign = self.other_format(line).map(|other| (number, other));
        }
    }

    /// Format of an unambiguous line of another format. `None` for other lines.
    fn other_format(&self, line: &str) -> Option<Format> {
        detect::signature(line).filter(|other| *other != self.format)
    }

    /// Returns true for an unambiguous line of another format.
    pub(super) fn is_foreign(&self, line: &str) -> bool {
        self.other_format(line).is_some()
    }

    /// Counts parts that belong to no profile of this kind, e.g. samples of a second event.
    pub(super) fn left_out(&mut self, kind: &str, count: u64) {
        if count == 0 {
            return;
        }
        match self.left_out.iter_mut().find(|part| part.kind == kind) {
            Some(part) => part.count = part.count.saturating_add(count),
            None => self.left_out.push(LeftOut { kind: kind.to_owned(), count }),
        }
    }

    /// Counts a record that could not be used; `number` is its line.
    pub(super) fn unusable(&mut self, number: usize, kind: &str) {
        self.left_out(kind, 1);
        let (count, _) = self.unusable.get_or_insert((0, number));
        *count += 1;
    }

    pub(super) fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    /// Checks that the file is of one format, and that most of it was used.
    pub(super) fn check(&self, text: &str, is_empty: bool) -> Result<(), ProfileError> {
        let format = self.format;
        // Reported first, because mixed formats can be the reason for an empty result.
        if let Some((line, other)) = self.foreign {
            return Err(ProfileError::Mixed { line, format, other });
        }
        if let [(line, start), ..] = self.unknown.first.as_slice() {
            let all = text.lines().filter(|line| !line.trim().is_empty()).count();
            let (line, start, count) = (*line, start.clone(), self.unknown.count);
            if is_empty || is_majority(count, all) {
                return Err(ProfileError::NotUnderstood { line, format, count, all, start });
            }
        }
        if let Some((count, line)) = self.unusable
            && (is_empty || is_majority(count, count + self.read))
        {
            let kinds = describe(&self.left_out);
            return Err(ProfileError::Unusable { line, format, kinds, read: self.read });
        }
        if is_empty { Err(ProfileError::Empty { format }) } else { Ok(()) }
    }
}

/// Returns true if readers refuse a file of `all` records because they left out `count`.
pub fn is_majority(count: usize, all: usize) -> bool {
    2 * count > all
}

/// All notes of a profile, one sentence each.
pub(in super::super) fn sentences(
    remarks: &[String],
    left_out: &[LeftOut],
    unknown: &Unknown,
) -> Vec<String> {
    let mut notes = remarks.to_vec();
    if !left_out.is_empty() {
        notes.push(format!("left out: {}", describe(left_out)));
    }
    if let [(line, text), ..] = unknown.first.as_slice() {
        let count = unknown.count;
        notes.push(format!("lines not understood: {count}, the first is line {line}: {text}"));
    }
    notes
}

fn describe(left_out: &[LeftOut]) -> String {
    let parts = left_out.iter().map(|LeftOut { kind, count }| format!("{count} {kind}"));
    parts.collect::<Vec<String>>().join(", ")
}
