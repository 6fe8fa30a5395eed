//! Lines that every log has and that carry no figure of the traffic, and lines
//! in which the tool reports an error.

use super::lines::Line;

/// What a line without a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing, or the shell's echo: it says nothing of how a log ends.
    Quiet,
    /// Progress and settings.
    Noise,
    /// An error of the tool.
    Error,
    /// `Terminated`: the shell's word about a killed generator.
    Terminated,
}

/// How messages with a clock begin that tell of an error (`D("...")` in pkt-gen.c
/// and nm_open of netmap_user.h).
const ERRORS: &[&[u8]] = &[
    b"ouch, thread",
    b"poll err",
    b"poll() error",
    b"poll timeout",
    b"ioctl error",
    b"Unable to open",
    b"Unable to register",
    b"Unable to set affinity",
    b"Unable to create thread",
    b"could not open",
    b"cannot open",
    b"bad interface",
    b"bad option",
    b"aborting",
    b"missing ifname",
    b"no space",
    b"NIOC",
];

/// How messages with a clock begin that only tell of progress.
const NOISE: &[&[u8]] = &[
    b"interface is ",
    b"using default burst size",
    b"running on ",
    b"range is ",
    b"overriding ",
    b"mapped ",
    b"Wait ",
    b"Ready...",
    b"Sending ",
    b"--- SPECIAL OPTIONS",
    b"reading from ",
    b"waiting for initial packets",
    b"start, fd ",
    b"frags ",
    b"flush tail ",
    b"pending tx tail ",
    b"truncating packet, no room for frags",
    b"failed to install ^C handler",
    b"Unable to get virtio-net header length",
    b"Port requires virtio-net header",
    b"virtio-net header",
    b"received control-C",
    b"drop copy",
    b"nthreads ",
    b"extra ",
    b"requested ",
    b"mac ",
];

/// How lines without a clock begin that report an error: the tool's, the
/// shell's around it or the connection's.
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

/// How lines without a clock begin that carry no figure.
const PLAIN_NOISE: &[&[u8]] = &[
    b"Sending on ",
    b"Receiving from ",
    b"ping6: failed to get receiving hop limit",
    b"Warning: no access to tty",
    b"Thus no job control in this shell.",
];

/// What is known of a message with a clock.
pub(super) fn message(message: &[u8]) -> Option<Known> {
    let begins = |list: &[&[u8]]| list.iter().any(|known| message.starts_with(known));
    if begins(NOISE) {
        return Some(Known::Noise);
    }
    begins(ERRORS).then_some(Known::Error)
}

/// What is known of a line without a clock. Blank lines stand after some
/// messages, which end in a line feed of their own; a shell may set the title of
/// a window that isn't there.
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
