//! Flame graphs and call graphs that were published, and those that are missing.
//!
//! The store holds them, and so does the archive: a report refers to the file that was
//! read and adds no third copy, unless it is asked to stand alone.

use super::super::{Analysis, VariantResult};
use crate::store::{Document, DocumentKind, Import};
use serde::Serialize;
use std::path::Path;

/// A published picture or table of where CPU time went.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// Where it can be seen: the file that was read, as a reference of a page, or a copy
    /// in the report's directory.
    pub file: String,
    /// Where it was read, below the directory that was imported.
    pub source: String,
}

/// What begins a reference to the file that was read.
const READ: &str = "file://";

/// The reference to a published file where it was read; none where only the importer
/// knew the place.
fn reference(import: &Import, document: &Document) -> Option<String> {
    let path = Path::new(&import.origin);
    let path = path.is_absolute().then(|| path.join(&document.path))?;
    Some(format!("{READ}{}", encoded(&path)))
}

/// A path as references have it.
fn encoded(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/+=,@".contains(&byte);
    let encode = |byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.to_string_lossy().bytes().map(encode).collect()
}

/// The copy of a published picture in a report.
fn copy(path: &str) -> String {
    format!("{FOLDER}/{}", path.rsplit('/').next().unwrap_or(path))
}

impl Analysis {
    /// Makes the published pictures copies in the report, instead of references to the files that
    /// were read: the report then stands alone.
    pub fn copy_pictures(&mut self) {
        if let Some(archive) = &mut self.archive {
            copy_all(&mut archive.pictures);
        }
    }

    /// Makes references to the files that were read relative to `directory`, where the report is
    /// written: a report names no place of the machine that made it.
    pub fn relate_pictures(&mut self, directory: &Path) {
        if let Some(archive) = &mut self.archive {
            relate_all(&mut archive.pictures, directory);
        }
    }
}

fn copy_all(pictures: &mut [Picture]) {
    for picture in pictures {
        picture.file = copy(&picture.source);
    }
}

fn relate_all(pictures: &mut [Picture], directory: &Path) {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf());
    let directory = encoded(&directory);
    let from: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for picture in pictures {
        let Some(path) = picture.file.strip_prefix(READ) else { continue };
        let to: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let up = from[common..].iter().map(|_| "..");
        picture.file = up.chain(to[common..].iter().copied()).collect::<Vec<&str>>().join("/");
    }
}

/// Folder of the report's flame graphs and call graphs.
const FOLDER: &str = "flamegraphs";

/// The pictures of an import, and what is missing beside them.
pub(super) fn pictures(import: &Import, variants: &[VariantResult]) -> (Vec<Picture>, Vec<String>) {
    let mut pictures = Vec::new();
    let mut missing = Vec::new();
    for document in &import.documents {
        let base = document.path.rsplit('/').next().unwrap_or(&document.path);
        let what = match document.kind {
            DocumentKind::FlameGraph => "flame graph",
            DocumentKind::CallGraph | DocumentKind::Stacks => "call graph",
            _ => continue,
        };
        let label = document.variant.and_then(|v| variants.get(v)).map(|v| v.label.as_str());
        pictures.push(Picture {
            title: match label {
                Some(label) => format!("{label}: {what} as published"),
                None => format!("{base}: {what} as published"),
            },
            file: reference(import, document).unwrap_or_else(|| copy(&document.path)),
            source: document.path.clone(),
        });
        if document.kind == DocumentKind::FlameGraph {
            let stem = document.path.strip_suffix(".svg").unwrap_or(&document.path);
            let stacks = [".graph", ".stack", ".stacks", ".folded"];
            let is_there = import
                .documents
                .iter()
                .any(|other| stacks.iter().any(|suffix| other.path == format!("{stem}{suffix}")));
            if !is_there {
                missing.push(format!(
                    "{stem}.graph: the stacks that {base} was drawn from; what is too narrow to be \
                     seen in the picture is lost"
                ));
            }
        }
    }
    (pictures, missing)
}

/// Those pictures that are copies: name in the report and content.
pub(in crate::report) fn copies<'a>(
    import: &'a Import,
    pictures: &'a [Picture],
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    pictures.iter().filter(|picture| picture.file == copy(&picture.source)).filter_map(|picture| {
        let document = import.documents.iter().find(|d| d.path == picture.source)?;
        Some((picture.file.as_str(), document.content.as_slice()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_files_are_referred_to_where_they_were_read() {
        let document = Document {
            path: "results/a b/bench.#1 (50%).svg".into(),
            kind: DocumentKind::FlameGraph,
            variant: None,
            content: b"<svg/>".to_vec(),
        };
        let import = |origin: &str| Import {
            origin: origin.into(),
            documents: vec![document.clone()],
            ..Import::default()
        };
        let (mut found, missing) = pictures(&import("/srv/archive"), &[]);
        let there = "file:///srv/archive/results/a%20b/bench.%231%20%2850%25%29.svg";
        assert_eq!((found[0].file.as_str(), missing.len()), (there, 1));
        assert_eq!(copies(&import("/srv/archive"), &found).count(), 0);
        let mut related = found.clone();
        relate_all(&mut related, Path::new("/srv/results/x y"));
        let there = "../../archive/results/a%20b/bench.%231%20%2850%25%29.svg";
        assert_eq!(related[0].file, there);
        assert_eq!(copies(&import("/srv/archive"), &related).count(), 0);
        copy_all(&mut found);
        let copied: Vec<_> = found.iter().map(|picture| picture.file.as_str()).collect();
        assert_eq!(copied, ["flamegraphs/bench.#1 (50%).svg"]);
        // Where the place is unknown, the copy in the store is all there is.
        let (found, _) = pictures(&import("archive"), &[]);
        let import = import("archive");
        let all: Vec<_> = copies(&import, &found).collect();
        assert_eq!(all, [("flamegraphs/bench.#1 (50%).svg", b"<svg/>".as_slice())]);
    }
}
