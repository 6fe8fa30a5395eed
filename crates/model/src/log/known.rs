//! Lines that occur in every log without figures of the traffic, and lines in which the tool
//! reports an error.

use super::lines::Line;

/// Kind of a line without a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Empty, or the shell's echo: irrelevant for the end of a log.
    Quiet,
    /// Progress and settings.
    Noise,
    /// An error of the tool.
    Error,
    /// `Terminated`: the shell's message about a killed generator.
    Terminated,
}

/// Prefixes of timestamped messages that only report progress and settings (pkt-gen.c and the
/// functions of netmap_user.h that it calls). They take precedence over [`ERRORS`]: two of them
/// sound worse than they are.
const NOISE: &[&[u8]] = &[
    b"interface is ",
    b"using default burst size",
    b"running on ",
    b"range is ",
    b"extract IP range from ",
    b"extract MAC range from ",
    b"overriding ",
    b"mapped ",
    b"txr ",
    b"nifp at offset ",
    b"   TX",
    b"   RX",
    b"source hwaddr ",
    b"using a dummy send routine",
    b"using pcap on ",
    b"want to use tap ",
    b"writing to file desc ",
    b"Wait ",
    b"Ready...",
    b"Sending ",
    b"--- SPECIAL OPTIONS",
    b"reading from ",
    b"waiting for initial packets",
    b"start, fd ",
    b"frags ",
    b"drop copy",
    b"flush tail ",
    b"pending tx tail ",
    b"truncating packet, no room for frags",
    b"received control-C",
    b"Ignoring -n argument",
    b"Port requires virtio-net header",
    b"Unable to get virtio-net header length",
    b"failed to install ^C handler",
];

/// Prefixes of timestamped messages that report an error.
const ERRORS: &[&[u8]] = &[
    b"ouch, thread",
    b"-- ouch, cannot send",
    b"poll err",
    b"poll() error",
    b"fd error",
    b"ioctl",
    b"TXSYNC error",
    b"socket() failed",
    b"getifaddrs ",
    b"strdup failed",
    b"out of memory",
    b"failed to ",
    b"Unable to ",
    b"cannot open ",
    b"can only ",
    b"bad ",
    b"invalid ",
    b"Invalid name ",
    b"unrecognised function",
    b"missing ifname",
    b"ifname too long",
    b"pkt_size (",
    b"aborting",
];

/// Prefixes of other lines that report an error: from the tool, the shell around it or the
/// connection.
const PLAIN_ERRORS: &[&[u8]] = &[
    b"pkt-gen: ",
    b"ssh: ",
    b"sudo: ",
    b"Segmentation fault",
    b"Bus error",
    b"Abort trap",
    b"Connection to ",
    b"Connection closed",
];

/// Prefixes of other lines without figures.
const PLAIN_NOISE: &[&[u8]] = &[
    b"Sending on ",
    b"Receiving from ",
    b"Working on ",
    b"ping6: failed to get receiving hop limit",
    b"Warning: no access to tty",
    b"Thus no job control in this shell.",
];

/// Returns the kind of a timestamped message, if known.
pub(super) fn message(message: &[u8]) -> Option<Known> {
    let begins = |list: &[&[u8]]| list.iter().any(|known| message.starts_with(known));
    if begins(NOISE) {
        return Some(Known::Noise);
    }
    begins(ERRORS).then_some(Known::Error)
}

/// Returns the kind of another line, if known. Blank lines follow some messages, which end in an
/// additional line feed; a shell may set the title of a window that does not exist.
pub(super) fn plain(line: &Line) -> Option<Known> {
    let begins = |list: &[&[u8]]| list.iter().any(|known| line.bytes.starts_with(known));
    let is_title = line.bytes.starts_with(b"\x1bk") && line.bytes.ends_with(b"\x1b\\");
    if line.bytes.is_empty() || line.bytes.starts_with(b"+ ") || is_title {
        return Some(Known::Quiet);
    }
    if begins(PLAIN_NOISE) {
        return Some(Known::Noise);
    }
    if line.bytes == b"Terminated" {
        return Some(Known::Terminated);
    }
    begins(PLAIN_ERRORS).then_some(Known::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_classified() {
        for (text, known) in [
            ("Ready...", Some(Known::Noise)),
            ("   TX0 at 0x0x1000 slots 512", Some(Known::Noise)),
            ("failed to install ^C handler: Invalid argument", Some(Known::Noise)),
            ("failed to open pcap file x", Some(Known::Error)),
            ("Unable to get virtio-net header length", Some(Known::Noise)),
            ("Unable to open netmap:em0: Device busy", Some(Known::Error)),
            ("poll error/timeout on queue 0: No error: 0", Some(Known::Error)),
            ("Sequence GAP: exp 5 found 7", None),
            ("", None),
        ] {
            assert_eq!(message(text.as_bytes()), known, "{text}");
        }
    }

    #[test]
    fn plain_lines_are_classified() {
        for (text, known) in [
            ("", Some(Known::Quiet)),
            ("+ return 1", Some(Known::Quiet)),
            ("\u{1b}klab1\u{1b}\\", Some(Known::Quiet)),
            ("\u{1b}klab1", None),
            ("Receiving from netmap:em0: 4 queues, 1 threads and 1 cpus.", Some(Known::Noise)),
            ("Terminated", Some(Known::Terminated)),
            ("Terminated by hand", None),
            ("Segmentation fault (core dumped)", Some(Known::Error)),
            ("Iteration 1", None),
        ] {
            assert_eq!(plain(&Line { number: 1, bytes: text.as_bytes() }), known, "{text}");
        }
    }
}
