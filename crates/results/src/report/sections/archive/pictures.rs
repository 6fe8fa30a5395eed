//! Published flame graphs and call graphs, and missing ones.
//!
//! Both the store and the archive contain them: a report links the original file and adds no third
//! copy, unless it has to be self-contained.

use crate::report::analysis::VariantResult;
use crate::store::{Document, DocumentKind, Import};
use serde::Serialize;
use std::path::Path;

/// A published picture or table of CPU time.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// Its title.
    pub title: String,
    /// Its address: a relative reference to the original file, or a copy in the report's directory.
    pub file: String,
    /// Its original path, below the imported directory.
    pub source: String,
}

/// Prefix of a reference to the original file.
const READ: &str = "file://";

/// Returns the reference to the original file; `None` if the import recorded no absolute path.
fn reference(import: &Import, document: &Document) -> Option<String> {
    let path = Path::new(&import.origin);
    let path = path.is_absolute().then(|| path.join(&document.path))?;
    Some(format!("{READ}{}", percent_encode(&path)))
}

/// Percent-encodes a path for a reference.
fn percent_encode(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/+=,@".contains(&byte);
    let encode = |byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.to_string_lossy().bytes().map(encode).collect()
}

/// Returns the name of the copy of a published picture in a report.
fn copy(path: &str) -> String {
    format!("{FOLDER}/{}", path.rsplit('/').next().unwrap_or(path))
}

/// Replaces references to the original files by copies in the report.
pub(in crate::report) fn copy_pictures(pictures: &mut [Picture]) {
    for picture in pictures {
        picture.file = copy(&picture.source);
    }
}

/// Makes references to the original files relative to `directory`, the report's directory.
pub(in crate::report) fn relate_pictures(pictures: &mut [Picture], directory: &Path) {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf());
    let directory = percent_encode(&directory);
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

/// Returns the pictures of an import, and the missing ones.
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

/// Returns the name and content of the pictures that are copies.
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
    fn pictures_reference_original_files_or_copies() {
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
        let reference = "file:///srv/archive/results/a%20b/bench.%231%20%2850%25%29.svg";
        assert_eq!((found[0].file.as_str(), missing.len()), (reference, 1));
        assert_eq!(copies(&import("/srv/archive"), &found).count(), 0);
        let mut related = found.clone();
        relate_pictures(&mut related, Path::new("/srv/results/x y"));
        let reference = "../../archive/results/a%20b/bench.%231%20%2850%25%29.svg";
        assert_eq!(related[0].file, reference);
        assert_eq!(copies(&import("/srv/archive"), &related).count(), 0);
        copy_pictures(&mut found);
        let copied: Vec<_> = found.iter().map(|picture| picture.file.as_str()).collect();
        assert_eq!(copied, ["flamegraphs/bench.#1 (50%).svg"]);
        // Without a known path, the copy in the store is used.
        let (found, _) = pictures(&import("archive"), &[]);
        let import = import("archive");
        let all: Vec<_> = copies(&import, &found).collect();
        assert_eq!(all, [("flamegraphs/bench.#1 (50%).svg", b"<svg/>".as_slice())]);
    }
}
