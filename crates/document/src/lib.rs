//! What a report, a comparison or a history says, before it has a form.
//!
//! [`Document`] is the one model of an answer: sections of paragraphs, remarks, lists,
//! figures and tables, whose cells are typed ([`table`]). Whoever has something to say
//! builds one ([`crate::compare`], [`crate::history`], [`crate::report`]); [`form`] has one
//! file for each form that it takes. So a statistic is added where a table is built, and
//! stands in every form. Left out: computing anything, and wording that differs by form.

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

/// An answer.
pub struct Document<'a> {
    /// What it is about, in one line.
    pub title: String,
    /// What was found, in short: a page begins with it, and a terminal, whose last lines are
    /// those that are seen, ends with it.
    pub conclusion: Vec<Block>,
    /// The whole.
    pub blocks: Vec<Block>,
    /// The whole for programs.
    pub data: &'a dyn Data,
    /// Version of the shape of `data`; raised when something that was there is named
    /// otherwise or means something else.
    pub version: u32,
}

/// What programs read: fields that are written as JSON.
pub trait Data {
    /// The fields.
    ///
    /// # Errors
    /// Never for answers that this crate makes.
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
    /// Something that has to be said beside the numbers.
    Remark(Remark, Inline),
    /// Points.
    List(List),
    /// Rows of one kind.
    Table(Table),
    /// A picture.
    Figure(Figure),
    /// Text whose every blank counts; its lines end with line feeds.
    Preformatted(String),
    /// Parts with a heading of their own.
    Section(Section),
    /// Parts that only forms with at least this room show.
    Where(DetailLevel, Vec<Block>),
    /// The same in brief, for terminals and mails, and at length.
    Brief {
        /// What terminals and mails show, unless they are asked for more.
        brief: Vec<Block>,
        /// What everyone else shows.
        whole: Vec<Block>,
    },
    /// Parts that a mail alone has, whose reader has seen nothing else.
    Mail(Vec<Block>),
    /// Parts that every form but a mail has.
    Screen(Vec<Block>),
}

/// How much a form can show before a reader is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DetailLevel {
    /// Some screens of a terminal.
    Terminal,
    /// A page without anything that folds.
    Page,
    /// A page that folds and scrolls: everything.
    All,
}

/// Kinds of remarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remark {
    /// What the numbers are worth: of a simulation, of a virtual testbed.
    Caption,
    /// Worth knowing.
    Note,
    /// A doubt about what was measured.
    Warning,
    /// What must not be concluded.
    Caution,
}

/// Points, which may have points of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// The points.
    pub items: Vec<Item>,
    /// How many of them forms without room for all show, and what they say of the others
    /// with `{}` for their number.
    pub brief: Option<(usize, &'static str)>,
    /// True when the points are seen without unfolding what they belong to.
    pub open: bool,
}

/// A point of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// What it says.
    pub text: Inline,
    /// What belongs to it.
    pub list: List,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// Name of its file beside the document; none where it has no file.
    pub file: Option<String>,
    /// The picture itself.
    pub drawing: Drawing,
}

/// Parts with a heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The heading.
    pub title: Inline,
    /// What stands below it.
    pub blocks: Vec<Block>,
    /// True where it is folded away in forms that can.
    pub folded: bool,
    /// File that it is moved to where a document becomes several files that don't fold; none
    /// for what stays.
    pub page: Option<&'static str>,
}

impl Block {
    /// A paragraph.
    pub fn text(text: impl Into<Inline>) -> Block {
        Block::Paragraph(text.into(), Tone::Plain)
    }

    /// A remark of the kind.
    pub fn remark(kind: Remark, text: impl Into<Inline>) -> Block {
        Block::Remark(kind, text.into())
    }

    /// A caption, where there is something to say.
    pub fn caption(text: &str) -> Option<Block> {
        (!text.is_empty()).then(|| Block::remark(Remark::Caption, text))
    }

    /// Notes, one remark each; those that say one thing of many (`this: why`, `that: why`)
    /// are one.
    pub fn notes(notes: &[String]) -> impl Iterator<Item = Block> {
        notes::grouped(notes).into_iter().map(|note| Block::remark(Remark::Note, note))
    }

    /// A section.
    pub fn section(title: impl Into<Inline>, blocks: Vec<Block>) -> Block {
        Block::Section(Section { title: title.into(), blocks, folded: false, page: None })
    }

    /// The same section, folded away in forms that can.
    #[must_use]
    pub fn folded(mut self) -> Block {
        if let Block::Section(section) = &mut self {
            section.folded = true;
        }
        self
    }

    /// The same section, in a file of its own where a document becomes several that don't fold.
    #[must_use]
    pub fn on_page(mut self, page: &'static str) -> Block {
        if let Block::Section(section) = &mut self {
            section.page = Some(page);
        }
        self
    }

    /// Names with what they stand for, a line each.
    pub fn pairs(rows: &[(&'static str, String)]) -> Block {
        Table::of(rows)
            .words("", |(name, _)| table::Cell::text(*name))
            .words("", |(_, value)| table::Cell::text(value))
            .set(|table| table.in_words = true)
            .block()
    }

    /// A list of points.
    pub fn list<T: Into<Inline>>(items: impl IntoIterator<Item = T>) -> Block {
        Block::List(List::of(items))
    }
}

impl List {
    /// A list of points.
    pub fn of<T: Into<Inline>>(items: impl IntoIterator<Item = T>) -> List {
        let items = items.into_iter().map(|text| Item { text: text.into(), list: List::default() });
        List { items: items.collect(), ..List::default() }
    }

    /// The points that a form of this room shows, and what it says of the others.
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
    /// The tables with a name, those of one name together: what programs get beside the data.
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

    /// All tables in the order of the document, without those for mails alone.
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
