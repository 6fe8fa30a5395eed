//! Titles, labels and data files of a gnuplot script.
//!
//! This module neither draws nor evaluates anything.

use serde::Serialize;

/// A figure's texts and data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plot {
    /// `set title`.
    pub title: Option<String>,
    /// `set xlabel`.
    pub xlabel: Option<String>,
    /// `set ylabel`.
    pub ylabel: Option<String>,
    /// `set y2label`.
    pub y2label: Option<String>,
    /// Factor from the first axis to the second (`set link y2 via y * F`): bits per packet of a mix
    /// if the first axis is in packets per second.
    pub y2_factor: Option<f64>,
    /// The plotted series, in order.
    pub series: Vec<Series>,
}

/// An element of `plot`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Series {
    /// Data file, relative to the script.
    pub file: String,
    /// Its title in the key; `None` with `notitle`.
    pub title: Option<String>,
}

impl Plot {
    /// Reads a script.
    pub fn parse(script: &str) -> Plot {
        let mut plot = Plot::default();
        for statement in statements(script) {
            let tokens = tokens(&statement);
            let words: Vec<&str> = tokens.iter().map(Token::word).collect();
            match words[..] {
                ["set", "title", ..] => plot.title = first_text(&tokens),
                ["set", "xlabel", ..] => plot.xlabel = first_text(&tokens),
                ["set", "ylabel", ..] => plot.ylabel = first_text(&tokens),
                ["set", "y2label", ..] => plot.y2label = first_text(&tokens),
                ["set", "link", "y2", "via", ref rest @ ..] => plot.y2_factor = factor(rest),
                ["plot" | "replot", ..] => plot.add_series(&tokens[1..]),
                _ => {}
            }
        }
        plot
    }

    /// Returns the data files without duplicates.
    pub fn files(&self) -> Vec<&str> {
        let mut files: Vec<&str> = Vec::new();
        for series in &self.series {
            if !files.contains(&series.file.as_str()) {
                files.push(&series.file);
            }
        }
        files
    }

    /// Adds the elements that plot a file: those that begin with a text. An empty text repeats the
    /// previous file. Other elements plot functions and are skipped.
    fn add_series(&mut self, tokens: &[Token]) {
        let comma = |token: &Token| matches!(token, Token::Comma);
        for element in tokens.split(comma) {
            let mut after_ranges = element.iter().skip_while(|t| t.word().starts_with('['));
            let Some(Token::Text(file)) = after_ranges.next() else { continue };
            let file = match self.series.last() {
                Some(before) if file.is_empty() => before.file.clone(),
                _ => file.clone(),
            };
            let at = element.iter().position(|token| matches!(token.word(), "title" | "t"));
            let title = match at.and_then(|at| element.get(at + 1)) {
                Some(Token::Text(title)) => Some(title.clone()),
                _ => None,
            };
            self.series.push(Series { file, title });
        }
    }
}

/// A token of a statement.
#[derive(Debug, PartialEq)]
enum Token {
    /// Unquoted text up to a blank.
    Word(String),
    /// A quoted text.
    Text(String),
    /// Separator of plot elements.
    Comma,
}

impl Token {
    /// Returns the word; empty for other tokens.
    fn word(&self) -> &str {
        match self {
            Token::Word(word) => word,
            _ => "",
        }
    }
}

/// Splits a script into statements and joins continued lines.
fn statements(script: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut open = String::new();
    for line in script.lines() {
        match line.trim_end().strip_suffix('\\') {
            Some(continued) => {
                open.push_str(continued);
                open.push(' ');
            }
            None => {
                open.push_str(line.trim_end());
                statements.push(std::mem::take(&mut open));
            }
        }
    }
    statements.push(open);
    statements
}

/// Splits a statement into tokens, up to its comment. Commas within parentheses or brackets do not
/// separate elements.
fn tokens(statement: &str) -> Vec<Token> {
    let (mut tokens, mut word, mut depth) = (Vec::new(), String::new(), 0_usize);
    let mut rest = statement.chars();
    let finish = |word: &mut String, tokens: &mut Vec<Token>| {
        if !word.is_empty() {
            tokens.push(Token::Word(std::mem::take(word)));
        }
    };
    while let Some(character) = rest.next() {
        match character {
            '"' | '\'' => {
                finish(&mut word, &mut tokens);
                let (text, after) = quoted(rest.as_str(), character);
                tokens.push(Token::Text(text));
                rest = after.chars();
            }
            '#' if word.is_empty() => break,
            ',' if depth == 0 => {
                finish(&mut word, &mut tokens);
                tokens.push(Token::Comma);
            }
            _ if character.is_whitespace() && depth == 0 => finish(&mut word, &mut tokens),
            _ => {
                match character {
                    '(' | '[' => depth += 1,
                    ')' | ']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                word.push(character);
            }
        }
    }
    finish(&mut word, &mut tokens);
    tokens
}

/// Splits a text at its closing quote. Backslashes are escapes in double quotes only.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            _ if character == quote => break,
            '\\' if quote == '"' => match rest.next() {
                Some('n') => out.push('\n'),
                Some(escaped) => out.push(escaped),
                None => {}
            },
            _ => out.push(character),
        }
    }
    (out, rest.as_str())
}

fn first_text(tokens: &[Token]) -> Option<String> {
    tokens.iter().find_map(|token| match token {
        Token::Text(text) => Some(text.clone()),
        _ => None,
    })
}

/// Returns F of `y * F` or `F*y`, up to `inverse`.
fn factor(words: &[&str]) -> Option<f64> {
    let via: String = words.iter().take_while(|word| **word != "inverse").copied().collect();
    let (one, other) = via.split_once('*')?;
    let factor = if one == "y" { other } else { (other == "y").then_some(one)? };
    factor.parse().ok().filter(|factor: &f64| factor.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_titles_axes_and_series() {
        let script = "# comment with \"quotes\r\nset title noenhanced \"Impact, \\nof it\"\r\n\
            set xlabel 'a \\n b'\r\nset ylabel \"pps\"\r\n\
            set link y2 via y * 2834.666667 inverse y/2834.666667\r\n\
            plot [0:*] f(x) title \"rate\", \"a.data\" using (f($2,1)):3 with lines \
            title 'A, b' ls 1, \\\r\n\t'' with errorbars notitle, \\\r\n \"b.data\" t \"B\"\r\n\
            #\tg(x) title \"none\"\r\n";
        let plot = Plot::parse(script);
        assert_eq!(plot.title.as_deref(), Some("Impact, \nof it"));
        assert_eq!(plot.xlabel.as_deref(), Some("a \\n b"));
        assert_eq!((plot.ylabel.as_deref(), plot.y2label.as_deref()), (Some("pps"), None));
        assert_eq!(plot.y2_factor, Some(2834.666667));
        let series: Vec<_> =
            plot.series.iter().map(|s| (s.file.as_str(), s.title.as_deref())).collect();
        assert_eq!(series, [("a.data", Some("A, b")), ("a.data", None), ("b.data", Some("B"))]);
        assert_eq!(plot.files(), ["a.data", "b.data"]);
        assert_eq!(Plot::parse("plot [0:9] [0:*] 'c.data'").files(), ["c.data"]);
    }

    #[test]
    fn factor_accepts_both_orders() {
        assert_eq!(factor(&["y", "*", "2.5"]), Some(2.5));
        assert_eq!(factor(&["y*2.5"]), Some(2.5));
        assert_eq!(factor(&["2.5*y", "inverse", "y/2.5"]), Some(2.5));
        assert_eq!(factor(&["log10(y)"]), None);
        assert_eq!(factor(&["y", "*", "nan"]), None);
    }
}
