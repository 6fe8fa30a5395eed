//! The subset of sh that `bench-lab.sh` configurations are written in: assignments,
//! `: ${NAME:="default"}`, references to variables set above, comments. Nothing is
//! executed; anything else is a fault that names its line.

use crate::diagnostic::Diagnostic;
use std::collections::BTreeSet;

/// Longest value in bytes: references to references could double without end.
const VALUE_MAX: usize = 64 * 1024;

/// What a configuration says.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The variables, each once, in the order in which they are set first.
    pub(super) variables: Vec<Variable>,
    /// The comments, without `#`, each with the number of variables that stand before it.
    pub(super) comments: Vec<(usize, String)>,
}

/// One variable with the value that it has at the end.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: String,
    /// Line of the assignment, from 1.
    pub(super) line: usize,
    /// The variables that its value refers to.
    pub(super) refers_to: BTreeSet<String>,
}

/// Reads a configuration. Gives what could be read, and every fault.
pub(super) fn read(text: &str) -> (Script, Vec<Diagnostic>) {
    let mut reader = Reader { text, at: 0, script: Script::default(), faults: Vec::new() };
    while reader.at < text.len() {
        reader.line();
    }
    (reader.script, reader.faults)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    script: Script,
    faults: Vec<Diagnostic>,
}

/// A value while it is read.
#[derive(Default)]
struct Word {
    value: String,
    refers_to: BTreeSet<String>,
}

impl Reader<'_> {
    /// Notes a fault; gives `None`, so that callers can end with it.
    fn fault<T>(&mut self, fault: Diagnostic) -> Option<T> {
        self.faults.push(fault);
        None
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn blanks(&mut self) {
        while self.eat(" ") || self.eat("\t") || self.eat("\r") || self.eat("\\\n") {}
    }

    /// One line of the language, which may be several of the file.
    fn line(&mut self) {
        self.blanks();
        let start = self.at;
        if self.at == self.text.len() || self.eat("\n") {
            return;
        }
        if self.peek() == Some('#') {
            return self.comment();
        }
        if self.assignment(start).and_then(|()| self.end_of_line()).is_none() {
            let rest = self.rest().find('\n').map_or(self.text.len(), |end| self.at + end + 1);
            self.at = rest;
        }
    }

    fn comment(&mut self) {
        let line = self.rest().split('\n').next().unwrap_or_default();
        let length = line.len();
        let comment = line.strip_prefix('#').unwrap_or(line).trim_end().to_owned();
        let before = self.script.variables.len();
        if !(self.at == 0 && comment.starts_with('!')) {
            self.script.comments.push((before, comment));
        }
        self.at += length;
    }

    fn end_of_line(&mut self) -> Option<()> {
        self.blanks();
        match self.peek() {
            None | Some('\n' | '#') => Some(()),
            Some(_) => {
                let end = self.rest().find('\n').map_or(self.text.len(), |end| self.at + end);
                let fault = Diagnostic::new(self.at..end, "something stands behind the assignment");
                self.fault(fault.help("nothing is executed: only assignments are read"))
            }
        }
    }

    fn assignment(&mut self, start: usize) -> Option<()> {
        let line = 1 + self.text[..start].matches('\n').count();
        let is_default = [": ", ":\t"].iter().any(|colon| self.eat(colon));
        self.blanks();
        if is_default && !self.eat("${") {
            return self.no_assignment(start);
        }
        let name = self.name();
        let (operator, end) = if is_default { (":=", Some('}')) } else { ("=", None) };
        if name.is_empty() || !self.eat(operator) {
            return self.no_assignment(start);
        }
        let Word { value, refers_to } = self.word(end)?;
        if is_default && !self.eat("}") {
            return self.fault(Diagnostic::new(start..self.at, "a ${ that is never closed"));
        }
        let variables = &mut self.script.variables;
        match variables.iter_mut().find(|variable| variable.name == name) {
            // A default gives way to what is set; what is empty counts as not set.
            Some(old) if is_default && !old.value.is_empty() => {}
            Some(old) => *old = Variable { name, value, line, refers_to },
            None => variables.push(Variable { name, value, line, refers_to }),
        }
        Some(())
    }

    fn no_assignment(&mut self, start: usize) -> Option<()> {
        let end = self.text[start..].find('\n').map_or(self.text.len(), |end| start + end);
        self.fault(Diagnostic::new(start..end, "this line is no assignment").help(
            "read are NAME=\"value\", `: ${NAME:=\"value\"}` and comments; nothing is executed",
        ))
    }

    fn name(&mut self) -> String {
        let rest = self.rest();
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let end = rest
            .find(|c: char| !is_first(c) && !c.is_ascii_digit())
            .filter(|_| rest.starts_with(is_first))
            .unwrap_or(if rest.starts_with(is_first) { rest.len() } else { 0 });
        let name = rest[..end].to_owned();
        self.at += end;
        name
    }

    /// A word up to a blank, the end of the line, or `end`.
    fn word(&mut self, end: Option<char>) -> Option<Word> {
        let mut word = Word::default();
        while let Some(c) = self.peek().filter(|&c| Some(c) != end && !c.is_ascii_whitespace()) {
            let start = self.at;
            match c {
                '"' => self.double_quoted(&mut word)?,
                '\'' => {
                    self.next();
                    let Some(length) = self.rest().find('\'') else {
                        return self
                            .fault(Diagnostic::new(start..start + 1, "a ' that is never closed"));
                    };
                    word.value += &self.rest()[..length];
                    self.at += length + 1;
                }
                '\\' => {
                    self.next();
                    match self.next() {
                        Some('\n') | None => {}
                        Some(c) => word.value.push(c),
                    }
                }
                '$' => self.reference(&mut word)?,
                '`' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '*' | '?' | '[' | '~' => {
                    return self.fault(
                        Diagnostic::new(start..start + 1, format!("`{c}` needs a shell"))
                            .help("nothing is executed: write the value itself, in quotes"),
                    );
                }
                c => {
                    word.value.push(c);
                    self.next();
                }
            }
            self.not_too_long(&word, start)?;
        }
        Some(word)
    }

    fn double_quoted(&mut self, word: &mut Word) -> Option<()> {
        let open = self.at;
        self.next();
        while let Some(c) = self.peek() {
            let start = self.at;
            match c {
                '"' => {
                    self.next();
                    return Some(());
                }
                '$' => self.reference(word)?,
                '`' => {
                    return self.fault(
                        Diagnostic::new(start..start + 1, "`` ` `` needs a shell")
                            .help("nothing is executed: write the value itself"),
                    );
                }
                '\\' => {
                    self.next();
                    match self.next() {
                        Some('\n') => {}
                        Some(c @ ('"' | '\\' | '$' | '`')) => word.value.push(c),
                        Some(c) => word.value.extend(['\\', c]),
                        None => break,
                    }
                }
                c => {
                    word.value.push(c);
                    self.next();
                }
            }
            self.not_too_long(word, start)?;
        }
        self.fault(Diagnostic::new(open..open + 1, "a \" that is never closed"))
    }

    /// `${NAME}` or `$NAME` of a variable that is set above.
    fn reference(&mut self, word: &mut Word) -> Option<()> {
        let start = self.at;
        self.next();
        let braced = self.eat("{");
        let name = self.name();
        if name.is_empty() || (braced && !self.eat("}")) {
            let fault = Diagnostic::new(start..self.at, "only ${NAME} and $NAME can be read here");
            return self.fault(fault.help("nothing is executed: write the value itself"));
        }
        match self.script.variables.iter().find(|variable| variable.name == name) {
            Some(variable) => {
                word.value += &variable.value;
                word.refers_to.insert(name);
                Some(())
            }
            None => {
                let names: Vec<&str> =
                    self.script.variables.iter().map(|variable| variable.name.as_str()).collect();
                self.fault(
                    Diagnostic::new(start..self.at, format!("`{name}` is not set above")).suggest(
                        &name,
                        &names,
                        "set above",
                    ),
                )
            }
        }
    }

    fn not_too_long(&mut self, word: &Word, start: usize) -> Option<()> {
        if word.value.len() <= VALUE_MAX {
            return Some(());
        }
        let message = format!("a value of more than {} KiB", VALUE_MAX / 1024);
        self.fault(Diagnostic::new(start..self.at, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(String, String)> {
        let (script, faults) = read(text);
        assert_eq!(faults, [], "{text}");
        script.variables.into_iter().map(|variable| (variable.name, variable.value)).collect()
    }

    #[test]
    fn assignments_are_those_of_a_shell() {
        // dash 0.5.12 gives the same values.
        for (text, expected) in [
            ("A=1", vec![("A", "1")]),
            ("A=", vec![("A", "")]),
            ("A=\"x y\" # why\nB='$A \"'\n", vec![("A", "x y"), ("B", "$A \"")]),
            ("A=1\nB=${A}2$A\n", vec![("A", "1"), ("B", "121")]),
            (": ${A:=\"4\"}\n", vec![("A", "4")]),
            ("A=6\n: ${A:=\"4\"}\n", vec![("A", "6")]),
            ("A=\n: ${A:=4}\n", vec![("A", "4")]),
            ("A=1\nA=2\n", vec![("A", "2")]),
            ("A=\"x \\\ny\"\n", vec![("A", "x y")]),
            ("A=x\\\ny\n", vec![("A", "xy")]),
            ("A=\"\\\"\\$\\n\"", vec![("A", "\"$\\n")]),
            ("A=a\"b\"'c'\\ d\n", vec![("A", "abc d")]),
            ("#!/bin/sh\n\n  # text\n\tA=1", vec![("A", "1")]),
        ] {
            let expected: Vec<(String, String)> =
                expected.into_iter().map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
            assert_eq!(values(text), expected, "{text}");
        }
        // A file from a system that ends lines otherwise; a shell would keep the \r.
        assert_eq!(values("A=1\r\n"), [("A".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn what_would_be_executed_is_refused_with_its_line() {
        for (text, message) in [
            ("ping -c 2 x", "no assignment"),
            ("if true; then", "no assignment"),
            (". ./other", "no assignment"),
            ("export A=1", "no assignment"),
            ("A=1 cmd", "behind the assignment"),
            ("A=1; B=2", "`;` needs a shell"),
            ("A=$(date)", "only ${NAME}"),
            ("A=\"$(date)\"", "only ${NAME}"),
            ("A=`date`", "needs a shell"),
            ("A=\"`date`\"", "needs a shell"),
            ("A=${B:-1}", "only ${NAME}"),
            ("A=$B", "`B` is not set above"),
            ("A=\"x", "\" that is never closed"),
            ("A='x", "' that is never closed"),
            (": ${A:=x", "never closed"),
            (": ${A=x}", "no assignment"),
            ("A=*", "`*` needs a shell"),
            ("1A=2", "no assignment"),
        ] {
            let (script, faults) = read(&format!("FIRST=1\n{text}\nLAST=2\n"));
            assert!(faults[0].message.contains(message), "{text}: {faults:?}");
            assert!(faults[0].span.start >= 8, "{text}");
            assert_eq!(script.variables[0].name, "FIRST");
        }
        let (script, faults) = read("A=1\nx y\nB=2\nC=$X\nD=3\n");
        assert_eq!((script.variables.len(), faults.len()), (3, 2), "reading goes on");
        let doubling: String =
            (1..40).map(|n| format!("A{n}=\"$A{}$A{}\"\n", n - 1, n - 1)).collect();
        let (_, faults) = read(&format!("A0=0123456789\n{doubling}"));
        assert!(faults[0].message.contains("64 KiB"));
    }

    #[test]
    fn comments_are_kept_with_their_place() {
        let (script, _) = read("#!/bin/sh\n# one\n#|box|\nA=1\n# two #\nB=2 # three\n");
        let kept: Vec<(usize, &str)> =
            script.comments.iter().map(|(at, text)| (*at, text.as_str())).collect();
        assert_eq!(kept, [(0, " one"), (0, "|box|"), (1, " two #"), (2, " three")]);
        assert_eq!(script.variables[1].line, 6);
    }
}
