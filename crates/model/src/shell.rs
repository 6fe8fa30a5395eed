//! Parser for statements of sh(1) scripts that only assign, without running them: rc.conf(5), and
//! the configurations of `bench-lab.sh`.
//!
//! Words, quotes and comments follow POSIX.1-2024, XCU 2.2 and 2.3. Out of scope: expansions other
//! than `$NAME` and `${NAME}`, here-documents, and whether a compound command executes the
//! assignments within it.

use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;

/// Maximum length of a value in bytes: references to references could double without end.
pub const VALUE_MAX: usize = 64 * 1024;

/// A character of a statement, without quotes and escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The character.
    pub character: char,
    /// Offset in the script.
    pub at: usize,
    /// True within quotes of either kind, or if escaped: ends no word.
    pub quoted: bool,
    /// True within single quotes, or if escaped: names no variable.
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

/// Text up to the end of a line or a semicolon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Its span, including the line feed or semicolon that ends it.
    pub span: Range<usize>,
    /// Its characters without comment and surrounding blanks; empty for an empty statement.
    pub parts: Vec<Part>,
    /// End of the last word.
    pub end: usize,
    /// Comment after it, including the `#`.
    pub comment: Option<Range<usize>>,
    /// Position of an unclosed quote, or of a backslash at the end of the script.
    pub unfinished: Option<usize>,
    /// True if a semicolon ends it: more may follow on the same line.
    pub goes_on: bool,
}

impl Statement {
    /// Returns the assignment, if the statement is one and has nothing before it.
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

    /// Returns the word, if the statement is a single word or empty.
    pub fn word(&self) -> Option<String> {
        let is_one = !self.parts.iter().any(Part::is_blank);
        is_one.then(|| self.text())
    }

    /// True if it begins like `: ${NAME:=value}`.
    pub fn is_default(&self) -> bool {
        self.default_of().is_some()
    }

    fn default_of(&self) -> Option<&[Part]> {
        let blanks = self.parts.strip_prefix_character(':')?;
        let start = blanks.iter().position(|part| !part.is_blank()).filter(|&at| at > 0)?;
        blanks[start..].strip_prefix_character('$')?.strip_prefix_character('{')
    }

    /// Returns its text without quotes.
    fn text(&self) -> String {
        text(&self.parts)
    }

    /// Returns the depth in compound commands (`if`, loops, functions) after this statement.
    fn depth(&self, mut depth: usize) -> usize {
        // Quoted text is never a keyword.
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

/// Form of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `NAME=value`
    Plain,
    /// `export NAME=value`
    Exported,
    /// `: ${NAME:=value}`: only if the variable is unset or empty.
    Default,
    /// `: ${NAME=value}`: only if the variable is unset.
    Unset,
}

/// An assignment as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Form of the assignment.
    pub form: Form,
    /// Text after the value, such as the command that the assignment is for.
    pub behind: Option<usize>,
    value: Vec<Part>,
}

/// Reason why the value of an assignment is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// It requires more than variables: a command, an expansion.
    Evaluated(Range<usize>),
    /// A variable that is never set.
    Unknown(String, Range<usize>),
    /// It would be longer than [`VALUE_MAX`].
    TooLong,
}

impl Assignment {
    /// True if the variable keeps a non-empty value.
    pub fn is_default(&self) -> bool {
        matches!(self.form, Form::Default | Form::Unset)
    }

    /// Returns the value in its original notation, without its quotes.
    pub fn as_written(&self) -> String {
        text(&self.value)
    }

    /// Returns the first character of the value with a meaning to a shell: a redirection, a pipe, a
    /// pattern.
    pub fn operator(&self, operators: &str) -> Option<&Part> {
        self.value.iter().find(|part| !part.quoted && operators.contains(part.character))
    }

    /// Returns the value with its variables replaced through `lookup`.
    ///
    /// # Errors
    /// The first part that variables do not explain.
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

/// Returns the statements of a script in order, including empty ones, each with its depth in
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

/// Returns the assignments of a script in order, and the number of its other statements.
/// Assignments within compound commands are excluded, because their execution is uncertain. Lines
/// may end as in MS-DOS.
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

/// Parser of a script.
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
                        // The line continues in the next one.
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
    /// Returns the offset of the next character.
    fn at(&mut self) -> usize {
        self.rest.peek().map_or(self.script.len(), |&(at, _)| at)
    }

    /// Processes the character after a backslash. False at the end of the script.
    fn escaped(&mut self, at: usize, quoted: bool, parts: &mut Vec<Part>) -> bool {
        let Some((_, character)) = self.rest.next() else { return false };
        let itself = |character| Part { character, at, quoted: true, literal: true };
        // Within double quotes the backslash remains before characters that need none.
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

/// Returns the variable after the `$` at `dollar`, and the text after it; `None` if it requires
/// evaluation.
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

/// Returns the name at the beginning of `parts`. It ends at a quote between two characters.
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

/// Prefix and suffix operations on slices of parts.
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
