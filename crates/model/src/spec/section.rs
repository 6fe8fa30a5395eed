//! Tables of the file: finding their keys, refusing unknown ones.

use super::keys::{self, Key, SECTIONS, Vary};
use super::value::{Node, Reader, found};
use crate::diagnostic::Diagnostic;
use crate::suggest::nearest;
use toml::Spanned;
use toml::de::DeTable;

/// One table of the file with the keys it may have.
pub(super) struct Section<'a, 'i> {
    pub(super) keys: &'static [Key],
    pub(super) table: Option<&'a DeTable<'i>>,
}

impl<'a, 'i> Section<'a, 'i> {
    /// The table of a file that does not write it.
    pub(super) fn absent(section: &keys::Section) -> Self {
        Section { keys: section.keys, table: None }
    }

    /// A key and its value, when it is written.
    pub(super) fn get(&self, name: &str) -> Option<(&'static Key, &'a Node<'i>)> {
        let key = self.keys.iter().find(|key| key.name == name)?;
        Some((key, self.table?.get(name)?))
    }

    /// The keys that are written, in the order of the documentation.
    pub(super) fn present(&self) -> impl Iterator<Item = (&'static Key, &'a Node<'i>)> {
        self.keys.iter().filter_map(|key| Some((key, self.table?.get(key.name)?)))
    }

    pub(super) fn read<T>(
        &self,
        name: &str,
        mut read: impl FnMut(&Key, &Node) -> Option<T>,
    ) -> Option<T> {
        let (key, node) = self.get(name)?;
        read(key, node)
    }

    pub(super) fn read_spanned<T>(
        &self,
        name: &str,
        mut read: impl FnMut(&Key, &Node) -> Option<T>,
    ) -> Option<Spanned<T>> {
        let (key, node) = self.get(name)?;
        Some(Spanned::new(node.span(), read(key, node)?))
    }
}

impl Reader<'_> {
    /// The top of the file.
    pub(super) fn top<'a, 'i>(&mut self, root: &'a DeTable<'i>) -> Section<'a, 'i> {
        self.section(&keys::ROOT, Some(root))
    }

    /// The table that `section` describes, below `parent`.
    pub(super) fn table<'a, 'i>(
        &mut self,
        parent: &'a DeTable<'i>,
        section: &'static keys::Section,
    ) -> Section<'a, 'i> {
        let Some(node) = parent.get(section.name()) else { return Section::absent(section) };
        match node.get_ref().as_table() {
            Some(table) => self.section(section, Some(table)),
            None => {
                self.faults.push(
                    Diagnostic::new(node.span(), format!("`{}` must be a table", section.path))
                        .label(format!("this is {}", found(node)))
                        .help(format!("write [{}] and its keys below", section.path)),
                );
                Section::absent(section)
            }
        }
    }

    /// A table, after its unknown keys were refused.
    pub(super) fn section<'a, 'i>(
        &mut self,
        section: &'static keys::Section,
        table: Option<&'a DeTable<'i>>,
    ) -> Section<'a, 'i> {
        let known = known_names(section);
        for (name, _) in table.into_iter().flatten() {
            if !known.contains(&name.get_ref().as_ref()) {
                self.faults.push(unknown_key(section, &known, name.get_ref(), name.span()));
            }
        }
        Section { keys: section.keys, table }
    }
}

/// Names that may stand in a table: its keys, the tables below it, and in a
/// level every setting that can be varied.
pub(super) fn known_names(section: &keys::Section) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = section.keys.iter().map(|key| key.name).collect();
    match section.path {
        "" => names.extend(
            SECTIONS.iter().map(|s| s.path).filter(|path| !path.is_empty() && !path.contains('.')),
        ),
        "testbed" => names.push(keys::SIM.name()),
        "factor.level" => names.extend(keys::settings().map(|key| key.name)),
        _ => {}
    }
    names
}

fn unknown_key(
    section: &keys::Section,
    known: &[&'static str],
    name: &str,
    span: std::ops::Range<usize>,
) -> Diagnostic {
    let fault = Diagnostic::new(span, format!("unknown key `{name}` {}", section.place()));
    if let Some(near) = nearest(name, known.iter().copied()) {
        return fault.help(format!("did you mean `{near}`?"));
    }
    if section.path == "factor.level" {
        if keys::TESTBED.key(name).is_some_and(|key| key.vary == Vary::Never) {
            return fault.help("this can't be varied within an experiment");
        }
        if name.contains('.') {
            return fault.help(format!("a sysctl is written sysctl = {{ \"{name}\" = ... }}"));
        }
    }
    let home =
        SECTIONS.iter().find(|other| other.path != section.path && other.key(name).is_some());
    match home {
        Some(home) => fault.help(format!("`{name}` belongs {}", home.place())),
        None => fault.help(format!("known here: {}", known.join(", "))),
    }
}
