//! Tables of the file: looking up their keys, refusing unknown ones.

use super::elsewhere;
use super::keys::value::{Node, Reader, found};
use super::keys::{self, Key, Vary};
use crate::diagnostic::Diagnostic;
use crate::suggest::nearest;
use std::ops::Range;
use toml::Spanned;
use toml::de::DeTable;

/// A table of the file with the keys it may have.
#[derive(Clone)]
pub(crate) struct Section<'a, 'i> {
    description: &'static keys::Section,
    table: Option<&'a DeTable<'i>>,
    /// Its place in the file.
    span: Range<usize>,
}

impl<'a, 'i> Section<'a, 'i> {
    /// Creates an absent table.
    fn absent(description: &'static keys::Section) -> Self {
        Section { description, table: None, span: 0..0 }
    }

    /// True if the file contains it.
    pub(crate) fn is_present(&self) -> bool {
        self.table.is_some()
    }

    /// Returns its place in the file.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Returns a key and its value, if present.
    pub(crate) fn get(&self, name: &str) -> Option<(&'static Key, &'a Node<'i>)> {
        let key = self.description.keys.iter().find(|key| key.name == name)?;
        Some((key, self.table?.get(name)?))
    }

    /// Returns the keys that are present, in the order of the documentation.
    pub(crate) fn present(&self) -> impl Iterator<Item = (&'static Key, &'a Node<'i>)> {
        self.description.keys.iter().filter_map(|key| Some((key, self.table?.get(key.name)?)))
    }

    pub(crate) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Key, &Node) -> Option<T>,
    ) -> Option<T> {
        let (key, node) = self.get(name)?;
        read(key, node)
    }

    pub(crate) fn read_spanned<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Key, &Node) -> Option<T>,
    ) -> Option<Spanned<T>> {
        let (key, node) = self.get(name)?;
        Some(Spanned::new(node.span(), read(key, node)?))
    }
}

impl<'l> Reader<'l> {
    /// Returns the top of the file.
    pub(crate) fn top<'a, 'i>(&mut self, root: &'a DeTable<'i>) -> Section<'a, 'i> {
        self.section(&self.file[0], root, 0..0)
    }

    /// Checks the version of the format, which must be 1.
    pub(crate) fn version(&mut self, top: &Section) {
        match top.get("version") {
            Some((key, node)) => {
                if self.integer::<u32>(key, node).is_none()
                    && let Some(fault) = self.faults.last_mut()
                {
                    fault.help = Some("this build reads version 1 of the format".to_owned());
                }
            }
            None => self.faults.push(
                Diagnostic::new(0..0, "the version of the format is missing")
                    .help("write `version = 1` at the top of the file"),
            ),
        }
    }

    /// Reads the value of a required key, with its place.
    pub(crate) fn required<T>(
        &mut self,
        section: &Section,
        name: &str,
        read: impl FnOnce(&mut Reader<'l>, &Key, &Node) -> Option<T>,
    ) -> Option<Spanned<T>> {
        if let Some((key, node)) = section.get(name) {
            return Some(Spanned::new(node.span(), read(self, key, node)?));
        }
        let place = section.description.place();
        let fault = Diagnostic::new(section.span.clone(), format!("`{name}` is missing {place}"));
        let example = section.description.key(name).map_or("...", |key| key.example);
        self.fault(fault.help(format!("write {name} = {example}")))
    }

    /// Returns the table of `description`, below `parent`.
    pub(crate) fn table<'a, 'i>(
        &mut self,
        parent: &Section<'a, 'i>,
        description: &'static keys::Section,
    ) -> Section<'a, 'i> {
        let node = parent.table.and_then(|parent| parent.get(description.name()));
        let Some(node) = node else { return Section::absent(description) };
        if let Some(table) = node.get_ref().as_table() {
            return self.section(description, table, node.span());
        }
        self.faults.push(
            Diagnostic::new(node.span(), format!("`{}` must be a table", description.path))
                .label(format!("this is {}", found(node)))
                .help(format!("write {} and its keys below", description.header())),
        );
        Section::absent(description)
    }

    /// Returns the tables of the list of `description`, below `parent`; empty if it is not a list
    /// of tables.
    pub(crate) fn tables<'a, 'i>(
        &mut self,
        parent: &Section<'a, 'i>,
        description: &'static keys::Section,
    ) -> Option<Vec<Option<Section<'a, 'i>>>> {
        let name = description.name();
        let Some(node) = parent.table.and_then(|parent| parent.get(name)) else {
            return Some(Vec::new());
        };
        let header = description.header();
        let Some(list) = node.get_ref().as_array() else {
            let fault = Diagnostic::new(node.span(), format!("`{name}` must be a list of tables"))
                .label(format!("this is {}", found(node)))
                .help(format!("write each {name} under a header of its own: {header}"));
            return self.fault(fault);
        };
        let mut tables = Vec::new();
        for node in list {
            tables.push(match node.get_ref().as_table() {
                Some(table) => Some(self.section(description, table, node.span())),
                None => self.fault(
                    Diagnostic::new(node.span(), format!("each {name} must be a table"))
                        .label(format!("this is {}", found(node)))
                        .help(format!("write {header} and its keys below")),
                ),
            });
        }
        Some(tables)
    }

    /// Returns a table, after refusing its unknown keys.
    pub(crate) fn section<'a, 'i>(
        &mut self,
        description: &'static keys::Section,
        table: &'a DeTable<'i>,
        span: Range<usize>,
    ) -> Section<'a, 'i> {
        let known = known_names(self.file, description);
        for (name, _) in table {
            if !known.contains(&name.get_ref().as_ref()) {
                let fault =
                    unknown_key(self.file, description, &known, name.get_ref(), name.span());
                self.faults.push(fault);
            }
        }
        Section { description, table: Some(table), span }
    }
}

/// Returns the names permitted in a table: its keys, the tables below it, and in a level every
/// setting that can be varied.
fn known_names(
    file: &'static [keys::Section],
    section: &'static keys::Section,
) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = section.keys.iter().map(|key| key.name).collect();
    names.extend(section.below(file).map(keys::Section::name));
    if section.path == keys::LEVEL.path {
        names.extend(keys::settings().map(|key| key.name));
    }
    names
}

fn unknown_key(
    file: &'static [keys::Section],
    section: &keys::Section,
    known: &[&'static str],
    name: &str,
    span: Range<usize>,
) -> Diagnostic {
    let fault = Diagnostic::new(span, format!("unknown key `{name}` {}", section.place()));
    if matches!(name, "wire" | "link") && known.contains(&"cable") {
        return fault.help("did you mean `cable`?");
    }
    let is_experiment = file.iter().any(|section| section.path == keys::DUT.path);
    if let Some(help) = elsewhere::help(name).filter(|_| is_experiment) {
        return fault.help(help);
    }
    if let Some(near) = nearest(name, known.iter().copied()) {
        return fault.help(format!("did you mean `{near}`?"));
    }
    if section.path == keys::LEVEL.path {
        if keys::TESTBED.key(name).is_some_and(|key| key.vary == Vary::Never) {
            return fault.help("this can't be varied within an experiment");
        }
        if name.contains('.') {
            return fault.help(format!("a sysctl is written sysctl = {{ \"{name}\" = ... }}"));
        }
    }
    let home = file.iter().find(|other| other.path != section.path && other.key(name).is_some());
    match home {
        Some(home) => fault.help(format!("`{name}` belongs {}", home.place())),
        None => fault.help(format!("known here: {}", known.join(", "))),
    }
}
