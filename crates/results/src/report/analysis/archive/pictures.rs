//! Flame graphs and call graphs that were published, and those that are missing.

use super::super::VariantResult;
use crate::store::{DocumentKind, Import};
use serde::Serialize;

/// A published picture or table of where CPU time went.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// File in the report's directory.
    pub file: String,
    /// Where it was read.
    pub source: String,
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
            file: format!("{FOLDER}/{base}"),
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

/// The files of the pictures: name in the report and content.
pub(in crate::report) fn files(import: &Import) -> Vec<(String, &[u8])> {
    let kinds = [DocumentKind::FlameGraph, DocumentKind::CallGraph, DocumentKind::Stacks];
    let documents = import.documents.iter().filter(|d| kinds.contains(&d.kind));
    documents
        .map(|document| {
            let base = document.path.rsplit('/').next().unwrap_or(&document.path);
            (format!("{FOLDER}/{base}"), document.content.as_slice())
        })
        .collect()
}
