//! Kinds of values of keys, each with a description in words. Their readers are in `value.rs`,
//! their JSON Schema in `schema.rs`.

use fwdlab_packet::size::NAMED;
pub use fwdlab_packet::size::{FRAME_MAX, FRAME_MIN};
/// Maximum number of rules of `rules:N`.
pub const RULES_MAX: u32 = 10_000;
/// Permitted confidences in percent.
pub const CONFIDENCES: [f64; 6] = [80.0, 90.0, 95.0, 98.0, 99.0, 99.5];

/// Kind of value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Integer in a range, inclusive.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// Number in a range, inclusive.
    Number {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// True or false.
    Boolean,
    /// One line of text that is not empty.
    Text,
    /// Text that is safe in paths and command lines.
    Name,
    /// Path of a file, relative to the experiment file.
    File,
    /// Path of a directory, relative to the experiment file, or a list of them.
    Directory,
    /// A command with its arguments, on one line.
    Command,
    /// List of commands.
    Commands,
    /// List of words.
    Words,
    /// A program and its arguments, as a list.
    Arguments,
    /// List of values of one kind.
    List(&'static Kind),
    /// One of a few words.
    Word {
        /// The words.
        words: &'static [&'static str],
        /// Plausible words that this build does not have.
        absent: &'static [&'static str],
    },
    /// Text such as `250ms`.
    Duration {
        /// Shortest, in nanoseconds.
        min_ns: u64,
    },
    /// A duration of whole seconds.
    Seconds,
    /// Text such as `2%`, above 0 and below 100 %.
    Percent,
    /// Packets per second: a number, or text such as `1.6Mpps`.
    PacketRate,
    /// Line rate of a link: text such as `10Gbit/s`.
    BitRate,
    /// Intended load.
    Rate,
    /// Bytes or a mix of sizes, or a list of them.
    FrameSize,
    /// Table of sources and destinations.
    Flows,
    /// Word, `rules:N` or the path of a ruleset.
    Firewall,
    /// Hexadecimal CPU mask.
    Mask,
    /// MAC address of an interface.
    Mac,
    /// Address of an interface with its prefix length.
    Address,
    /// Address of a host.
    HostAddress,
    /// Table of sysctls.
    Sysctls,
    /// Table of names and values, each a line of a configuration file.
    Variables {
        /// A table for messages.
        example: &'static str,
    },
    /// Table of counters, each with a regular expression or a JSON pointer.
    Patterns,
    /// Table of `setting=label` and ratios.
    Effects,
    /// Levels of a factor.
    Levels,
    /// Table of factors and one of their levels.
    Baseline,
    /// One of [`CONFIDENCES`].
    Confidence,
}

impl Kind {
    /// Describes a valid value, for messages and for the documentation.
    pub fn expected(self) -> String {
        match self {
            Kind::Integer { min, max } if min == max => format!("the integer {min}"),
            Kind::Integer { min, max: i64::MAX } => format!("an integer of at least {min}"),
            Kind::Integer { min, max } => format!("an integer from {min} to {max}"),
            Kind::Number { min, max } => format!("a number from {min} to {max}"),
            Kind::Boolean => "true or false".to_owned(),
            Kind::Text => "one line of text".to_owned(),
            Kind::Name => {
                "a name of letters, digits, `.`, `_` and `-` that begins with a letter or digit"
                    .to_owned()
            }
            Kind::File => "the path of a file, relative to this one".to_owned(),
            Kind::Directory => {
                "the path of a directory, relative to this one, or a list of them".to_owned()
            }
            Kind::Command => "a command with its arguments, such as \"uname -v\"".to_owned(),
            Kind::Commands => {
                "a list of commands with their arguments, such as [\"uname -v\"]".to_owned()
            }
            Kind::Words => "a list of words".to_owned(),
            Kind::Arguments => {
                "a list of a program and its arguments, such as [\"ipmitool\", \"power\", \"cycle\"]"
                    .to_owned()
            }
            Kind::List(item) => format!("a list, each {}", item.expected()),
            Kind::Word { words: [word], .. } => format!("\"{word}\""),
            Kind::Word { words, .. } => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Kind::Duration { .. } => "a duration with its unit, such as \"250ms\"".to_owned(),
            Kind::Seconds => "a duration in whole seconds, such as \"10s\"".to_owned(),
            Kind::Percent => "a percentage above 0 and below 100, such as \"2%\"".to_owned(),
            Kind::PacketRate => "packets per second: a number, or \"1.6Mpps\"".to_owned(),
            Kind::BitRate => "bits per second with their unit, such as \"10Gbit/s\"".to_owned(),
            Kind::Rate => {
                "\"max\", a number of packets per second, \"10Mpps\", \"50%\" or \"1Gbit/s\""
                    .to_owned()
            }
            Kind::FrameSize => {
                let names: Vec<String> = NAMED.iter().map(|(name, _)| format!("\"{name}\"")).collect();
                let mixes = names.join(", ");
                format!(
                    "an integer from {FRAME_MIN} to {FRAME_MAX}, {mixes}, \"genome:aafg\", or a list of them"
                )
            }
            Kind::Flows => "a table such as { sources = 20, destinations = 100 }".to_owned(),
            Kind::Firewall => {
                "\"none\", \"stateless\", \"stateful\", \"rules:N\" or the path of a ruleset"
                    .to_owned()
            }
            Kind::Mask => "a hexadecimal CPU mask such as \"3\", or \"\" for off".to_owned(),
            Kind::Mac => "a MAC address such as \"02:00:00:00:00:01\"".to_owned(),
            Kind::Address => {
                "an address with the length of its prefix, such as \"198.18.0.2/24\"".to_owned()
            }
            Kind::HostAddress => "an IP address such as \"203.0.113.0\"".to_owned(),
            Kind::Sysctls => "a table such as { \"net.ipv4.ip_early_demux\" = 0 }".to_owned(),
            Kind::Variables { example } => format!("a table such as {example}"),
            Kind::Patterns => "a table such as { forwarded = 'sent: (\\d+)' }".to_owned(),
            Kind::Effects => "a table such as { \"firewall=stateful\" = 0.8 }".to_owned(),
            Kind::Levels => "a list of values or of tables with a label".to_owned(),
            Kind::Baseline => {
                "a table of a factor and one of its levels, such as { queues = 1 }".to_owned()
            }
            Kind::Confidence => "one of 80, 90, 95, 98, 99, 99.5".to_owned(),
        }
    }
}
