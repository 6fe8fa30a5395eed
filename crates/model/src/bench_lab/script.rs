//! Reader of `bench-lab.sh` configurations: assignments, `: ${NAME:="default"}`, the same without the
//! second colon, references to variables set above, comments. Nothing is executed; anything else is
//! a fault with its line.

use crate::diagnostic::Diagnostic;
use crate::shell::{self, Assignment, Form, Statement, Unresolved, VALUE_MAX};
use std::collections::BTreeSet;
use std::ops::Range;

/// Contents of a configuration.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The variables, each once, in the order of their first assignments.
    pub(super) variables: Vec<Variable>,
    /// The comments, without `#`, each with the number of variables before it.
    pub(super) comments: Vec<(usize, String)>,
}

/// A variable with its final value.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: String,
    /// Line of the assignment, from 1.
    pub(super) line: usize,
    /// The variables that its value refers to.
    pub(super) refers_to: BTreeSet<String>,
}

/// Reads a configuration. Returns everything readable, and every fault, one per line.
pub(super) fn read(text: &str) -> (Script, Vec<Diagnostic>) {
    let (mut script, mut faults) = (Script::default(), Vec::<Diagnostic>::new());
    // Text after a fault on the same line is not checked.
    let mut faulty_until = 0;
    for (statement, _) in shell::statements(text) {
        if statement.span.start < faulty_until {
            continue;
        }
        let is_statement =
            !statement.parts.is_empty() || statement.goes_on || statement.unfinished.is_some();
        if is_statement && let Err(fault) = script.assign(text, &statement) {
            faults.push(*fault);
            let end = statement.span.end;
            let next = text[end..].find('\n').map_or(text.len(), |length| end + length + 1);
            faulty_until = if text[..end].ends_with('\n') { end } else { next };
            continue;
        }
        if let Some(comment) = statement.comment.map(|comment| &text[comment]) {
            let comment = comment.strip_prefix('#').unwrap_or(comment).trim_end();
            if !(statement.span.start == 0 && comment.starts_with('!')) {
                script.comments.push((script.variables.len(), comment.to_owned()));
            }
        }
    }
    (script, faults)
}

/// Characters with a meaning to a shell outside quotes.
const OPERATORS: &str = "`;&|<>()*?[~";

impl Script {
    fn assign(&mut self, text: &str, statement: &Statement) -> Result<(), Box<Diagnostic>> {
        let start = statement.parts.first().map_or(statement.span.start, |first| first.at);
        let line_end = text[start..].find('\n').map_or(text.len(), |end| start + end);
        if let Some(open) = statement.unfinished {
            let quote = text[open..].chars().next().unwrap_or('\\');
            let message = format!("a {quote} that is never closed");
            return refuse(Diagnostic::new(open..open + 1, message));
        }
        let Some(assignment) = statement.assignment().filter(is_read) else {
            if statement.is_default() && !text[start..statement.end].ends_with('}') {
                let message = "a ${ that is never closed";
                return refuse(Diagnostic::new(start..statement.end, message));
            }
            return refuse(Diagnostic::new(start..line_end, "this line is no assignment").help(
                "read are NAME=\"value\", `: ${NAME:=\"value\"}`, `: ${NAME=\"value\"}` and comments; \
                 nothing is executed",
            ));
        };
        let (value, refers_to) = self.resolve(text, &assignment, start..statement.end)?;
        if let Some(operator) = assignment.operator(OPERATORS) {
            return refuse(needs_shell(operator.at, operator.character));
        }
        if let Some(behind) = assignment.behind {
            let message = "something stands behind the assignment";
            return refuse(
                Diagnostic::new(behind..line_end.max(behind), message)
                    .help("nothing is executed: only assignments are read"),
            );
        }
        if statement.goes_on {
            return refuse(needs_shell(statement.span.end - 1, ';'));
        }
        let line = 1 + text[..start].matches('\n').count();
        let name = assignment.name.clone();
        let variables = &mut self.variables;
        match variables.iter_mut().find(|variable| variable.name == name) {
            Some(_) if assignment.form == Form::Unset => {}
            // A default does not replace a set value; with `:=` an empty value counts as not set.
            Some(old) if assignment.is_default() && !old.value.is_empty() => {}
            Some(old) => *old = Variable { name, value, line, refers_to },
            None => variables.push(Variable { name, value, line, refers_to }),
        }
        Ok(())
    }

    /// Returns the value, and the variables that it refers to, all of them set above.
    fn resolve(
        &self,
        text: &str,
        assignment: &Assignment,
        place: Range<usize>,
    ) -> Result<(String, BTreeSet<String>), Box<Diagnostic>> {
        let mut refers_to = BTreeSet::new();
        let resolved = assignment.resolved(|name| {
            let found = self.variables.iter().find(|variable| variable.name == name)?;
            refers_to.insert(name.to_owned());
            Some(found.value.as_str())
        });
        let fault = match resolved {
            Ok(value) => return Ok((value, refers_to)),
            Err(Unresolved::Evaluated(at)) if text[at.clone()].starts_with('`') => {
                needs_shell(at.start, '`')
            }
            Err(Unresolved::Evaluated(at)) => {
                Diagnostic::new(at, "only ${NAME} and $NAME can be read here")
                    .help("nothing is executed: write the value itself")
            }
            Err(Unresolved::Unknown(name, at)) => {
                let names: Vec<&str> = self.variables.iter().map(|v| v.name.as_str()).collect();
                Diagnostic::new(at, format!("`{name}` is not set above")).suggest(
                    &name,
                    &names,
                    "set above",
                )
            }
            Err(Unresolved::TooLong) => {
                let message = format!("a value of more than {} KiB", VALUE_MAX / 1024);
                Diagnostic::new(place, message)
            }
        };
        refuse(fault)
    }
}

fn refuse<T>(fault: Diagnostic) -> Result<T, Box<Diagnostic>> {
    Err(Box::new(fault))
}

/// True for the forms of assignment in these configurations.
fn is_read(assignment: &Assignment) -> bool {
    assignment.form != Form::Exported
}

fn needs_shell(at: usize, operator: char) -> Diagnostic {
    let quoted = if operator == '`' { "`` ` ``".to_owned() } else { format!("`{operator}`") };
    Diagnostic::new(at..at + 1, format!("{quoted} needs a shell"))
        .help("nothing is executed: write the value itself, in quotes")
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
    fn assignments_match_a_shell() {
        // dash 0.5.12 gives the same values.
        for (text, expected) in [
            ("A=1", vec![("A", "1")]),
            ("A=", vec![("A", "")]),
            ("A=\"x y\" # why\nB='$A \"'\n", vec![("A", "x y"), ("B", "$A \"")]),
            ("A=1\nB=${A}2$A\n", vec![("A", "1"), ("B", "121")]),
            (": ${A:=\"4\"}\n", vec![("A", "4")]),
            ("A=6\n: ${A:=\"4\"}\n", vec![("A", "6")]),
            ("A=\n: ${A:=4}\n", vec![("A", "4")]),
            (": ${A=\"4:5\"}\n", vec![("A", "4:5")]),
            ("A=6\n: ${A=4}\n", vec![("A", "6")]),
            ("A=\n: ${A=4}\n", vec![("A", "")]),
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
    }

    #[test]
    fn executable_syntax_is_refused_with_its_line() {
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
            (": ${A=x", "never closed"),
            (": ${A-x}", "no assignment"),
            (": ${A:-x}", "no assignment"),
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
    fn comments_keep_their_place() {
        let (script, _) = read("#!/bin/sh\n# one\n#|box|\nA=1\n# two #\nB=2 # three\n");
        let kept: Vec<(usize, &str)> =
            script.comments.iter().map(|(at, text)| (*at, text.as_str())).collect();
        assert_eq!(kept, [(0, " one"), (0, "|box|"), (1, " two #"), (2, " three")]);
        assert_eq!(script.variables[1].line, 6);
    }
}
