//! Every key of an experiment file, once: the reader, the JSON Schema and the
//! reference in `docs/EXPERIMENTS.md` are all made from these tables. Those of a
//! laboratory's file (`lab/keys.rs`) are made of the same rows.

mod device;
pub(super) mod field;
mod method;
pub(in crate::spec) mod setting;
mod tables;
pub(in crate::spec) mod value;
mod vm;

pub use device::*;
pub use field::Field;
pub use method::*;
pub use tables::*;
pub use vm::VM;

use super::kind::Kind;
use crate::settings::Settings;

/// Where a setting's value is.
pub(in crate::spec) type Place<T> = fn(&mut Settings) -> &mut T;

/// When a setting may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    /// Never within an experiment: it is no setting of a variant.
    Never,
    /// From run to run: a level may set it, but it takes a new start of the DUT.
    Restart,
    /// Also while traffic flows: it may alternate.
    Live,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name as written.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Whether it must be written.
    pub required: bool,
    /// Default as TOML; empty when there is none.
    pub default: &'static str,
    /// Unit of the value; empty when there is none.
    pub unit: &'static str,
    /// A valid value as TOML that differs from the default.
    pub example: &'static str,
    /// Meaning, in a sentence.
    pub doc: &'static str,
    /// What it is called in the set-up that a report shows; empty where the report finds
    /// words of its own.
    pub title: &'static str,
    /// Whether a factor may vary it.
    pub vary: Vary,
    /// What has such a setting.
    pub owner: Owner,
    /// Where it is in the settings of a variant; none for a key that is no setting.
    pub field: Option<Field>,
}

/// What has a setting: elsewhere it would be without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Every device, every testbed.
    Any,
    /// fwdlab's own router.
    Router,
    /// Every kernel that forwards.
    Kernel,
    /// The Linux kernel.
    Linux,
    /// FreeBSD.
    Freebsd,
    /// A program that is started by commands.
    Command,
    /// The DUT of a laboratory.
    Host,
    /// The generators of a laboratory.
    Generator,
    /// A machine of QEMU.
    Vm,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Once, under `[path]`; or as the top of the file.
    Table,
    /// Any number of times, each under `[[path]]`.
    List,
    /// As a value, such as a level of a factor, not under a header.
    Inline,
}

/// One table of the file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Dotted path, as in its header; empty for the top of the file.
    pub path: &'static str,
    /// How it is written.
    pub form: Form,
    /// Whether it must be written.
    pub required: bool,
    /// What it is for.
    pub doc: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

impl Section {
    /// A table that may be written, without its path, description and keys.
    pub(crate) const TABLE: Section =
        Section { path: "", form: Form::Table, required: false, doc: "", keys: &[] };

    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
    /// The last part of the path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }
    /// The header that begins it; empty where there is none.
    pub fn header(&self) -> String {
        match (self.path, self.form) {
            ("", _) | (_, Form::Inline) => String::new(),
            (path, Form::Table) => format!("[{path}]"),
            (path, Form::List) => format!("[[{path}]]"),
        }
    }
    /// Where it stands, for messages: `in [dut]`.
    pub fn place(&self) -> String {
        match (self.path, self.form) {
            ("", _) => "at the top of the file".to_owned(),
            (_, Form::Inline) => format!("in a {}", self.name()),
            _ => format!("in {}", self.header()),
        }
    }
    /// The tables of `file` that stand directly below this one and are no values of its keys.
    pub(crate) fn below(&self, file: &'static [Section]) -> impl Iterator<Item = &'static Section> {
        file.iter().filter(|section| {
            let parent = section.path.rsplit_once('.').map_or("", |(parent, _)| parent);
            let has_header = !section.header().is_empty();
            has_header && parent == self.path && self.key(section.name()).is_none()
        })
    }
}

/// Every table in the order of the documentation.
pub const SECTIONS: &[Section] = &[
    ROOT, TESTBED, SIM, VM, DUT, FACTOR, LEVEL, TRAFFIC, FLOWS, TRIAL, METHOD, GOAL, DESIGN,
    COMPARE, PROFILE,
];

/// Every key that a level may set.
pub fn settings() -> impl Iterator<Item = &'static Key> {
    [TESTBED, VM, DUT, TRAFFIC]
        .into_iter()
        .flat_map(|section| section.keys)
        .filter(|key| key.vary != Vary::Never)
}

/// The setting of this name.
pub fn setting(name: &str) -> Option<&'static Key> {
    settings().find(|key| key.name == name)
}

pub(crate) const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Key {
    let (required, unit, example, title) = (false, "", "", "");
    let (vary, owner, field) = (Vary::Never, Owner::Any, None);
    Key { name, kind, required, default, unit, example, doc, title, vary, owner, field }
}

impl Key {
    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }
    const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }
    pub(crate) const fn example(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }
    const fn title(mut self, title: &'static str) -> Self {
        self.title = title;
        self
    }
    const fn of(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }
    const fn restart(mut self, field: Field) -> Self {
        (self.vary, self.field) = (Vary::Restart, Some(field));
        self
    }
    const fn live(mut self, field: Field) -> Self {
        (self.vary, self.field) = (Vary::Live, Some(field));
        self
    }
}

pub(crate) const fn integer(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max }
}

const fn number(min: f64, max: f64) -> Kind {
    Kind::Number { min, max }
}

pub(crate) const fn words(words: &'static [&'static str]) -> Kind {
    Kind::Word { words, absent: &[] }
}

pub(crate) const fn duration(min_ns: u64) -> Kind {
    Kind::Duration { min_ns }
}
