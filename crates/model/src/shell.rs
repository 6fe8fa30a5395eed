//! The statements of sh(1) scripts that do nothing but assign, without running them:
//! rc.conf(5), and the configurations of `bench-lab.sh`.
//!
//! Words, quotes and comments are those of POSIX.1-2024, XCU 2.2 and 2.3. Left out on
//! purpose: expansions other than `$NAME` and `${NAME}`, here-documents, and whether a
//! compound command carries out the assignments within it.

use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;

/// Longest value in bytes: references to references could double without end.
pub const VALUE_MAX: usize = 64 * 1024;

/// A character of a statement, quotes and escapes taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The character.
    pub character: char,
    /// Its place in the script.
    pub at: usize,
    /// Within quotes of either kind, or escaped: ends no word.
    pub quoted: bool,
    /// Within single quotes, or escaped: names no variable.
    pub literal: bool,
}

impl Part {
    fn is_blank(&self) -> bool {
        !self.quoted && matches!(self.character, ' ' | '\t')
    }

    fn is(&self, character: char) -> bool {
        !self.quoted && self.character == character
    }
}

/// What stands up to the end of a line or a semicolon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Its place, with the line feed or semicolon that ends it.
    pub span: Range<usize>,
    /// Its characters without comment and blanks around them; none where it is empty.
    pub parts: Vec<Part>,
    /// Where the last word ends.
    pub end: usize,
    /// The comment behind it, with its `#`.
    pub comment: Option<Range<usize>>,
    /// A quote that is never closed, or a backslash at the end of the script.
    pub unfinished: Option<usize>,
    /// True when a semicolon ends it: more may follow on the same line.
    pub goes_on: bool,
}

impl Statement {
    /// What it assigns, when it is one assignment and has nothing before it.
    pub fn assignment(&self) -> Option<Assignment> {
        let (mut rest, mut form) = (&self.parts[..], Form::Plain);
        if let Some(inner) = self.default_of() {
            (rest, form) = (inner.strip_suffix_character('}')?, Form::Default);
        } else if self.text().starts_with("export ") {
            (rest, form) = (rest.get(7..)?, Form::Exported);
        }
        let (name, mut value) = name(rest)?;
        match (value.strip_prefix_character(':'), form) {
            (Some(after), Form::Default) => value = after,
            (None, Form::Default) => form = Form::Unset,
            _ => {}
        }
        let mut value = value.strip_prefix_character('=')?;
        if rest[..rest.len() - value.len()].iter().any(|part| part.quoted) {
            return None;
        }
        let mut behind = None;
        if matches!(form, Form::Plain | Form::Exported)
            && let Some(blank) = value.iter().position(Part::is_blank)
        {
            behind = value[blank..].iter().find(|part| !part.is_blank()).map(|part| part.at);
            value = &value[..blank];
        }
        Some(Assignment { name, value: value.to_vec(), form, behind })
    }

    /// What it is when it is one word, or nothing.
    pub fn word(&self) -> Option<String> {
        let is_one = !self.parts.iter().any(Part::is_blank);
        is_one.then(|| self.text())
    }

    /// True when it begins as `: ${NAME:=value}` does.
    pub fn is_default(&self) -> bool {
        self.default_of().is_some()
    }

    fn default_of(&self) -> Option<&[Part]> {
        let blanks = self.parts.strip_prefix_character(':')?;
        let start = blanks.iter().position(|part| !part.is_blank()).filter(|&at| at > 0)?;
        blanks[start..].strip_prefix_character('$')?.strip_prefix_character('{')
    }

    /// Its text without quotes.
    fn text(&self) -> String {
        text(&self.parts)
    }

    /// How much deeper in compound commands (`if`, loops, functions) what follows is.
    fn depth(&self, mut depth: usize) -> usize {
        // Quoted text is nobody's keyword.
        let plain = |part: &Part| if part.quoted { '"' } else { part.character };
        let words: String = self.parts.iter().map(plain).collect();
        for (index, word) in words.split_whitespace().enumerate() {
            match word {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "if" | "case" | "for" | "while" | "until" if index == 0 => depth += 1,
                "fi" | "esac" | "done" if index == 0 => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        depth
    }
}

/// How a statement assigns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `NAME=value`
    Plain,
    /// `export NAME=value`
    Exported,
    /// `: ${NAME:=value}`: only where nothing is set yet, or it is empty.
    Default,
    /// `: ${NAME=value}`: only where nothing is set yet.
    Unset,
}

/// An assignment as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// How it is assigned.
    pub form: Form,
    /// What stands behind the value, such as the command that the assignment is for.
    pub behind: Option<usize>,
    value: Vec<Part>,
}

/// Why the value of an assignment is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// It takes more than variables to know it: a command, an expansion.
    Evaluated(Range<usize>),
    /// A variable that nothing sets.
    Unknown(String, Range<usize>),
    /// It would be longer than [`VALUE_MAX`].
    TooLong,
}

impl Assignment {
    /// True when the variable keeps a value that is not empty.
    pub fn is_default(&self) -> bool {
        matches!(self.form, Form::Default | Form::Unset)
    }

    /// The value as written, without its quotes.
    pub fn as_written(&self) -> String {
        text(&self.value)
    }

    /// The first character of the value that means something to a shell: a redirection,
    /// a pipe, a pattern.
    pub fn operator(&self, operators: &str) -> Option<&Part> {
        self.value.iter().find(|part| !part.quoted && operators.contains(part.character))
    }

    /// The value with its variables replaced through `lookup`.
    ///
    /// # Errors
    /// The first part of it that variables do not explain.
    pub fn resolved<'a>(
        &self,
        mut lookup: impl FnMut(&str) -> Option<&'a str>,
    ) -> Result<String, Unresolved> {
        let mut value = String::new();
        let mut rest = &self.value[..];
        while let Some((part, after)) = rest.split_first() {
            rest = after;
            match part.character {
                '$' if !part.literal => {
                    let Some((name, after)) = variable(part.at, rest) else {
                        return Err(Unresolved::Evaluated(part.at..part.at + 1));
                    };
                    let last = rest[rest.len() - after.len() - 1];
                    rest = after;
                    match lookup(&name) {
                        Some(found) => value.push_str(found),
                        None => return Err(Unresolved::Unknown(name, part.at..last.at + 1)),
                    }
                }
                '`' if !part.literal => {
                    return Err(Unresolved::Evaluated(part.at..part.at + 1));
                }
                character => value.push(character),
            }
            if value.len() > VALUE_MAX {
                return Err(Unresolved::TooLong);
            }
        }
        Ok(value)
    }
}

/// The statements of a script in order, also empty ones, each with how deep it stands in
/// compound commands.
pub fn statements(script: &str) -> impl Iterator<Item = (Statement, usize)> {
    let reader = Reader { script, rest: script.char_indices().peekable() };
    let mut depth = 0;
    reader.map(move |statement| {
        let before = depth;
        depth = statement.depth(depth);
        (statement, before)
    })
}

/// The assignments of a script in order, and how many other statements it has. What stands
/// within compound commands is not among them, since whether it happens isn't known. Lines
/// may end as those of MS-DOS do.
pub fn assignments(script: &str) -> (Vec<Assignment>, usize) {
    let (mut found, mut others) = (Vec::new(), 0);
    let script = script.replace("\r\n", "\n");
    for (statement, depth) in statements(&script).filter(|(s, _)| !s.parts.is_empty()) {
        match statement.assignment().filter(|assigned| assigned.behind.is_none()) {
            Some(assignment) if depth == 0 => found.push(assignment),
            _ => others += 1,
        }
    }
    (found, others)
}

/// Takes a script apart.
struct Reader<'a> {
    script: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

impl Iterator for Reader<'_> {
    type Item = Statement;

    fn next(&mut self) -> Option<Statement> {
        let start = self.rest.peek()?.0;
        let mut statement = Statement { end: start, ..Statement::default() };
        let mut quote: Option<(usize, char)> = None;
        while let Some((at, character)) = self.rest.next() {
            let parts = &mut statement.parts;
            match (character, quote) {
                ('\n', None) => break,
                (';', None) => {
                    statement.goes_on = true;
                    break;
                }
                // A comment begins only where a word could.
                ('#', None)
                    if parts.last().is_none_or(Part::is_blank)
                        && (at == start || statement.end < at) =>
                {
                    while self.rest.next_if(|&(_, c)| c != '\n').is_some() {}
                    statement.comment = Some(at..self.at());
                    continue;
                }
                ('\\', None | Some((_, '"'))) => {
                    if self.rest.next_if(|&(_, c)| c == '\n').is_some() {
                        // The line goes on in the next one.
                        continue;
                    }
                    if !self.escaped(at, quote.is_some(), parts) {
                        statement.unfinished.get_or_insert(at);
                    }
                }
                ('"' | '\'', None) => quote = Some((at, character)),
                (_, Some((_, closing))) if character == closing => quote = None,
                _ => parts.push(Part {
                    character,
                    at,
                    quoted: quote.is_some(),
                    literal: quote.is_some_and(|(_, quote)| quote == '\''),
                }),
            }
            if quote.is_some() || !matches!(character, ' ' | '\t') {
                statement.end = self.at();
            }
        }
        statement.span = start..self.at();
        if let Some((open, _)) = quote {
            statement.unfinished = Some(open);
        }
        let parts = &mut statement.parts;
        parts.truncate(parts.iter().rposition(|part| !part.is_blank()).map_or(0, |last| last + 1));
        parts.drain(..parts.iter().position(|part| !part.is_blank()).unwrap_or(0));
        Some(statement)
    }
}

impl Reader<'_> {
    /// Where the next character stands.
    fn at(&mut self) -> usize {
        self.rest.peek().map_or(self.script.len(), |&(at, _)| at)
    }

    /// What follows a backslash. False at the end of the script.
    fn escaped(&mut self, at: usize, quoted: bool, parts: &mut Vec<Part>) -> bool {
        let Some((_, character)) = self.rest.next() else { return false };
        let itself = |character| Part { character, at, quoted: true, literal: true };
        // Within double quotes the backslash stays before what needs none.
        if quoted && !matches!(character, '$' | '`' | '"' | '\\') {
            parts.push(itself('\\'));
        }
        parts.push(itself(character));
        true
    }
}

fn text(parts: &[Part]) -> String {
    parts.iter().map(|part| part.character).collect()
}

/// The variable after the `$` at `dollar`, and what follows it; none for anything that
/// takes an evaluation.
fn variable(dollar: usize, parts: &[Part]) -> Option<(String, &[Part])> {
    parts.first().filter(|first| first.at == dollar + 1)?;
    match parts.strip_prefix_character('{') {
        Some(inner) => {
            let (name, rest) = name(inner)?;
            Some((name, rest.strip_prefix_character('}')?))
        }
        None => name(parts),
    }
}

/// The name that `parts` begin with. It ends where a quote stands between two characters.
fn name(parts: &[Part]) -> Option<(String, &[Part])> {
    let first = parts.first()?;
    let is_of_name = |&(index, part): &(usize, &Part)| {
        let plain = part.character.is_ascii_alphanumeric() || part.character == '_';
        plain && !part.literal && part.at == first.at + index
    };
    let length = parts.iter().enumerate().take_while(is_of_name).count();
    let (name, rest) = parts.split_at(length);
    (length > 0 && !first.character.is_ascii_digit()).then(|| (text(name), rest))
}

/// What slices of parts can do with what they begin and end with.
trait Affixes {
    fn strip_prefix_character(&self, character: char) -> Option<&Self>;
    fn strip_suffix_character(&self, character: char) -> Option<&Self>;
}

impl Affixes for [Part] {
    fn strip_prefix_character(&self, character: char) -> Option<&[Part]> {
        let (first, rest) = self.split_first()?;
        (!first.literal && first.character == character).then_some(rest)
    }

    fn strip_suffix_character(&self, character: char) -> Option<&[Part]> {
        let (last, rest) = self.split_last()?;
        last.is(character).then_some(rest)
    }
}

#[cfg(test)]
mod tests;
