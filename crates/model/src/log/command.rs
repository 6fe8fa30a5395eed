//! The command line at the beginning of a log, with parsed pkt-gen options.

use super::lines::{Line, text};
use super::range::AddressRange;
use fwdlab_packet::Family;

/// Options of pkt-gen in getopt(3) notation: a letter, with a colon after those that take a value.
/// All versions combined, and `-U` of the FreeBSD port.
const OPTIONS: &[u8] = b"46a:f:F:Nn:i:Il:d:s:D:S:b:c:o:p:t:T:w:WvR:XC:H:e:E:m:rP:zZAhBM:U";

/// `CMD: pkt-gen -f tx -i ix0` or `CMD on HOST: ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Host on which it ran, if the line contains it.
    pub host: Option<String>,
    /// The command line; empty if the shell printed none.
    pub text: String,
    words: Vec<String>,
}

/// Function of pkt-gen (`-f`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// Send.
    Tx,
    /// Receive.
    Rx,
    /// Send echo requests.
    Ping,
    /// Answer echo requests.
    Pong,
    /// Send with sequence numbers.
    TxSeq,
    /// Receive sequence numbers.
    RxSeq,
}

impl Command {
    /// Creates a command from a command line, split into words as by a shell: quotes and
    /// backslashes keep words together, nothing is expanded.
    pub fn new(host: Option<String>, text: String) -> Self {
        let words = split(&text);
        Self { host, text, words }
    }

    /// Parses `CMD: ...`, `CMD on HOST: ...` and, with `label`, similar lines.
    pub(super) fn parse(line: &Line, label: &[u8]) -> Option<Self> {
        let mut at = line.after(label)?;
        if at.eat(b" on ").is_some() {
            let (host, command) = match at.until(b": ") {
                Some(host) => (host, at.0),
                // A command without words: blanks at the end of a line are trimmed.
                None => (at.0.strip_suffix(b":")?, &b""[..]),
            };
            let known = !host.is_empty() && !host.contains(&b' ');
            return known.then(|| Self::new(Some(text(host)), text(command)));
        }
        at.eat(b":")?;
        at.blanks();
        Some(Self::new(None, text(at.0)))
    }

    /// Returns the name of the program, without its folder and without `sudo`.
    pub fn program(&self) -> Option<&str> {
        let words = self.words.iter().map(|word| word.rsplit('/').next().unwrap_or(word));
        words.into_iter().find(|&word| word != "sudo")
    }

    /// Returns the value of the last `option`, written like `-i`; an empty text for an option
    /// without a value; `None` if it is absent.
    pub fn argument(&self, option: &str) -> Option<&str> {
        let letter = option.strip_prefix('-')?.as_bytes();
        let [letter] = letter else { return None };
        self.options().filter(|(given, _)| given == letter).map(|(_, value)| value).last()
    }

    /// Returns options and their values in order; letters may be combined, and values may be joined
    /// to their option.
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

    /// Returns the function (`-f`); `None` if the option is missing, although pkt-gen then
    /// receives.
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
    /// Returns the interface (`-i`), without the prefix `netmap:`.
    pub fn interface(&self) -> Option<&str> {
        let name = self.argument("-i")?;
        Some(name.strip_prefix("netmap:").unwrap_or(name))
    }
    /// Returns the bytes of a packet without FCS (`-l`); pkt-gen's default is 60. If it is given
    /// twice, sizes are random: this is the first one, which is the largest.
    pub fn packet_bytes(&self) -> Option<u64> {
        self.options().find(|(letter, _)| *letter == b'l')?.1.parse().ok()
    }
    /// Returns the number of packets to send or receive (`-n`); 0 means unlimited.
    pub fn packets(&self) -> Option<u64> {
        self.number("-n")
    }
    /// Returns the maximum packets per second (`-R`) of each sending thread.
    pub fn rate(&self) -> Option<u64> {
        self.number("-R")
    }
    /// Returns the number of threads (`-p`); pkt-gen's default is 1.
    pub fn threads(&self) -> Option<u64> {
        self.number("-p")
    }
    /// Returns the source addresses of the packets (`-s`).
    pub fn source(&self) -> Option<AddressRange> {
        AddressRange::parse(self.argument("-s")?)
    }
    /// Returns the destination addresses of the packets (`-d`).
    pub fn destination(&self) -> Option<AddressRange> {
        AddressRange::parse(self.argument("-d")?)
    }
    /// Returns the number of flows of the two ranges: each source with each destination, as the
    /// FreeBSD port of pkt-gen walks them (the destination advances after all sources). Later
    /// versions of netmap's own pkt-gen advance both together and so have fewer. `None` with random
    /// addresses (`-z`, `-Z`).
    pub fn flows(&self) -> Option<u64> {
        if self.argument("-z").or(self.argument("-Z")).is_some() {
            return None;
        }
        self.source()?.combinations().checked_mul(self.destination()?.combinations())
    }
    /// Returns IPv6 with `-6` or an IPv6 address, IPv4 with `-4` or an IPv4 address; `None` without
    /// either.
    pub fn family(&self) -> Option<Family> {
        let ranges = [self.source(), self.destination()];
        if self.argument("-6").is_some() || ranges.iter().flatten().any(AddressRange::is_ipv6) {
            return Some(Family::Inet6);
        }
        let four = self.argument("-4").is_some() || ranges.iter().flatten().next().is_some();
        four.then_some(Family::Inet)
    }
}

/// Splits text into words as a POSIX shell does, without expansion. An unclosed quote extends to
/// the end.
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
    fn command_lines_of_both_generations_are_parsed() {
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
    fn sender_options_are_parsed() {
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
    fn quotes_keep_addresses_together() {
        let text = "pkt-gen -f tx -i ix0 -d \"[2001:2:0:8010::1]-[2001:2:0:8010::46]\" \
                    -s '[2001:2:0:10::1]-[2001:2:0:10::47]'";
        let sender = command(text);
        assert_eq!((sender.flows(), sender.family()), (Some(0x46 * 0x47), Some(Family::Inet6)));
        assert_eq!(command("pkt-gen -6 -f tx").family(), Some(Family::Inet6));
        assert_eq!(command("pkt-gen -f rx -i ix0").family(), None);
    }

    #[test]
    fn combined_and_joined_options_are_parsed_as_by_getopt() {
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
    fn words_match_a_shell() {
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
    fn uncountable_flows_are_none() {
        let all = "0.0.0.0:0-255.255.255.255:65535";
        assert_eq!(command(&format!("pkt-gen -s {all} -d {all}")).flows(), None);
        assert_eq!(command("pkt-gen -z -s 10.0.0.1 -d 10.0.0.2").flows(), None);
    }
}
