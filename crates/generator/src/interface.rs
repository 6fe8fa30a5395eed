//! Interface counters: they replace the receiver for generators without one and cross-check the
//! others.
//!
//! Sources: Linux, `Documentation/ABI/testing/sysfs-class-net-statistics`; FreeBSD, netstat(1). The
//! counters include every packet, not only the generator's.

use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::Counter;

/// Files under `/sys/class/net/IF/statistics`, in the order of [`InterfaceReading`].
const FILES: [&str; 6] =
    ["rx_packets", "rx_dropped", "rx_missed_errors", "tx_packets", "tx_dropped", "tx_errors"];

/// An interface whose counters are read.
pub struct InterfaceCounter<'a> {
    host: &'a dyn Host,
    interface: String,
    is_linux: bool,
}

/// Packet counts since the interface was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceReading {
    /// Received.
    pub received: u64,
    /// Dropped on reception because a ring was full.
    pub receiver_dropped: u64,
    /// Sent.
    pub sent: u64,
    /// Not sent: dropped, or with an error.
    pub unsent: u64,
}

impl<'a> InterfaceCounter<'a> {
    /// Detects the host's operating system and checks that the counters can be read.
    ///
    /// # Errors
    /// Fails if there is no such interface.
    pub fn new(host: &'a dyn Host, interface: &str) -> Result<InterfaceCounter<'a>, BenchError> {
        let is_linux = host.run(&["uname", "-s"], "")?.trim() == "Linux";
        let counter = InterfaceCounter { host, interface: interface.to_owned(), is_linux };
        counter.read()?;
        Ok(counter)
    }

    /// Reads the counters.
    ///
    /// # Errors
    /// Fails if the host does not answer, or answers in another format.
    pub fn read(&self) -> Result<InterfaceReading, BenchError> {
        let (text, reading) = if self.is_linux {
            let directory = format!("/sys/class/net/{}/statistics", self.interface);
            let files = FILES.map(|file| format!("{directory}/{file}"));
            // A single program reads all files: over ssh each call takes a round trip.
            let mut argv = vec!["cat"];
            argv.extend(files.iter().map(String::as_str));
            let text = self.host.run(&argv, "")?;
            let reading = parse_sysfs(&text);
            (text, reading)
        } else {
            let text = self.host.run(&["netstat", "-I", &self.interface, "-b", "-n"], "")?;
            let reading = parse_netstat(&text);
            (text, reading)
        };
        reading.ok_or_else(|| BenchError::Program {
            command: format!("reading the counters of {}", self.interface),
            host: self.host.name().to_owned(),
            why: format!("there are none in `{}`", text.trim()),
        })
    }
}

/// Parses the files of [`InterfaceReading`], one number each.
pub fn parse_sysfs(text: &str) -> Option<InterfaceReading> {
    let values: Vec<u64> =
        text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let &[received, dropped, missed, sent, tx_dropped, tx_errors] = values.as_slice() else {
        return None;
    };
    Some(InterfaceReading {
        received,
        // Some drivers count packets dropped because of a full ring in both counters.
        receiver_dropped: dropped.max(missed),
        sent,
        unsent: tx_dropped.saturating_add(tx_errors),
    })
}

/// Parses the link's row of `netstat -I IF -b -n`. A column is found by the position of its heading
/// from the right: interfaces without a MAC have an empty address.
pub fn parse_netstat(text: &str) -> Option<InterfaceReading> {
    let mut lines = text.lines();
    let heading: Vec<&str> = lines.next()?.split_whitespace().collect();
    let link = lines.find(|line| line.contains("<Link#"))?;
    let values: Vec<&str> = link.split_whitespace().collect();
    let column = |name: &str| -> Option<u64> {
        let from_right = heading.iter().rev().position(|heading| *heading == name)?;
        values.get(values.len().checked_sub(from_right + 1)?)?.parse().ok()
    };
    Some(InterfaceReading {
        received: column("Ipkts")?,
        receiver_dropped: column("Idrop").unwrap_or(0),
        sent: column("Opkts")?,
        unsent: column("Oerrs").unwrap_or(0),
    })
}

/// Interface counters before and after a trial, to cross-check a generator.
#[derive(Default)]
pub(super) struct InterfaceCounters<'a> {
    counter: Option<InterfaceCounter<'a>>,
    before: InterfaceReading,
}

impl<'a> InterfaceCounters<'a> {
    /// Takes the first reading; an interface that cannot be read is not an error.
    pub(super) fn new(host: &'a dyn Host, interface: &str) -> InterfaceCounters<'a> {
        let counter = InterfaceCounter::new(host, interface).ok();
        let before = counter.as_ref().and_then(|counter| counter.read().ok()).unwrap_or_default();
        InterfaceCounters { counter, before }
    }

    /// Increment of the counter that `column` selects, with the expected value; the error is a
    /// remark that explains why it is unavailable.
    pub(super) fn testify(
        &self,
        name: &str,
        expected: u64,
        column: impl Fn(&InterfaceReading) -> u64,
    ) -> Result<Counter, String> {
        let Some(counter) = &self.counter else {
            return Err(format!("{name}: the interface has no counters to compare with"));
        };
        let interface = &counter.interface;
        let after = counter.read().map_err(|error| format!("{name}: {error}"))?;
        let (before, after) = (column(&self.before), column(&after));
        if after < before {
            return Err(format!(
                "{name}: the counters of {interface} were reset during the \
                                measurement"
            ));
        }
        if after == before && expected > 0 {
            return Err(format!(
                "{name}: the counters of {interface} stand still; some drivers don't count what \
                 bypasses the kernel"
            ));
        }
        let name = format!("{interface} {name}");
        Ok(Counter { name, before, after, expected: Some(expected) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_host::{FakeHost, LocalHost};
    use proptest::prelude::*;

    const NETSTAT: &str = "\
Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll
ix0    1500 <Link#1>      00:1b:21:c4:95:7a   123456     0     7   98765432   654321     3   12345678     0
ix0       - 198.18.0.0/24 198.18.0.2              12     -     -       1008       12     -       1008     -
";

    #[test]
    fn freebsd_counters_are_parsed_from_the_link_row() {
        let reading =
            InterfaceReading { received: 123_456, receiver_dropped: 7, sent: 654_321, unsent: 3 };
        assert_eq!(parse_netstat(NETSTAT), Some(reading));
        let nameless = NETSTAT.replace("00:1b:21:c4:95:7a", "");
        assert_eq!(parse_netstat(&nameless), Some(reading));
        assert_eq!(parse_netstat("netstat: nothing\n"), None);
        let mut host = FakeHost::default();
        host.outputs.insert("uname -s".into(), "FreeBSD\n".into());
        host.outputs.insert("netstat -I".into(), NETSTAT.into());
        let counter = InterfaceCounter::new(&host, "ix0").expect("an interface");
        assert_eq!(counter.read().expect("counters"), reading);
    }

    #[test]
    fn linux_counters_are_read_from_sysfs() {
        let counter = InterfaceCounter::new(&LocalHost, "lo").expect("an interface");
        let before = counter.read().expect("counters");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("an address");
        socket.send_to(b"x", address).expect("sent");
        let after = counter.read().expect("counters");
        assert!(after.sent > before.sent && after.received > before.received);
        assert!(InterfaceCounter::new(&LocalHost, "no-such-interface").is_err());
    }

    #[test]
    fn stalled_interface_counter_is_reported() {
        let mut host = FakeHost::default();
        host.outputs.insert("uname -s".into(), "FreeBSD\n".into());
        host.outputs.insert("netstat -I".into(), NETSTAT.into());
        let counters = InterfaceCounters::new(&host, "ix0");
        let remark = counters.testify("sent", 5, |reading| reading.sent).expect_err("stands still");
        assert!(remark.contains("counters of ix0 stand still"), "{remark}");
        assert!(counters.testify("sent", 0, |reading| reading.sent).is_ok());
        let none = InterfaceCounters::new(&LocalHost, "no-such-interface");
        assert!(none.testify("sent", 5, |reading| reading.sent).is_err());
    }

    proptest! {
        #[test]
        fn parsers_accept_any_text(text in "(<Link#|Ipkts|Opkts|[ \n0-9a-z])*") {
            let _ = parse_netstat(&text);
            let _ = parse_sysfs(&text);
        }
    }
}
