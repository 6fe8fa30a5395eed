//! Output forms of a document, each with one file and one entry here.

pub mod bencher;
pub mod csv;
pub mod github_action_benchmark;
pub mod html;
pub mod json;
pub mod junit;
pub mod ktap;
pub mod mail;
pub mod markdown;
pub mod openmetrics;
pub mod text;

use super::Document;

/// An output form.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Name of the form.
    pub name: &'static str,
    /// True if pictures are part of the form, not separate files.
    pub has_pictures: bool,
    /// True if a file of this form contains one document, so two cannot follow each other.
    pub is_single: bool,
    /// Renders the document, ending with a line feed. The number is the width of the terminal in
    /// columns, which only some forms use.
    pub render: fn(&Document<'_>, usize) -> Result<String, serde_json::Error>,
}

/// All forms.
pub const FORMS: [Form; 11] = [
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
    Form {
        name: "openmetrics",
        has_pictures: false,
        is_single: true,
        render: |document, _| Ok(openmetrics::render(document)),
    },
];

impl Form {
    /// Finds a form by name.
    pub fn named(name: &str) -> Option<Form> {
        FORMS.into_iter().find(|form| form.name == name)
    }
}
