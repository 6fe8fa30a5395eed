//! The assignments of a sh(1) script, without running it.
//!
//! Enough for rc.conf(5), loader.conf(5) and the harness's configuration files:
//! one assignment a statement, `: ${NAME:="default"}`, quotes, continued lines.
//! Everything else is counted and left alone; assignments within compound
//! commands are left alone too, because whether they happen isn't known.

use std::iter::Peekable;
use std::str::Chars;

/// An assignment as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    value: Vec<Part>,
    /// Only where nothing is set yet (`: ${NAME:=value}`).
    pub(crate) default: bool,
}

impl Assignment {
    /// The value as written, without its quotes.
    pub(crate) fn as_written(&self) -> String {
        text(&self.value)
    }

    /// The value with its variables replaced through `lookup` (an unknown one
    /// is empty, as in sh); none where it takes more than that to know it.
    pub(crate) fn resolved<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
        let mut value = String::new();
        let mut rest = &self.value[..];
        while let Some((part, after)) = rest.split_first() {
            rest = after;
            match part.character {
                '$' if !part.literal => {
                    let (name, after) = variable(rest)?;
                    value.push_str(lookup(&name).unwrap_or_default());
                    rest = after;
                }
                '`' if !part.literal => return None,
                character => value.push(character),
            }
        }
        Some(value)
    }
}

/// The assignments of `script` in order, and how many other statements it has.
pub(crate) fn assignments(script: &str) -> (Vec<Assignment>, usize) {
    let script = script.replace("\r\n", "\n");
    let (mut found, mut skipped, mut depth) = (Vec::new(), 0, 0_usize);
    for statement in Statements(script.chars().peekable()) {
        let outside = depth == 0;
        // Quoted text is nobody's keyword.
        let plain = |part: &Part| if part.quoted { '"' } else { part.character };
        let words: String = statement.iter().map(plain).collect();
        for (index, word) in words.split_whitespace().enumerate() {
            match word {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "if" | "case" | "for" | "while" | "until" if index == 0 => depth += 1,
                "fi" | "esac" | "done" if index == 0 => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        match assignment(&statement) {
            Some(assignment) if outside => found.push(assignment),
            _ => skipped += 1,
        }
    }
    (found, skipped)
}

/// A character of a statement, quotes and escapes taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    character: char,
    /// Within quotes of either kind, or escaped: ends no word.
    quoted: bool,
    /// Within single quotes, or escaped: names no variable.
    literal: bool,
}

impl Part {
    fn is_blank(&self) -> bool {
        !self.quoted && self.character.is_whitespace()
    }
}

fn text(parts: &[Part]) -> String {
    parts.iter().map(|part| part.character).collect()
}

/// Statements end with the line, or with a semicolon outside quotes.
struct Statements<'a>(Peekable<Chars<'a>>);

impl Iterator for Statements<'_> {
    type Item = Vec<Part>;

    fn next(&mut self) -> Option<Vec<Part>> {
        loop {
            self.0.peek()?;
            let statement = self.statement();
            if !statement.is_empty() {
                return Some(statement);
            }
        }
    }
}

impl Statements<'_> {
    fn statement(&mut self) -> Vec<Part> {
        let (mut parts, mut quote) = (Vec::<Part>::new(), None);
        while let Some(character) = self.0.next() {
            match (character, quote) {
                ('\n' | ';', None) => break,
                // A comment begins only where a word could.
                ('#', None) if parts.last().is_none_or(Part::is_blank) => {
                    while self.0.next_if(|&c| c != '\n').is_some() {}
                }
                ('\\', None | Some('"')) => self.escaped(quote.is_some(), &mut parts),
                ('"' | '\'', None) => quote = Some(character),
                (_, Some(closing)) if character == closing => quote = None,
                _ => parts.push(Part {
                    character,
                    quoted: quote.is_some(),
                    literal: quote == Some('\''),
                }),
            }
        }
        let end = parts.iter().rposition(|part| !part.is_blank()).map_or(0, |last| last + 1);
        parts.truncate(end);
        let start = parts.iter().position(|part| !part.is_blank()).unwrap_or(0);
        parts.split_off(start)
    }

    /// What follows a backslash: nothing for a continued line, else itself.
    fn escaped(&mut self, quoted: bool, parts: &mut Vec<Part>) {
        let Some(character) = self.0.next().filter(|&c| c != '\n') else { return };
        let itself = |character| Part { character, quoted: true, literal: true };
        // Within double quotes the backslash stays before what needs none.
        if quoted && !matches!(character, '$' | '`' | '"' | '\\') {
            parts.push(itself('\\'));
        }
        parts.push(itself(character));
    }
}

/// The assignment that a statement is, if it is one and nothing else.
fn assignment(statement: &[Part]) -> Option<Assignment> {
    let opening = [':', ' ', '$', '{'];
    let (mut rest, default) = match statement.split_first_chunk::<4>() {
        Some((start, inner)) if start.map(|part| part.character) == opening => {
            (inner.strip_suffix_character('}')?, true)
        }
        _ => (statement, false),
    };
    if text(rest).starts_with("export ") {
        rest = rest.get(7..)?;
    }
    let (name, mut value) = name(rest)?;
    if default {
        value = value.strip_prefix_character(':').unwrap_or(value);
    }
    let value = value.strip_prefix_character('=')?;
    let whole = default || !value.iter().any(Part::is_blank);
    whole.then(|| Assignment { name, value: value.to_vec(), default })
}

/// The variable after a `$`, and what follows it; none for anything that takes
/// an evaluation.
fn variable(parts: &[Part]) -> Option<(String, &[Part])> {
    match parts.strip_prefix_character('{') {
        Some(inner) => {
            let (name, rest) = name(inner)?;
            Some((name, rest.strip_prefix_character('}')?))
        }
        None => name(parts),
    }
}

/// The name that `parts` begin with.
fn name(parts: &[Part]) -> Option<(String, &[Part])> {
    let is_of_name = |part: &&Part| part.character.is_ascii_alphanumeric() || part.character == '_';
    let (name, rest) = parts.split_at(parts.iter().take_while(is_of_name).count());
    let first = name.first()?;
    (!first.character.is_ascii_digit()).then(|| (text(name), rest))
}

/// What slices of bytes can do with what they begin and end with.
trait Affixes {
    fn strip_prefix_character(&self, character: char) -> Option<&Self>;
    fn strip_suffix_character(&self, character: char) -> Option<&Self>;
}

impl Affixes for [Part] {
    fn strip_prefix_character(&self, character: char) -> Option<&[Part]> {
        self.split_first().filter(|(part, _)| part.character == character).map(|(_, rest)| rest)
    }

    fn strip_suffix_character(&self, character: char) -> Option<&[Part]> {
        self.split_last().filter(|(part, _)| part.character == character).map(|(_, rest)| rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and values as written, and the number of other statements.
    fn read(script: &str) -> (Vec<(String, String)>, usize) {
        let (found, skipped) = assignments(script);
        (found.into_iter().map(|a| (a.name.clone(), a.as_written())).collect(), skipped)
    }

    fn check(script: &str, expected: &[(&str, &str)], skipped: usize) {
        let (found, others) = read(script);
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        assert_eq!((found, others), (expected, skipped), "{script}");
    }

    #[test]
    fn assignments_as_configuration_files_have_them() {
        check("a=\"1\"\t# why\n# b=2\n\nc='$d'", &[("a", "1"), ("c", "$d")], 0);
        check("a=NO\r\nb=\"\"\r\n", &[("a", "NO"), ("b", "")], 0);
        check("a=\"one\ntwo\"\nb=x#y", &[("a", "one\ntwo"), ("b", "x#y")], 0);
        check("a=\"one \\\ntwo\"; b=1", &[("a", "one two"), ("b", "1")], 0);
        check("a=pre\"mid dle\"post", &[("a", "premid dlepost")], 0);
        check(": ${AF:=\"4\"}", &[("AF", "4")], 0);
        check("export A=1", &[("A", "1")], 0);
        check(r#"a="\"q\" \d""#, &[("a", "\"q\" \\d")], 0);
    }

    #[test]
    fn other_statements_are_counted_and_never_run() {
        check("rm -rf x\nA=1 command\nB=2", &[("B", "2")], 2);
        check("if [ -f x ]; then\nA=1\nfi\nB=2", &[("B", "2")], 4);
        check("f() {\nA=1\n}\nB=2", &[("B", "2")], 3);
        check("1a=2\n=3\na b=4", &[], 3);
    }

    #[test]
    fn variables_are_resolved_where_that_is_all() {
        let value = |script: &str| {
            let (found, _) = assignments(script);
            found[0].resolved(|name| (name == "B").then_some("beta"))
        };
        assert_eq!(value("A=${B}").as_deref(), Some("beta"));
        assert_eq!(value("A=\"x $B y ${C}\"").as_deref(), Some("x beta y "));
        assert_eq!(value("A='$B'").as_deref(), Some("$B"));
        assert_eq!(value(r#"A="\$B""#).as_deref(), Some("$B"));
        for evaluated in ["A=$(date)", "A=`date`", "A=${B:-1}", "A=$1", "A=$", "A=${B"] {
            assert_eq!(value(evaluated), None, "{evaluated}");
        }
    }
}
