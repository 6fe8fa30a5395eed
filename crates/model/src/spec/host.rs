//! Values for hosts of a laboratory only: names and addresses, lines of configuration files,
//! commands, directories of files.

use super::keys::Key;
use super::keys::value::{Node, Reader, found};
use super::kind::Kind;
use crate::diagnostic::Diagnostic;
use crate::settings::Overlay;
use crate::words;
use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::DeValue;

/// Maximum size of an overlay's file in bytes: a larger file is not a configuration.
const OVERLAY_FILE_MAX: usize = 256 * 1024;
/// Maximum size of an overlay in bytes: each variant of the plan contains a copy.
const OVERLAY_MAX: usize = 1024 * 1024;

impl Reader<'_> {
    /// Reads a table whose names and values become lines of a configuration file.
    pub(super) fn variables(
        &mut self,
        key: &Key,
        node: &Node,
    ) -> Vec<(Range<usize>, String, String)> {
        let refuse = |span, name: &str| {
            Diagnostic::new(span, format!("`{name}` is no name in {}.conf", key.name))
                .help("names consist of letters, digits and `_`, plus dots in loader.conf")
        };
        self.entries(key, node, |name| is_variable(key.name, name), refuse, Reader::variable)
    }

    /// Reads the entries of a table of names and values, each with its place. Unquoted dotted
    /// names, which TOML reads as nested tables, are equivalent to quoted ones.
    pub(super) fn entries(
        &mut self,
        key: &Key,
        node: &Node,
        is_name: impl Fn(&str) -> bool,
        refuse: impl Fn(Range<usize>, &str) -> Diagnostic,
        read: fn(&mut Self, &str, &Node) -> Option<String>,
    ) -> Vec<(Range<usize>, String, String)> {
        let mut out = Vec::new();
        if !node.get_ref().is_table() {
            let _: Option<()> = self.wrong(key, node);
        }
        // The innermost table is at the end; entries keep the order of the file.
        let mut rest = vec![(String::new(), node.get_ref().as_table().into_iter().flatten())];
        while let Some((prefix, entries)) = rest.last_mut() {
            let Some((name, value)) = entries.next() else {
                rest.pop();
                continue;
            };
            let dotted = format!("{prefix}{}", name.get_ref());
            if let Some(table) = value.get_ref().as_table() {
                rest.push((format!("{dotted}."), Some(table).into_iter().flatten()));
            } else if !is_name(&dotted) {
                self.faults.push(refuse(name.span(), &dotted));
            } else if let Some(text) = read(self, &dotted, value) {
                out.push((name.span().start..value.span().end, dotted, text));
            }
        }
        out
    }

    /// Reads the value of a line: an integer, or text in double quotes.
    fn variable(&mut self, name: &str, node: &Node) -> Option<String> {
        let label = match node.get_ref() {
            DeValue::Integer(integer) => {
                match i64::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(value) => return Some(value.to_string()),
                    Err(_) => "this does not fit into 64 bits".to_owned(),
                }
            }
            DeValue::String(text) if !text.chars().any(|c| c.is_control() || c == '"') => {
                return Some(text.to_string());
            }
            DeValue::Boolean(value) => {
                format!("write \"{}\"", if *value { "YES" } else { "NO" })
            }
            _ => format!("this is {}", found(node)),
        };
        let message = format!("`{name}` must be an integer, or text of one line without `\"`");
        self.fault(Diagnostic::new(node.span(), message).label(label))
    }

    /// Reads a command on one line. It remains unchanged; the code that runs it splits it with
    /// [`words::split`], which has accepted it here.
    pub(super) fn command(&mut self, key: &Key, node: &Node) -> Option<String> {
        let Some(text) = node.get_ref().as_str() else { return self.wrong(key, node) };
        match words::split(text) {
            Ok(_) if text.contains('\0') => self.refused(key, node, "a zero byte".to_owned()),
            Ok(_) => Some(text.to_owned()),
            Err(why) => self.refused(key, node, why),
        }
    }

    /// Reads a list of commands.
    pub(crate) fn commands(&mut self, key: &Key, node: &Node) -> Option<Vec<String>> {
        let Some(list) = node.get_ref().as_array() else { return self.wrong(key, node) };
        let read: Vec<Option<String>> = list.iter().map(|node| self.command(key, node)).collect();
        read.into_iter().collect()
    }

    /// Reads a list of values of one kind, each with its place; `None` if any of them is wrong.
    pub(crate) fn list<T>(
        &mut self,
        key: &Key,
        node: &Node,
        mut read: impl FnMut(&mut Self, &Key, &Node) -> Option<T>,
    ) -> Option<Vec<Spanned<T>>> {
        let Kind::List(&kind) = key.kind else { return self.wrong(key, node) };
        let Some(list) = node.get_ref().as_array() else { return self.wrong(key, node) };
        let item = Key { kind, ..*key };
        let before = self.faults.len();
        let read: Vec<Option<Spanned<T>>> = list
            .iter()
            .map(|node| Some(Spanned::new(node.span(), read(self, &item, node)?)))
            .collect();
        for fault in &mut self.faults[before..] {
            if fault.message.starts_with(&format!("`{}` must be", key.name)) {
                fault.message.insert_str(0, "each of ");
            }
        }
        read.into_iter().collect()
    }

    /// Reads a program and its arguments.
    pub(crate) fn arguments(&mut self, key: &Key, node: &Node) -> Option<Vec<String>> {
        let words = node.get_ref().as_array().filter(|list| !list.is_empty());
        let words: Option<Vec<String>> = words.and_then(|words| {
            words.iter().map(|word| word.get_ref().as_str().map(str::to_owned)).collect()
        });
        words.or_else(|| self.wrong(key, node))
    }

    /// Reads text that is safe in paths and command lines.
    pub(crate) fn name(&mut self, key: &Key, node: &Node) -> Option<String> {
        let text = self.text(key, node)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(plain) {
            return Some(text);
        }
        self.refused(key, node, format!("`{text}` is no name"))
    }

    /// Reads text that a type parses.
    pub(crate) fn parsed<T: FromStr<Err: ToString>>(
        &mut self,
        key: &Key,
        node: &Node,
    ) -> Option<T> {
        let Some(text) = node.get_ref().as_str() else { return self.wrong(key, node) };
        text.parse().map_err(|error: T::Err| self.refused::<T>(key, node, error.to_string())).ok()
    }

    /// Reads a list of words.
    pub(super) fn words(&mut self, key: &Key, node: &Node) -> Option<Vec<String>> {
        let Some(list) = node.get_ref().as_array() else { return self.wrong(key, node) };
        let mut words = Vec::new();
        for node in list {
            match node.get_ref().as_str() {
                // A shell script may have several lines.
                Some(word) if !word.chars().any(|c| c.is_control() && !"\n\t".contains(c)) => {
                    words.push(word.to_owned());
                }
                _ => return self.wrong(key, node),
            }
        }
        Some(words)
    }

    /// Reads names of counters, each with a regular expression of one group or a JSON pointer.
    pub(super) fn patterns(
        &mut self,
        key: &Key,
        node: &Node,
    ) -> Vec<(Range<usize>, String, String)> {
        let Some(table) = node.get_ref().as_table() else {
            let _: Option<()> = self.wrong(key, node);
            return Vec::new();
        };
        let mut out = Vec::new();
        for (name, value) in table {
            let why = match value.get_ref().as_str() {
                None => format!("this is {}", found(value)),
                Some(text) => match is_pattern(text) {
                    Ok(()) => {
                        let span = name.span().start..value.span().end;
                        out.push((span, name.get_ref().to_string(), text.to_owned()));
                        continue;
                    }
                    Err(why) => why,
                },
            };
            self.faults.push(
                Diagnostic::new(
                    value.span(),
                    "a counter is found by a regular expression with one group, or by a JSON \
                     pointer",
                )
                .label(why)
                .help("e.g. 'RX-packets: (\\d+)', or \"/ports/0/rx\" where JSON is printed"),
            );
        }
        out
    }

    /// Reads a directory with the text of its files.
    pub(super) fn overlay(&mut self, key: &Key, node: &Node) -> Option<Overlay> {
        let directory = self.text(key, node)?.trim_end_matches('/').to_owned();
        match self.files_below(&directory) {
            Ok(files) => Some(Overlay { directory, files }),
            Err((file, why)) => {
                let message = match file {
                    None => format!("the directory `{directory}` can't be laid over the DUT's"),
                    Some(file) => format!("`{file}` of `{directory}` can't be laid over the DUT's"),
                };
                self.fault(Diagnostic::new(node.span(), message).label(why).help(
                    "a directory, relative to the experiment file, with text files below \
                         boot/, etc/, usr/local/etc/",
                ))
            }
        }
    }

    /// Returns path and text of each file, or the first invalid one with the reason.
    fn files_below(
        &self,
        directory: &str,
    ) -> Result<BTreeMap<String, String>, (Option<String>, String)> {
        let listing = (self.loader)(&format!("{directory}/")).map_err(|why| (None, why))?;
        let listing = String::from_utf8(listing)
            .map_err(|_| (None, "a name of a file is no text in UTF-8".to_owned()))?;
        let (mut files, mut total) = (BTreeMap::new(), 0);
        for path in listing.split_terminator('\0') {
            let failed = |why: String| (Some(path.to_owned()), why);
            if !is_path(path) {
                return Err(failed("it is not below a directory of the DUT".to_owned()));
            }
            let content = (self.loader)(&format!("{directory}/{path}")).map_err(failed)?;
            total += content.len();
            if content.len() > OVERLAY_FILE_MAX {
                let why = format!("it is larger than {} KiB", OVERLAY_FILE_MAX / 1024);
                return Err(failed(why));
            }
            let text = String::from_utf8(content)
                .ok()
                .filter(|text| !text.contains('\0'))
                .ok_or_else(|| failed("it is no text in UTF-8".to_owned()))?;
            files.insert(path.to_owned(), text);
        }
        match files.len() {
            0 => Err((None, "there is no file in it".to_owned())),
            _ if total > OVERLAY_MAX => {
                Err((None, format!("its files are larger than {} KiB", OVERLAY_MAX / 1024)))
            }
            _ => Ok(files),
        }
    }
}

/// Checks that a text is a JSON pointer (RFC 6901) or a regular expression with one group.
fn is_pattern(text: &str) -> Result<(), String> {
    if text.starts_with('/') {
        return Ok(());
    }
    let pattern = regex_lite::Regex::new(text).map_err(|error| error.to_string())?;
    match pattern.captures_len() {
        2 => Ok(()),
        groups => Err(format!("this has {} groups", groups - 1)),
    }
}

/// True for the path of a file at least one directory below the DUT's root.
fn is_path(path: &str) -> bool {
    let part = |part: &str| {
        !matches!(part, "" | "." | "..") && !part.chars().any(|c| c.is_control() || c == '\\')
    };
    path.contains('/') && path.split('/').all(part)
}

/// True for a name in rc.conf, which sh must be able to assign to, or in loader.conf.
fn is_variable(key: &str, name: &str) -> bool {
    let dots: &[u8] = if key == "loader" { b"_.-" } else { b"_" };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || dots.contains(&byte);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        for (path, expected) in [
            ("etc/rc.conf", true),
            ("usr/local/etc/x/y.conf", true),
            ("README", false),
            ("/etc/rc.conf", false),
            ("etc/../../x", false),
            ("etc//x", false),
            ("etc/", false),
            ("etc/a\nb", false),
        ] {
            assert_eq!(is_path(path), expected, "{path}");
        }
    }

    #[test]
    fn variable_names_follow_their_file() {
        for (name, loader, rc) in [
            ("hw.cxgbe.nrxq10g", true, false),
            ("if_cxgbe_load", true, true),
            ("ifconfig_cxl0", true, true),
            ("4k", false, false),
            ("a b", false, false),
            ("a=b", false, false),
            ("", false, false),
        ] {
            assert_eq!(
                (is_variable("loader", name), is_variable("rc", name)),
                (loader, rc),
                "{name}"
            );
        }
    }
}
