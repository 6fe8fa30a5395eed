//! Content of a report, a comparison or a history, independent of the output form.
//!
//! [`Document`] is the single model of a result: sections of paragraphs, remarks, lists, figures
//! and tables with typed cells ([`table`]). Comparisons, histories and reports build one; [`form`]
//! has one file for each output form. So a statistic is added where its table is built, and appears
//! in every form. Out of scope: computing anything, and wording that differs by form.

pub mod form;
pub mod format;
mod inline;
pub mod judgement;
pub mod measure;
mod notes;
pub mod plot;
mod readings;
pub mod table;
pub mod text;

pub use form::{FORMS, Form};
pub use inline::{Inline, Span};
pub use table::Table;

use crate::plot::Drawing;
use crate::text::Tone;
use serde::Serialize;
use serde_json::Value;

/// A result.
pub struct Document<'a> {
    /// Subject, in one line.
    pub title: String,
    /// Summary of the result. A page begins with it; a terminal, where only the last lines are
    /// visible, ends with it.
    pub conclusion: Vec<Block>,
    /// Body of the document.
    pub blocks: Vec<Block>,
    /// Data for programs.
    pub data: &'a dyn Data,
    /// Version of the fields of `data`; raised when an existing field is renamed or changes its
    /// meaning.
    pub version: u32,
}

/// Data for programs: fields that are written as JSON.
pub trait Data {
    /// Returns the fields.
    ///
    /// # Errors
    /// Never for results of this crate.
    fn fields(&self) -> Result<Value, serde_json::Error>;
}

impl<T: Serialize> Data for T {
    fn fields(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}

/// A part of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Sentences.
    Paragraph(Inline, Tone),
    /// Remark to print with the numbers.
    Remark(Remark, Inline),
    /// List of items.
    List(List),
    /// Rows of one kind.
    Table(Table),
    /// A picture.
    Figure(Figure),
    /// Text with significant blanks; its lines end with line feeds.
    Preformatted(String),
    /// Parts with a heading.
    Section(Section),
    /// Parts that only forms of at least this detail level show.
    Where(DetailLevel, Vec<Block>),
    /// Parts in a brief version, for terminals and mails, and a full one.
    Brief {
        /// Shown by terminals and mails by default.
        brief: Vec<Block>,
        /// Shown by all other forms.
        whole: Vec<Block>,
    },
    /// Parts for mails only, whose readers have no context.
    Mail(Vec<Block>),
    /// Parts for every form but mails.
    Screen(Vec<Block>),
}

/// Amount of detail that a form can show without overwhelming readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DetailLevel {
    /// A few screens of a terminal.
    Terminal,
    /// A page without folding.
    Page,
    /// A page with folding and scrolling: everything.
    All,
}

/// Kinds of remarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remark {
    /// Validity of the numbers: from a simulation, from a virtual testbed.
    Caption,
    /// Additional information.
    Note,
    /// Doubt about the measurement.
    Warning,
    /// Warning against a wrong conclusion.
    Caution,
}

/// Items, possibly with nested items.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// Items of the list.
    pub items: Vec<Item>,
    /// Maximum number of items shown by forms without room for all, and their text for the rest,
    /// with `{}` for the number.
    pub brief: Option<(usize, &'static str)>,
    /// True if nested lists are unfolded initially.
    pub open: bool,
}

/// An item of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Text of the item.
    pub text: Inline,
    /// Nested items.
    pub list: List,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Title of the picture.
    pub title: String,
    /// Name of the file next to the document. `None` if there is no file.
    pub file: Option<String>,
    /// The picture itself.
    pub drawing: Drawing,
}

/// Parts with a heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Heading.
    pub title: Inline,
    /// Content.
    pub blocks: Vec<Block>,
    /// True if forms that can fold the section do so.
    pub folded: bool,
    /// File of the section if the document becomes several files without folding. `None` if it
    /// stays in the main file.
    pub page: Option<&'static str>,
}

impl Block {
    /// Builds a paragraph.
    pub fn text(text: impl Into<Inline>) -> Block {
        Block::Paragraph(text.into(), Tone::Plain)
    }

    /// Builds a remark.
    pub fn remark(kind: Remark, text: impl Into<Inline>) -> Block {
        Block::Remark(kind, text.into())
    }

    /// Builds a caption. `None` if the text is empty.
    pub fn caption(text: &str) -> Option<Block> {
        (!text.is_empty()).then(|| Block::remark(Remark::Caption, text))
    }

    /// Builds one remark per note; notes with the same reason (`this: why`, `that: why`) are
    /// merged.
    pub fn notes(notes: &[String]) -> impl Iterator<Item = Block> {
        notes::grouped(notes).into_iter().map(|note| Block::remark(Remark::Note, note))
    }

    /// Builds a section.
    pub fn section(title: impl Into<Inline>, blocks: Vec<Block>) -> Block {
        Block::Section(Section { title: title.into(), blocks, folded: false, page: None })
    }

    /// Marks a section as folded in forms that can fold.
    #[must_use]
    pub fn folded(mut self) -> Block {
        if let Block::Section(section) = &mut self {
            section.folded = true;
        }
        self
    }

    /// Moves a section to a separate file if the document becomes several files without folding.
    #[must_use]
    pub fn on_page(mut self, page: &'static str) -> Block {
        if let Block::Section(section) = &mut self {
            section.page = Some(page);
        }
        self
    }

    /// Builds a list of names with their values, one line each.
    pub fn pairs(rows: &[(&'static str, String)]) -> Block {
        Table::of(rows)
            .words("", |(name, _)| table::Cell::text(*name))
            .words("", |(_, value)| table::Cell::text(value))
            .set(|table| table.in_words = true)
            .block()
    }

    /// Builds a list.
    pub fn list<T: Into<Inline>>(items: impl IntoIterator<Item = T>) -> Block {
        Block::List(List::of(items))
    }
}

impl List {
    /// Builds a list.
    pub fn of<T: Into<Inline>>(items: impl IntoIterator<Item = T>) -> List {
        let items = items.into_iter().map(|text| Item { text: text.into(), list: List::default() });
        List { items: items.collect(), ..List::default() }
    }

    /// Items that a form of this detail level shows, and its text for the rest.
    pub fn shown(&self, room: DetailLevel) -> (&[Item], Option<String>) {
        match self.brief {
            Some((most, rest)) if room < DetailLevel::All && self.items.len() > most => {
                let others = (self.items.len() - most).to_string();
                (&self.items[..most], Some(rest.replace("{}", &others)))
            }
            _ => (&self.items, None),
        }
    }
}

impl Document<'_> {
    /// Named tables, grouped by name: the tables that programs get in addition to the data.
    pub fn tables(&self) -> Vec<(&'static str, Vec<&Table>)> {
        let mut found: Vec<(&'static str, Vec<&Table>)> = Vec::new();
        for table in self.all_tables() {
            let Some(name) = table.name else { continue };
            match found.iter_mut().find(|(known, _)| *known == name) {
                Some((_, tables)) => tables.push(table),
                None => found.push((name, vec![table])),
            }
        }
        found
    }

    /// All tables in the order of the document, without those for mails only.
    pub fn all_tables(&self) -> Vec<&Table> {
        fn collect<'d>(blocks: &'d [Block], found: &mut Vec<&'d Table>) {
            for block in blocks {
                match block {
                    Block::Table(table) => found.push(table),
                    Block::Section(Section { blocks, .. })
                    | Block::Where(_, blocks)
                    | Block::Screen(blocks)
                    | Block::Brief { whole: blocks, .. } => {
                        collect(blocks, found);
                    }
                    _ => (),
                }
            }
        }
        let mut found = Vec::new();
        collect(&self.conclusion, &mut found);
        collect(&self.blocks, &mut found);
        found
    }
}
