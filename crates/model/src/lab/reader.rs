//! Reading tables and values of a lab's file: each gives the value with its place, or
//! notes a fault.

use super::keys;
use crate::diagnostic::Diagnostic;
use crate::spec::{Node, duration_ns, found};
use crate::suggest::nearest;
use crate::words;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Collects faults.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) faults: Vec<Diagnostic>,
}

/// A table with its place, and how messages call it.
#[derive(Clone, Copy)]
pub(super) struct Section<'a, 'i> {
    pub(super) table: &'a DeTable<'i>,
    pub(super) place: &'static str,
}

impl<'a, 'i> Section<'a, 'i> {
    pub(super) fn get(&self, name: &str) -> Option<&'a Node<'i>> {
        self.table.get(name)
    }
}

impl Reader {
    /// Notes a fault; gives `None`, so that callers can end with it.
    pub(super) fn fault<T>(&mut self, fault: Diagnostic) -> Option<T> {
        self.faults.push(fault);
        None
    }

    fn wrong<T>(&mut self, name: &str, expected: &str, node: &Node) -> Option<T> {
        let message = format!("`{name}` must be {expected}");
        self.fault(Diagnostic::new(node.span(), message).label(format!("this is {}", found(node))))
    }

    /// A table, after keys that it doesn't have were refused.
    pub(super) fn section<'a, 'i>(
        &mut self,
        table: &'a DeTable<'i>,
        keys: &'static keys::Section,
    ) -> Section<'a, 'i> {
        let (place, known) = (keys.place, &keys.names());
        for (name, _) in table {
            let (word, span) = (name.get_ref().as_ref(), name.span());
            if !known.contains(&word) {
                let fault = Diagnostic::new(span, format!("unknown key `{word}` {place}"));
                self.faults.push(match word {
                    "wire" | "link" if known.contains(&"cable") => {
                        fault.help("did you mean `cable`?")
                    }
                    _ => fault.suggest(word, known, "known here"),
                });
            }
        }
        Section { table, place }
    }

    /// The tables of a list of tables, each with its place.
    pub(super) fn tables<'a, 'i>(
        &mut self,
        section: Section<'a, 'i>,
        name: &str,
        header: &str,
    ) -> Vec<(Range<usize>, &'a DeTable<'i>)> {
        let Some(node) = section.get(name) else { return Vec::new() };
        let expected = format!("tables: write {header} and the keys below it");
        let Some(list) = node.get_ref().as_array() else {
            let _: Option<()> = self.wrong(name, &expected, node);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for node in list {
            match node.get_ref().as_table() {
                Some(table) => tables.push((node.span(), table)),
                None => {
                    let _: Option<()> = self.wrong(name, &expected, node);
                }
            }
        }
        tables
    }

    /// A value that must be there.
    pub(super) fn required<T>(
        &mut self,
        section: Section,
        span: &Range<usize>,
        name: &str,
        example: &str,
        read: impl FnOnce(&mut Reader, &str, &Node) -> Option<T>,
    ) -> Option<T> {
        match section.get(name) {
            Some(node) => read(self, name, node),
            None => self.fault(
                Diagnostic::new(span.clone(), format!("`{name}` is missing {}", section.place))
                    .help(format!("write {name} = {example}")),
            ),
        }
    }

    /// A value that may be there.
    pub(super) fn optional<T>(
        &mut self,
        section: Section,
        name: &str,
        read: impl FnOnce(&mut Reader, &str, &Node) -> Option<T>,
    ) -> Option<T> {
        read(self, name, section.get(name)?)
    }

    pub(super) fn boolean(&mut self, name: &str, node: &Node) -> Option<bool> {
        node.get_ref().as_bool().or_else(|| self.wrong(name, "true or false", node))
    }

    /// Text of one line.
    pub(super) fn text(&mut self, name: &str, node: &Node) -> Option<Spanned<String>> {
        match node.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() && !text.chars().any(char::is_control) => {
                Some(Spanned::new(node.span(), text.to_owned()))
            }
            _ => self.wrong(name, "text of one line", node),
        }
    }

    /// A name: what may stand in paths and command lines without being taken for more.
    pub(super) fn name(&mut self, name: &str, node: &Node) -> Option<Spanned<String>> {
        let text = self.text(name, node)?;
        let word = text.get_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.chars().all(plain) {
            return Some(text);
        }
        self.fault(
            Diagnostic::new(node.span(), format!("`{word}` is no name")).help(
                "names have letters, digits, `.`, `_` and `-`, and begin with a letter or digit",
            ),
        )
    }

    /// One of the words.
    pub(super) fn word<T: Copy>(
        &mut self,
        name: &str,
        node: &Node,
        words: impl IntoIterator<Item = (&'static str, T)>,
    ) -> Option<Spanned<T>> {
        let words: Vec<(&str, T)> = words.into_iter().collect();
        let names: Vec<&str> = words.iter().map(|&(word, _)| word).collect();
        let quoted: Vec<String> = names.iter().map(|word| format!("\"{word}\"")).collect();
        let expected = format!("one of {}", quoted.join(", "));
        let Some(word) = node.get_ref().as_str() else { return self.wrong(name, &expected, node) };
        if let Some(&(_, value)) = words.iter().find(|&&(known, _)| known == word) {
            return Some(Spanned::new(node.span(), value));
        }
        let fault = Diagnostic::new(node.span(), format!("`{name}` must be {expected}"))
            .label(format!("this is \"{word}\""));
        self.fault(match nearest(word, names) {
            Some(near) => fault.help(format!("did you mean \"{near}\"?")),
            None => fault,
        })
    }

    /// Text that means a value of its own.
    pub(super) fn parsed<T: FromStr<Err: ToString>>(
        &mut self,
        name: &str,
        node: &Node,
    ) -> Option<Spanned<T>> {
        let Some(text) = node.get_ref().as_str() else { return self.wrong(name, "text", node) };
        match text.parse() {
            Ok(value) => Some(Spanned::new(node.span(), value)),
            Err(error) => {
                let message = format!("`{text}` is not right as `{name}`");
                self.fault(Diagnostic::new(node.span(), message).label(error.to_string()))
            }
        }
    }

    /// A duration in nanoseconds, `unit_ns` at least; a whole number of them when `whole`.
    pub(super) fn duration(
        &mut self,
        name: &str,
        node: &Node,
        unit_ns: u64,
        whole: bool,
    ) -> Option<u64> {
        let text = match node.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(integer) => integer.to_string(),
            _ => return self.wrong(name, "a duration such as \"10s\"", node),
        };
        let why = match duration_ns(&text) {
            Ok(ns) if ns >= unit_ns && (!whole || ns.is_multiple_of(unit_ns)) => return Some(ns),
            Ok(_) if whole => "whole seconds, at least one".to_owned(),
            Ok(_) => "at least a second".to_owned(),
            Err(why) => why,
        };
        let message = format!("`{name}` must be a duration such as \"10s\"");
        self.fault(Diagnostic::new(node.span(), message).label(why))
    }

    /// A list, item by item; none when any of them is wrong.
    pub(super) fn list<T>(
        &mut self,
        name: &str,
        node: &Node,
        mut read: impl FnMut(&mut Reader, &str, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(list) = node.get_ref().as_array() else { return self.wrong(name, "a list", node) };
        let read: Vec<Option<T>> = list.iter().map(|node| read(self, name, node)).collect();
        read.into_iter().collect()
    }

    /// A command as its arguments, program first.
    pub(super) fn command(&mut self, name: &str, node: &Node) -> Option<Vec<String>> {
        let expected =
            "a list of a program and its arguments, such as [\"ipmitool\", \"power\", \"cycle\"]";
        let words = node.get_ref().as_array().filter(|list| !list.is_empty());
        let Some(words) = words else { return self.wrong(name, expected, node) };
        let words: Option<Vec<String>> =
            words.iter().map(|word| word.get_ref().as_str().map(str::to_owned)).collect();
        words.or_else(|| self.wrong(name, expected, node))
    }

    /// A command in one line.
    pub(super) fn command_line(&mut self, name: &str, node: &Node) -> Option<String> {
        let text = self.text(name, node)?.into_inner();
        match words::split(&text) {
            Ok(_) => Some(text),
            Err(why) => self.fault(
                Diagnostic::new(node.span(), format!("`{name}` must be commands")).label(why),
            ),
        }
    }

    /// Number of a CPU.
    pub(super) fn cpu(&mut self, name: &str, node: &Node) -> Option<u16> {
        let number = node.get_ref().as_integer();
        number
            .and_then(|number| u16::from_str_radix(number.as_str(), number.radix()).ok())
            .or_else(|| self.wrong(name, "numbers of CPUs from 0 to 65535", node))
    }
}
