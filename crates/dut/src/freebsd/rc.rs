//! Text of rc.conf(5), loader.conf(5) and sysctl.conf(5), read and changed without executing it.
//!
//! Text that is not understood is kept unchanged. Of several assignments of a name the last one
//! takes effect. Not handled: variables and commands within values, which a shell would expand
//! (they are read literally), and assignments within compound commands (they may or may not be
//! executed; new values are written after them).

use fwdlab_model::shell::{self, Form};
use std::fmt::Write;

/// Format, including its quoting rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// rc.conf(5): assignments of sh(1).
    Rc,
    /// loader.conf(5): names contain dots, values are quoted.
    Loader,
    /// sysctl.conf(5): `name=value` to the end of the line or a comment.
    Sysctl,
}

impl Format {
    /// Format of a file by its path; `None` for other files.
    pub fn of(path: &str) -> Option<Format> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is = |base: &str| {
            name.strip_prefix(base).is_some_and(|r| r.is_empty() || r.starts_with('.'))
        };
        match name {
            _ if is("rc.conf") || path.contains("/rc.conf.d/") => Some(Format::Rc),
            _ if is("loader.conf") || path.contains("/loader.conf.d/") => Some(Format::Loader),
            _ if is("sysctl.conf") => Some(Format::Sysctl),
            _ => None,
        }
    }

    /// True if this is a valid name in this format.
    pub fn is_name(self, name: &str) -> bool {
        let more: &[char] = if self == Format::Rc { &[] } else { &['.', '-', '%'] };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || more.contains(&c);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(is_of_name)
    }

    /// True if a file of this format can contain this value and reads it back unchanged.
    pub fn is_value(self, value: &str) -> bool {
        match self {
            Format::Rc => !value.contains(['\0', '\r']),
            Format::Loader => !value.contains(char::is_control),
            Format::Sysctl => {
                !value.is_empty()
                    && value.trim() == value
                    && !value.contains(['#', '"'])
                    && !value.contains(char::is_control)
            }
        }
    }

    fn line(self, name: &str, value: &str) -> String {
        let mut line = format!("{name}=");
        if self == Format::Sysctl {
            line.push_str(value);
            return line;
        }
        let special: &[char] = match self {
            Format::Rc => &['"', '\\', '$', '`'],
            _ => &['"', '\\'],
        };
        line.push('"');
        for character in value.chars() {
            if special.contains(&character) {
                line.push('\\');
            }
            line.push(character);
        }
        line.push('"');
        line
    }
}

/// A file of one of these formats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    format: Format,
    pieces: Vec<Piece>,
}

/// A statement including its line end, or text between statements.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    text: String,
    /// Name, value, and the text after the value (a comment).
    assigned: Option<(String, String, String)>,
}

impl Document {
    /// Reads a file's text.
    pub fn parse(format: Format, text: &str) -> Document {
        let pieces = match format {
            Format::Rc => statements(text),
            Format::Loader | Format::Sysctl => {
                text.split_inclusive('\n').map(|line| Piece::of_line(format, line)).collect()
            }
        };
        Document { format, pieces }
    }

    /// Value of a name without its quotes; `None` if nothing sets it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.assignments().filter(|(known, _)| *known == name).last().map(|(_, value)| value)
    }

    /// Names and values in the order of the file, including overridden ones.
    pub fn assignments(&self) -> impl Iterator<Item = (&str, &str)> {
        let assigned = self.pieces.iter().filter_map(|piece| piece.assigned.as_ref());
        assigned.map(|(name, value, _)| (name.as_str(), value.as_str()))
    }

    /// Lines other than comments that contain no recognised assignment.
    pub fn other_lines(&self) -> impl Iterator<Item = &str> {
        let others = self.pieces.iter().filter(|piece| piece.assigned.is_none());
        let lines = others.flat_map(|piece| piece.text.lines()).map(str::trim);
        lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
    }

    /// Sets a name in place of its last assignment, or at the end. Name and value must satisfy
    /// [`Format::is_name`] and [`Format::is_value`].
    pub fn set(&mut self, name: &str, value: &str) {
        let sets_name = |piece: &Piece| piece.assigned.as_ref().is_some_and(|(n, ..)| n == name);
        let last = self.pieces.iter().rposition(sets_name);
        if last.is_some() && self.get(name) == Some(value) {
            return;
        }
        let mut text = self.format.line(name, value);
        let mut assigned = (name.to_owned(), value.to_owned(), String::new());
        match last {
            Some(at) => {
                let old = self.pieces[at].assigned.take();
                assigned.2 = old.map(|(_, _, after)| after).unwrap_or_default();
                let _ = write!(text, "{}", assigned.2);
                self.pieces[at] = Piece { text, assigned: Some(assigned) };
            }
            None => {
                if let Some(piece) = self.pieces.last_mut().filter(|p| !p.text.ends_with('\n')) {
                    piece.text.push('\n');
                    if let Some((_, _, after)) = &mut piece.assigned {
                        after.push('\n');
                    }
                }
                assigned.2 = "\n".into();
                text.push('\n');
                self.pieces.push(Piece { text, assigned: Some(assigned) });
            }
        }
    }

    /// The file's text.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// Lines of a sh(1) script. Statements that share a line, or that a quote or a backslash joins,
/// form one piece.
fn statements(text: &str) -> Vec<Piece> {
    let (mut pieces, mut start, mut count) = (Vec::new(), 0, 0);
    for (statement, depth) in shell::statements(text) {
        count += 1;
        if statement.goes_on && statement.span.end < text.len() {
            continue;
        }
        let alone = count == 1 && depth == 0 && !statement.goes_on;
        let assignment = statement.assignment().filter(|assignment| {
            let plain = assignment.form == Form::Plain && assignment.operator("()&|<>").is_none();
            alone && plain && assignment.behind.is_none() && statement.unfinished.is_none()
        });
        let piece = &text[start..statement.span.end];
        let after = &text[statement.end..statement.span.end];
        pieces.push(Piece {
            text: piece.to_owned(),
            assigned: assignment.map(|set| {
                let value = set.as_written();
                (set.name, value, after.to_owned())
            }),
        });
        (start, count) = (statement.span.end, 0);
    }
    pieces
}

impl Piece {
    /// Parses a line of a format whose statements never continue on the next line.
    fn of_line(format: Format, line: &str) -> Piece {
        let assigned = line.split_once('=').and_then(|(name, value)| {
            let (name, value_start) = (name.trim_matches([' ', '\t']), name.len() + 1);
            let (value, end) = match format {
                Format::Sysctl => plain_value(value),
                _ => quoted_value(value)?,
            };
            // The rest of the line must be empty or a comment.
            let after = &line[value_start + end..];
            let rest = after.trim();
            let alone = rest.is_empty() || (rest.starts_with('#') && !after.starts_with('#'));
            let found = || (name.to_owned(), value, after.to_owned());
            (alone && format.is_name(name)).then(found)
        });
        Piece { text: line.to_owned(), assigned }
    }
}

/// A value without quotes, up to a comment or the end of the line, and its length.
fn plain_value(text: &str) -> (String, usize) {
    let line = text.trim_end_matches('\n');
    let content = line.find('#').map_or(line, |at| &line[..at]).trim_end();
    let value = content.trim();
    let bare = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    (bare.to_owned(), content.len())
}

/// A word with the quotes of sh(1), and its length; `None` if the text is more than one word.
fn quoted_value(text: &str) -> Option<(String, usize)> {
    let statement = shell::statements(text).next().map(|(statement, _)| statement);
    let statement = statement.unwrap_or_default();
    let is_whole = !statement.goes_on && statement.unfinished.is_none();
    Some((statement.word().filter(|_| is_whole)?, statement.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    fn pairs(format: Format, text: &str) -> Vec<(String, String)> {
        let document = Document::parse(format, text);
        document.assignments().map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
    }

    fn check(format: Format, text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        assert_eq!(pairs(format, text), expected, "{text}");
    }

    #[test]
    fn each_format_is_parsed_like_its_program_does() {
        check(Format::Rc, "a=\"x y\" # why\n#b=1\nc='$d'\n", &[("a", "x y"), ("c", "$d")]);
        check(
            Format::Rc,
            "a=pre\"mid dle\"post\nb=\"one\ntwo\"\n",
            &[("a", "premid dlepost"), ("b", "one\ntwo")],
        );
        check(Format::Rc, "if true; then\na=1\nfi\nb=2\n", &[("b", "2")]);
        check(Format::Rc, "f() {\na=1\n}\nb=2\nc=$(date)\nd=1 cmd\n", &[("b", "2")]);
        check(Format::Rc, "a=x#y\nb=\"open\n", &[("a", "x#y")]);
        check(
            Format::Loader,
            "hw.usb.no_pf=\"1\"\t# Disable\nb_load=YES\nkern.x = \"2\"\n",
            &[("hw.usb.no_pf", "1"), ("b_load", "YES"), ("kern.x", "2")],
        );
        check(
            Format::Sysctl,
            "net.inet.ip.redirect = 0 # none\nkern.x=a b\n\n# a=b\n",
            &[("net.inet.ip.redirect", "0"), ("kern.x", "a b")],
        );
    }

    #[test]
    fn set_replaces_the_last_assignment_and_keeps_the_rest() {
        let text = "# head\na=\"1\"\nb=2 # two\na=3 # last\nif x; then\na=4\nfi";
        let mut document = Document::parse(Format::Rc, text);
        document.set("a", "$5 `x`");
        document.set("b", "2");
        document.set("new", "\"q\"");
        let expected = "# head\na=\"1\"\nb=2 # two\na=\"\\$5 \\`x\\`\" # last\nif x; then\na=4\nfi\nnew=\"\\\"q\\\"\"\n";
        assert_eq!(document.text(), expected);
        assert_eq!(document.get("a"), Some("$5 `x`"));
        assert_eq!(document.other_lines().collect::<Vec<_>>(), ["if x; then", "a=4", "fi"]);
    }

    #[test]
    fn quoted_text_is_not_a_statement() {
        check(Format::Rc, "a=\"\nb=1\n\" run\nc=2\n", &[("c", "2")]);
        check(Format::Rc, "a=1\nb='\nc=2\n", &[("a", "1")]);
        check(Format::Rc, "a='\nf() {\n' run\nc=2\n", &[("c", "2")]);
    }

    /// Each of these lines leaves a quote open that no other one closes: a parser that restarts at
    /// every line would take forever.
    #[test]
    fn open_quotes_are_parsed_in_linear_time() {
        let text = "a='\"\\'\"\n".repeat(64 * 1024);
        assert_eq!(pairs(Format::Rc, &text), []);
    }

    fn runner(cases: u32) -> TestRunner {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        TestRunner::new_with_rng(Config { cases, ..Config::default() }, rng)
    }

    #[test]
    fn any_text_is_preserved_byte_for_byte() {
        let text = "[ -~\\t\\n]{0,60}|([a-c]{1,2}=[\"'a-z0-9 $#\\\\]{0,6}[\"']?[ #\\n]{0,3}){0,6}";
        let case = (text, 0..3_usize);
        runner(4000)
            .run(&case, |(text, format)| {
                let format = [Format::Rc, Format::Loader, Format::Sysctl][format];
                prop_assert_eq!(Document::parse(format, &text).text(), text);
                Ok(())
            })
            .expect("kept");
    }

    #[test]
    fn set_reads_back_and_changes_nothing_else() {
        let names = ["aa", "bb", "cc", "dd"];
        let case = (
            prop::collection::vec((0..4_usize, "[ -~]{0,12}"), 0..6),
            (0..4_usize, "[ -~]{0,12}"),
            0..3_usize,
        );
        runner(2000)
            .run(&case, |(first, (name, value), format)| {
                let format = [Format::Rc, Format::Loader, Format::Sysctl][format];
                let mut document = Document::parse(format, "# head\n");
                for (name, value) in first.iter().filter(|(_, value)| format.is_value(value)) {
                    document.set(names[*name], value);
                }
                prop_assume!(format.is_value(&value));
                let before: Vec<_> =
                    names.iter().map(|n| document.get(n).map(str::to_owned)).collect();
                document.set(names[name], &value);
                let again = Document::parse(format, &document.text());
                for (index, other) in names.iter().enumerate() {
                    let expected =
                        if index == name { Some(&value) } else { before[index].as_ref() };
                    prop_assert_eq!(again.get(other), expected.map(String::as_str));
                }
                Ok(())
            })
            .expect("reads back");
    }

    /// The oracle is this machine's sh(1).
    #[test]
    fn shell_reads_the_values_that_were_set() {
        let mut runner = runner(1);
        let values = prop::collection::vec("[ -~\\n]{0,12}", 60);
        runner
            .run(&values, |values| {
                let mut document = Document::parse(Format::Rc, "");
                for (index, value) in values.iter().enumerate() {
                    document.set(&format!("v{index}"), value);
                }
                let mut script = document.text();
                for index in 0..values.len() {
                    let _ = writeln!(script, "printf '%s\\001' \"$v{index}\"");
                }
                let output = std::process::Command::new("sh").args(["-c", &script]).output();
                let output = String::from_utf8(output.expect("sh").stdout).expect("text");
                let found: Vec<&str> = output.split('\u{1}').collect();
                prop_assert_eq!(&found[..values.len()], &values[..]);
                Ok(())
            })
            .expect("sh agrees");
    }

    #[test]
    fn names_and_paths_depend_on_the_format() {
        assert!(Format::Rc.is_name("ifconfig_cxl0") && !Format::Rc.is_name("hw.x"));
        assert!(Format::Loader.is_name("hw.cxgbe.nrxq10g") && !Format::Loader.is_name("a;b"));
        assert!(!Format::Rc.is_name("") && !Format::Rc.is_name("1a") && !Format::Rc.is_name("a b"));
        assert_eq!(Format::of("/boot/loader.conf.local"), Some(Format::Loader));
        assert_eq!(Format::of("/etc/rc.conf"), Some(Format::Rc));
        assert_eq!(Format::of("/etc/pf.conf"), None);
    }
}
