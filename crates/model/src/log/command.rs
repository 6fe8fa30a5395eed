//! The command line that a log begins with, and what pkt-gen understands by it.

use super::lines::{Line, text};
use super::range::AddressRange;

/// Options of pkt-gen in the manner of getopt(3): a letter, a colon behind those
/// that take a value. All versions together, and `-U` of the FreeBSD port.
const OPTIONS: &[u8] = b"46a:f:F:Nn:i:Il:d:s:D:S:b:c:o:p:t:T:w:WvR:XC:H:e:E:m:rP:zZAhBM:U";

/// `CMD: pkt-gen -f tx -i ix0` or `CMD on HOST: ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Where it ran, as far as the line says.
    pub host: Option<String>,
    /// The command line; empty where the shell gave none.
    pub text: String,
    words: Vec<String>,
}

/// What pkt-gen is asked to do (`-f`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// Send.
    Tx,
    /// Receive.
    Rx,
    /// Ask for echoes.
    Ping,
    /// Answer with echoes.
    Pong,
    /// Send with sequence numbers.
    TxSeq,
    /// Receive sequence numbers.
    RxSeq,
}

/// The internet protocol of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Version 4.
    Inet4,
    /// Version 6.
    Inet6,
}

impl Command {
    /// A command line, split into words as a shell would: quotes and backslashes
    /// hold words together, nothing is expanded.
    pub fn new(host: Option<String>, text: String) -> Self {
        let words = split(&text);
        Self { host, text, words }
    }

    /// Reads `CMD: ...`, `CMD on HOST: ...` and, with `label`, their like.
    pub(super) fn parse(line: &Line, label: &[u8]) -> Option<Self> {
        let mut at = line.after(label)?;
        if at.eat(b" on ").is_some() {
            let (host, command) = match at.until(b": ") {
                Some(host) => (host, at.0),
                // A command of no words: blanks at the end of a line are gone.
                None => (at.0.strip_suffix(b":")?, &b""[..]),
            };
            let known = !host.is_empty() && !host.contains(&b' ');
            return known.then(|| Self::new(Some(text(host)), text(command)));
        }
        at.eat(b":")?;
        at.blanks();
        Some(Self::new(None, text(at.0)))
    }

    /// The name of the program, without its folder and without `sudo`.
    pub fn program(&self) -> Option<&str> {
        let words = self.words.iter().map(|word| word.rsplit('/').next().unwrap_or(word));
        words.into_iter().find(|&word| word != "sudo")
    }

    /// The value of the last `option`, given like `-i`; an empty text for an
    /// option that takes none; none where it was not given.
    pub fn argument(&self, option: &str) -> Option<&str> {
        let letter = option.strip_prefix('-')?.as_bytes();
        let [letter] = letter else { return None };
        self.options().filter(|(given, _)| given == letter).map(|(_, value)| value).last()
    }

    /// Options and their values in order; letters may stand together, values be
    /// joined to theirs.
    fn options(&self) -> impl Iterator<Item = (u8, &str)> {
        let start = self.words.iter().position(|word| word.starts_with('-'));
        let mut words = self.words[start.unwrap_or(self.words.len())..].iter();
        let mut cluster = "";
        std::iter::from_fn(move || {
            if cluster.is_empty() {
                cluster = words.next()?.strip_prefix('-').filter(|rest| rest.is_ascii())?;
            }
            let letter = *cluster.as_bytes().first()?;
            let rest = &cluster[1..];
            let place = OPTIONS.iter().position(|&known| known == letter && letter != b':');
            if place.is_some_and(|place| OPTIONS.get(place + 1) == Some(&b':')) {
                cluster = "";
                let value = if rest.is_empty() { words.next()?.as_str() } else { rest };
                return Some((letter, value));
            }
            cluster = rest;
            Some((letter, ""))
        })
    }

    fn number(&self, option: &str) -> Option<u64> {
        self.argument(option)?.parse().ok()
    }

    /// What is to be done (`-f`); none where the option is missing, although
    /// pkt-gen then receives.
    pub fn function(&self) -> Option<Function> {
        Some(match self.argument("-f")? {
            "tx" => Function::Tx,
            "rx" => Function::Rx,
            "ping" => Function::Ping,
            "pong" => Function::Pong,
            "txseq" => Function::TxSeq,
            "rxseq" => Function::RxSeq,
            _ => return None,
        })
    }
    /// The interface (`-i`), without the prefix `netmap:`.
    pub fn interface(&self) -> Option<&str> {
        let name = self.argument("-i")?;
        Some(name.strip_prefix("netmap:").unwrap_or(name))
    }
    /// Bytes of a packet without FCS (`-l`); pkt-gen's default is 60. Given twice
    /// the sizes are random, and this is the last.
    pub fn packet_bytes(&self) -> Option<u64> {
        self.number("-l")
    }
    /// Packets to send or receive (`-n`); 0 means without end.
    pub fn packets(&self) -> Option<u64> {
        self.number("-n")
    }
    /// Packets a second at most (`-R`), of each thread that sends.
    pub fn rate(&self) -> Option<u64> {
        self.number("-R")
    }
    /// Threads (`-p`); pkt-gen's default is 1.
    pub fn threads(&self) -> Option<u64> {
        self.number("-p")
    }
    /// Where the packets say they come from (`-s`).
    pub fn source(&self) -> Option<AddressRange> {
        AddressRange::parse(self.argument("-s")?)
    }
    /// Where the packets go (`-d`).
    pub fn destination(&self) -> Option<AddressRange> {
        AddressRange::parse(self.argument("-d")?)
    }
    /// Flows that the two ranges make: each source with each destination, as
    /// the FreeBSD port of pkt-gen walks them (the destination moves on when the
    /// sources are through). Later versions of netmap's own pkt-gen move both
    /// at once and so make fewer.
    pub fn flows(&self) -> Option<u64> {
        self.source()?.combinations().checked_mul(self.destination()?.combinations())
    }
    /// IPv6 with `-6` or an address of that kind, IPv4 with `-4` or an address;
    /// none where neither is named.
    pub fn family(&self) -> Option<Family> {
        let ranges = [self.source(), self.destination()];
        if self.argument("-6").is_some() || ranges.iter().flatten().any(AddressRange::is_ipv6) {
            return Some(Family::Inet6);
        }
        let four = self.argument("-4").is_some() || ranges.iter().flatten().next().is_some();
        four.then_some(Family::Inet4)
    }
}

/// Words as a POSIX shell splits them, nothing expanded. A quote that is not
/// closed reaches to the end.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => {
                word.get_or_insert_default().extend(characters.next());
            }
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (_, None) if c.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
