//! Rulesets as text, close to pf.conf(5).
//!
//! ```text
//! # Comments end with the line.
//! table <bad> { 203.0.113.0/24, 2001:db8::/32 }
//! block in on 0 inet proto tcp from <bad> to any port 1:1023
//! pass in proto udp from !10.0.0.0/8 port { 53, 5000:5010 } to any keep state
//! pass in proto tcp all flags S/SA keep state limit 50/second burst 100 per source
//! pass inet proto icmp all
//! block local proto icmp from <bad> to any
//! default block
//! ```
//!
//! The parts of a rule appear in this order, and all but `pass` or `block` are optional. `quick` is
//! accepted and has no effect: the first matching rule always decides. Macros, anchors, options,
//! translation and normalisation are not supported, nor are lists except of ports and of a table's
//! prefixes.

use super::rule::{Action, Direction, End, Host, Limit, Net, Rule, Ruleset, Table};
use crate::fib::{Address, Prefix, PrefixError};
use fwdlab_packet::Family;
use std::ops::RangeInclusive;

/// The first error in the text of a ruleset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Expected text, or the reason.
    pub what: String,
}

/// Reads a ruleset whose ports are numbers.
///
/// # Errors
/// The first error.
pub fn read(text: &str) -> Result<Ruleset, TextError> {
    read_with(text, &|name| digits(name))
}

/// Reads a ruleset; `resolve` returns the numbers of ports.
///
/// # Errors
/// The first error.
pub fn read_with(text: &str, resolve: &dyn Fn(&str) -> Option<u8>) -> Result<Ruleset, TextError> {
    let mut reader = Reader { words: words(text), at: 0, resolve };
    let mut ruleset = Ruleset::new(Action::Pass);
    while let Some(word) = reader.peek() {
        match word.text {
            "\n" => reader.at += 1,
            "table" => {
                let table = reader.table()?;
                if ruleset.tables.iter().any(|other| other.name == table.name) {
                    return Err(word.fault(format!("there is a table <{}> already", table.name)));
                }
                ruleset.tables.push(table);
            }
            "default" => {
                reader.at += 1;
                ruleset.policy = reader.action()?;
                reader.line_end()?;
            }
            "pass" | "block" => {
                let rule = reader.rule()?;
                rule.check(&ruleset.tables).map_err(|error| word.fault(error.to_string()))?;
                ruleset.rules.push(rule);
            }
            _ => return Err(reader.expected("\"pass\", \"block\", \"table\" or \"default\"")),
        }
    }
    Ok(ruleset)
}

/// Returns the line of each rule in an accepted text, from 1.
pub fn rule_lines(text: &str) -> Vec<usize> {
    let is_rule = |line: &str| {
        let content = line.split('#').next().unwrap_or_default();
        matches!(content.split_whitespace().next(), Some("pass" | "block"))
    };
    let numbered = text.lines().zip(1..);
    numbered.filter(|(line, _)| is_rule(line)).map(|(_, number)| number).collect()
}

/// A word, a sign, or the end of a line (`"\n"`).
#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    text: &'a str,
    line: usize,
    column: usize,
}

impl Word<'_> {
    fn fault(&self, what: String) -> TextError {
        TextError { line: self.line, column: self.column, what }
    }
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default();
        let (mut begin, mut column) = (None, 0);
        let mut push = |text, column| words.push(Word { text, line: number + 1, column });
        for (at, character) in content.char_indices() {
            column += 1;
            let sign = matches!(character, '{' | '}' | ',' | '!' | '<' | '>');
            if sign || character.is_whitespace() {
                if let Some((from, column)) = begin.take() {
                    push(&content[from..at], column);
                }
                if sign {
                    push(&content[at..at + 1], column);
                }
            } else if begin.is_none() {
                begin = Some((at, column));
            }
        }
        if let Some((from, column)) = begin {
            push(&content[from..], column);
        }
        push("\n", column + 1);
    }
    words
}

struct Reader<'a> {
    words: Vec<Word<'a>>,
    at: usize,
    resolve: &'a dyn Fn(&str) -> Option<u8>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.at).copied()
    }

    /// Takes the next word if it is `text`.
    fn take(&mut self, text: &str) -> bool {
        let is = self.peek().is_some_and(|word| word.text == text);
        self.at += usize::from(is);
        is
    }

    fn demand(&mut self, text: &str) -> Result<(), TextError> {
        if self.take(text) { Ok(()) } else { Err(self.expected(&format!("\"{text}\""))) }
    }

    /// Takes the next word, but not a sign.
    fn word(&mut self, what: &str) -> Result<Word<'a>, TextError> {
        match self.peek() {
            Some(word) if !matches!(word.text, "\n" | "{" | "}" | "," | "!" | "<" | ">") => {
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn line_end(&mut self) -> Result<(), TextError> {
        if self.take("\n") { Ok(()) } else { Err(self.expected("the end of the line")) }
    }

    fn expected(&self, what: &str) -> TextError {
        // There is a word unless the text is empty: every line ends with one.
        let last = self.words.last().copied().unwrap_or(Word { text: "", line: 1, column: 1 });
        let word = self.peek().unwrap_or(last);
        word.fault(match word.text {
            "\n" => format!("expected {what}, but the line ends"),
            text => format!("expected {what}, but here is {text:?}"),
        })
    }

    fn action(&mut self) -> Result<Action, TextError> {
        match () {
            () if self.take("pass") => Ok(Action::Pass),
            () if self.take("block") => Ok(Action::Block),
            () => Err(self.expected("\"pass\" or \"block\"")),
        }
    }

    /// Parses `table <name> { prefix, prefix }`; the braces may span lines.
    fn table(&mut self) -> Result<Table, TextError> {
        self.demand("table")?;
        let name = self.table_name()?;
        self.demand("{")?;
        let mut prefixes = Vec::new();
        loop {
            while self.take("\n") || self.take(",") {}
            if self.take("}") {
                break;
            }
            prefixes.push(self.net("a prefix or \"}\"")?);
        }
        self.line_end()?;
        Ok(Table { name, prefixes })
    }

    fn table_name(&mut self) -> Result<String, TextError> {
        self.demand("<")?;
        let word = self.word("the name of a table")?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if !word.text.chars().all(fits) {
            return Err(word.fault(format!("{:?} is no name of a table", word.text)));
        }
        self.demand(">")?;
        Ok(word.text.to_owned())
    }

    fn net(&mut self, what: &str) -> Result<Net, TextError> {
        fn parsed<A: Address>(word: Word<'_>) -> Result<Prefix<A>, TextError> {
            word.text.parse().map_err(|error: PrefixError| word.fault(error.to_string()))
        }
        let word = self.word(what)?;
        if word.text.contains(':') {
            return Ok(Net::Inet6(parsed(word)?));
        }
        if word.text.contains(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '/')) {
            return Err(word.fault(format!("expected {what}, but here is {:?}", word.text)));
        }
        Ok(Net::Inet(parsed(word)?))
    }

    fn rule(&mut self) -> Result<Rule, TextError> {
        let mut rule = Rule::new(self.action()?);
        rule.direction = match () {
            () if self.take("in") => Some(Direction::In),
            () if self.take("out") => Some(Direction::Out),
            () if self.take("local") => Some(Direction::Local),
            () => None,
        };
        self.take("quick");
        if self.take("on") {
            rule.port = Some(self.port()?);
        }
        rule.family = match () {
            () if self.take("inet") => Some(Family::Inet),
            () if self.take("inet6") => Some(Family::Inet6),
            () => None,
        };
        if self.take("proto") {
            rule.protocol = Some(self.protocol()?);
        }
        if !self.take("all") {
            if self.take("from") {
                rule.source = self.end()?;
            }
            if self.take("to") {
                rule.destination = self.end()?;
            }
        }
        let flags = self.take("flags");
        let any = flags && self.take("any");
        if flags && !any {
            self.demand("S/SA")?;
            rule.opening = true;
        }
        if self.take("keep") {
            self.demand("state")?;
            rule.keep_state = true;
            rule.opening |= rule.may_be_tcp() && !any;
            if self.take("(sloppy)") {
                rule.sloppy = true;
            }
        }
        if self.take("limit") {
            rule.limit = Some(self.limit()?);
        }
        self.line_end()?;
        Ok(rule)
    }

    /// Parses `10/second`, then `burst 20` and `per source`.
    fn limit(&mut self) -> Result<Limit, TextError> {
        let word = self.word("a rate")?;
        let rate = word.text.split_once('/').and_then(|(packets, period)| {
            let known = Limit::PERIODS.iter().find(|(name, _)| *name == period)?;
            Some((digits(packets)?, known.1))
        });
        let (packets, seconds) = rate.ok_or_else(|| {
            let expected = "expected a rate as 10/second or 10/minute";
            word.fault(format!("{expected}, but here is {:?}", word.text))
        })?;
        let mut burst = packets;
        if self.take("burst") {
            let word = self.word("a number of packets")?;
            burst = digits(word.text).ok_or_else(|| {
                word.fault(format!("expected a number of packets, but here is {:?}", word.text))
            })?;
        }
        let per_source = self.take("per");
        if per_source {
            self.demand("source")?;
        }
        Ok(Limit { packets, seconds, burst, per_source })
    }

    /// Parses a port of the router.
    fn port(&mut self) -> Result<u8, TextError> {
        let word = self.word("a port of the router")?;
        // A name can consist of digits.
        let number = (self.resolve)(word.text);
        number.ok_or_else(|| word.fault(format!("the router has no port {:?}", word.text)))
    }

    fn protocol(&mut self) -> Result<u8, TextError> {
        let word = self.word("a protocol")?;
        match word.text {
            "icmp" => Ok(super::packet::protocol::ICMP),
            "icmp6" => Ok(super::packet::protocol::ICMP6),
            "tcp" => Ok(super::packet::protocol::TCP),
            "udp" => Ok(super::packet::protocol::UDP),
            text => digits(text).ok_or_else(|| {
                let expected = "expected tcp, udp, icmp, icmp6 or a number up to 255";
                word.fault(format!("{expected}, but here is {text:?}"))
            }),
        }
    }

    fn end(&mut self) -> Result<End, TextError> {
        let is_port = self.peek().is_some_and(|word| word.text == "port");
        let host = if is_port || self.take("any") {
            Host::Any
        } else {
            let negated = self.take("!");
            match self.peek() {
                Some(Word { text: "<", .. }) => Host::Table { negated, name: self.table_name()? },
                _ => Host::Net { negated, net: self.net("\"any\", a prefix or a <table>")? },
            }
        };
        let mut ports = Vec::new();
        if self.take("port") {
            if self.take("{") {
                loop {
                    ports.push(self.ports()?);
                    self.take(",");
                    if self.take("}") {
                        break;
                    }
                }
            } else {
                ports.push(self.ports()?);
            }
        }
        Ok(End { host, ports })
    }

    /// Parses a port, or two separated by a colon.
    fn ports(&mut self) -> Result<RangeInclusive<u16>, TextError> {
        let word = self.word("a port")?;
        let (low, high) = word.text.split_once(':').unwrap_or((word.text, word.text));
        match (digits(low), digits(high)) {
            (Some(low), Some(high)) => Ok(low..=high),
            _ => {
                let expected = "expected a port up to 65535, or two as 1:1023";
                Err(word.fault(format!("{expected}, but here is {:?}", word.text)))
            }
        }
    }
}

/// Parses a number without a sign.
fn digits<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}
