//! The command line at the beginning of a log, with pkt-gen's options parsed.

use super::lines::{Line, text};
use super::range::AddressRange;
use fwdlab_packet::Family;

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
    pub(crate) fn options(&self) -> impl Iterator<Item = (u8, &str)> {
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
    /// the sizes are random: this is the first, which is the largest.
    pub fn packet_bytes(&self) -> Option<u64> {
        self.options().find(|(letter, _)| *letter == b'l')?.1.parse().ok()
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
    /// at once and so make fewer. None with random addresses (`-z`, `-Z`).
    pub fn flows(&self) -> Option<u64> {
        if self.argument("-z").or(self.argument("-Z")).is_some() {
            return None;
        }
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
        four.then_some(Family::Inet)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Command {
        Command::new(None, text.to_owned())
    }

    #[test]
    fn heads_of_both_generations() {
        let parse = |text: &str| {
            let line = Line { number: 1, bytes: text.trim_ascii_end().as_bytes() };
            Command::parse(&line, b"CMD").map(|command| (command.host, command.text))
        };
        let host = |name: &str| Some(name.to_owned());
        assert_eq!(parse("CMD: pkt-gen -f rx"), Some((None, "pkt-gen -f rx".to_owned())));
        assert_eq!(parse("CMD on lab1: sudo x: y"), Some((host("lab1"), "sudo x: y".to_owned())));
        assert_eq!(parse("CMD on lab1: "), Some((host("lab1"), String::new())));
        assert_eq!(parse("CMD on ::1: x"), Some((host("::1"), "x".to_owned())));
        assert_eq!(parse("CMD:"), Some((None, String::new())));
        for wrong in
            ["CMD", "CMD on", "CMD on lab1", "CMD on two hosts: x", "xCMD: y", "CMD on : x"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_sender_says_what_it_sends() {
        let sender = command(
            "sudo /usr/local/bin/pkt-gen -N -f tx -w 2 -i netmap:ix0 -n 1000 -4 -d 198.19.10.1:2001-198.19.10.70 \
             -D 02:00:00:00:00:01 -T 2000 -s 198.18.10.1:2001-198.18.10.71 -p 2 -l 60 -R 5000",
        );
        assert_eq!(sender.program(), Some("pkt-gen"));
        assert_eq!((sender.function(), sender.interface()), (Some(Function::Tx), Some("ix0")));
        assert_eq!((sender.packet_bytes(), sender.packets()), (Some(60), Some(1000)));
        assert_eq!((sender.rate(), sender.threads()), (Some(5000), Some(2)));
        assert_eq!(sender.flows(), Some(70 * 71));
        assert_eq!(sender.family(), Some(Family::Inet));
        assert_eq!((sender.argument("-N"), sender.argument("-U")), (Some(""), None));
        assert_eq!(sender.argument("-T"), Some("2000"));
    }

    #[test]
    fn quotes_hold_addresses_together() {
        let text = "pkt-gen -f tx -i ix0 -d \"[2001:2:0:8010::1]-[2001:2:0:8010::46]\" \
                    -s '[2001:2:0:10::1]-[2001:2:0:10::47]'";
        let sender = command(text);
        assert_eq!((sender.flows(), sender.family()), (Some(0x46 * 0x47), Some(Family::Inet6)));
        assert_eq!(command("pkt-gen -6 -f tx").family(), Some(Family::Inet6));
        assert_eq!(command("pkt-gen -f rx -i ix0").family(), None);
    }

    #[test]
    fn options_stand_together_and_joined_as_getopt_allows() {
        let joined = command("pkt-gen -Nf tx -l62 -iix0 -l 124 -- -p 9");
        assert_eq!((joined.function(), joined.interface()), (Some(Function::Tx), Some("ix0")));
        assert_eq!((joined.packet_bytes(), joined.argument("-l")), (Some(62), Some("124")));
        assert_eq!(joined.argument("i"), None);
        assert_eq!(command("pkt-gen -é -f tx").function(), None);
        assert_eq!(command("pkt-gen -f").function(), None);
        assert_eq!(command("pkt-gen -: -f tx").function(), Some(Function::Tx));
        assert_eq!(command("").program(), None);
    }

    #[test]
    fn words_are_those_of_a_shell() {
        for (text, expected) in [
            ("a  b\tc", vec!["a", "b", "c"]),
            (r#"a"b c"d 'e "f' ''"#, vec!["ab cd", "e \"f", ""]),
            (r#"a\ b "c\"d" 'e\'"#, vec!["a b", "c\"d", "e\\"]),
            ("'open end", vec!["open end"]),
            ("\\", vec![""]),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn flows_that_can_t_be_counted_are_none() {
        let all = "0.0.0.0:0-255.255.255.255:65535";
        assert_eq!(command(&format!("pkt-gen -s {all} -d {all}")).flows(), None);
        assert_eq!(command("pkt-gen -z -s 10.0.0.1 -d 10.0.0.2").flows(), None);
    }
}
