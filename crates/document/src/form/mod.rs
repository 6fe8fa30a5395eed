//! The forms of a document: one file and one line each.

pub mod bencher;
pub mod csv;
pub mod github_action_benchmark;
pub mod html;
pub mod json;
pub mod junit;
pub mod ktap;
pub mod mail;
pub mod markdown;
pub mod text;

use super::Document;

/// A way to write a document.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Its name.
    pub name: &'static str,
    /// True where pictures are part of it, not files beside it.
    pub has_pictures: bool,
    /// True if a file of this form contains one document, so that two can't follow each other.
    pub is_single: bool,
    /// The document in this form, ending with a line feed; for a terminal of so many columns
    /// where that matters.
    pub render: fn(&Document<'_>, usize) -> Result<String, serde_json::Error>,
}

/// Every form.
pub const FORMS: [Form; 10] = [
    Form {
        name: "text",
        has_pictures: false,
        is_single: false,
        render: |document, width| Ok(text::render(document, width)),
    },
    Form {
        name: "markdown",
        has_pictures: false,
        is_single: false,
        render: |document, _| Ok(markdown::render(document)),
    },
    Form {
        name: "html",
        has_pictures: true,
        is_single: false,
        render: |document, _| Ok(html::render(document)),
    },
    Form {
        name: "csv",
        has_pictures: false,
        is_single: false,
        render: |document, _| Ok(csv::render(document)),
    },
    Form {
        name: "mail",
        has_pictures: false,
        is_single: false,
        render: |document, _| Ok(mail::render(document)),
    },
    Form {
        name: "ktap",
        has_pictures: false,
        is_single: false,
        render: |document, _| Ok(ktap::render(document)),
    },
    Form {
        name: "junit",
        has_pictures: false,
        is_single: true,
        render: |document, _| Ok(junit::render(document)),
    },
    Form {
        name: "json",
        has_pictures: false,
        is_single: true,
        render: |document, _| json::render(document),
    },
    Form {
        name: "bencher",
        has_pictures: false,
        is_single: true,
        render: |document, _| bencher::render(document),
    },
    Form {
        name: "github-action-benchmark",
        has_pictures: false,
        is_single: true,
        render: |document, _| github_action_benchmark::render(document),
    },
];

impl Form {
    /// The form of this name.
    pub fn named(name: &str) -> Option<Form> {
        FORMS.into_iter().find(|form| form.name == name)
    }
}
