//! All keys of an experiment file, defined once: the reader, the JSON Schema and the reference in
//! `docs/EXPERIMENTS.md` are generated from these tables. Lab files (`lab/keys.rs`) use rows of the
//! same kind.

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

/// Place of a setting's value.
pub(in crate::spec) type Place<T> = fn(&mut Settings) -> &mut T;

/// Points at which a setting may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    /// Never within an experiment: not a setting of a variant.
    Never,
    /// Between runs: a level may set it, but it requires a restart of the DUT.
    Restart,
    /// Also while traffic flows: it may alternate.
    Live,
}

/// A key of a file.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name in the file.
    pub name: &'static str,
    /// Kind of values.
    pub kind: Kind,
    /// True if the key is required.
    pub required: bool,
    /// Default as TOML; empty if there is none.
    pub default: &'static str,
    /// Unit of the value; empty if there is none.
    pub unit: &'static str,
    /// A valid value as TOML that differs from the default.
    pub example: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Name in the set-up section of reports; empty if reports have a special wording.
    pub title: &'static str,
    /// Whether a factor may vary it.
    pub vary: Vary,
    /// Devices and testbeds with this setting.
    pub owner: Owner,
    /// Its field in the settings of a variant; `None` for a key that is not a setting.
    pub field: Option<Field>,
}

/// Owner of a setting: without it the setting has no effect.
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
    /// A QEMU guest.
    Vm,
}

/// Notation of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Once, under `[path]`; or as the top of the file.
    Table,
    /// Any number of times, each under `[[path]]`.
    List,
    /// As a value, such as a level of a factor, without a header.
    Inline,
}

/// A table of the file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Dotted path, as in its header; empty for the top of the file.
    pub path: &'static str,
    /// Notation of the table.
    pub form: Form,
    /// True if the table is required.
    pub required: bool,
    /// Description.
    pub doc: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

impl Section {
    /// An optional table, without its path, description and keys.
    pub(crate) const TABLE: Section =
        Section { path: "", form: Form::Table, required: false, doc: "", keys: &[] };

    /// Returns the key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
    /// Returns the last part of the path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }
    /// Returns its header; empty if there is none.
    pub fn header(&self) -> String {
        match (self.path, self.form) {
            ("", _) | (_, Form::Inline) => String::new(),
            (path, Form::Table) => format!("[{path}]"),
            (path, Form::List) => format!("[[{path}]]"),
        }
    }
    /// Returns its place for messages: `in [dut]`.
    pub fn place(&self) -> String {
        match (self.path, self.form) {
            ("", _) => "at the top of the file".to_owned(),
            (_, Form::Inline) => format!("in a {}", self.name()),
            _ => format!("in {}", self.header()),
        }
    }
    /// Returns the tables of `file` directly below this one that are not values of its keys.
    pub(crate) fn below(&self, file: &'static [Section]) -> impl Iterator<Item = &'static Section> {
        file.iter().filter(|section| {
            let parent = section.path.rsplit_once('.').map_or("", |(parent, _)| parent);
            let has_header = !section.header().is_empty();
            has_header && parent == self.path && self.key(section.name()).is_none()
        })
    }
}

/// All tables, in the order of the documentation.
pub const SECTIONS: &[Section] = &[
    ROOT, TESTBED, SIM, VM, DUT, FACTOR, LEVEL, TRAFFIC, FLOWS, TRIAL, METHOD, GOAL, DESIGN,
    COMPARE, PROFILE,
];

/// Returns every key that a level may set.
pub fn settings() -> impl Iterator<Item = &'static Key> {
    [TESTBED, VM, DUT, TRAFFIC]
        .into_iter()
        .flat_map(|section| section.keys)
        .filter(|key| key.vary != Vary::Never)
}

/// Returns the setting of this name.
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
