//! Options of IPv4 headers (RFC 791 section 3.1, RFC 1812 sections 4.2.2 and 5.3.13).
//!
//! Source routes are refused, as routers commonly do (RFC 7126 section 4.3). Record-route options
//! are processed. Timestamp options are not, as the router has no wall clock; they and all others
//! are forwarded unchanged.

use super::super::ethernet::HEADER as ETHERNET;
use super::super::{Reason, ipv4};
use super::Refused;
use crate::fib::V4;
use fwdlab_netio::frame::Frame;

/// Option types.
const END: u8 = 0;
const NOTHING: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;

/// Checks the options of a packet whose header was checked; returns the offset in the frame of the
/// record-route option, if there is one.
pub(super) fn check(frame: &Frame) -> Result<Option<usize>, Refused> {
    let bytes = frame.buffer();
    let end = ETHERNET + usize::from(bytes[ETHERNET] & 15) * 4;
    let mut at = ETHERNET + ipv4::HEADER;
    let mut record = None;
    while at < end {
        let length = match bytes[at] {
            END => break,
            NOTHING => 1,
            _ if at + 1 == end => return Err(fault(at)),
            _ => usize::from(bytes[at + 1]),
        };
        if length == 0 || (length == 1 && bytes[at] != NOTHING) || at + length > end {
            return Err(fault(at + 1));
        }
        match bytes[at] {
            LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE => {
                return Err((Reason::SlowSourceRoute, [0; 4]));
            }
            // Offsets in the option count from 1, and the first three bytes belong to the option
            // itself.
            RECORD_ROUTE if length < 3 => return Err(fault(at + 1)),
            RECORD_ROUTE if bytes[at + 2] < 4 => return Err(fault(at + 2)),
            RECORD_ROUTE => record = Some(at),
            _ => {}
        }
        at += length;
    }
    Ok(record)
}

/// Writes an address into the option at `at`, if it has room for another one.
pub(super) fn record(frame: &mut Frame, at: usize, V4(own): V4) {
    let bytes = frame.buffer_mut();
    let (length, pointer) = (usize::from(bytes[at + 1]), usize::from(bytes[at + 2]));
    if pointer + 3 <= length {
        bytes[at + pointer - 1..at + pointer + 3].copy_from_slice(&own.to_be_bytes());
        bytes[at + 2] += 4;
    }
}

/// A parameter problem, which points to an offset in the header.
fn fault(at: usize) -> Refused {
    (Reason::SlowOptions, [(at - ETHERNET) as u8, 0, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(options: &[u8]) -> Frame {
        let mut bytes = [0; 94];
        bytes[ETHERNET] = 0x45 + (options.len() / 4) as u8;
        bytes[34..34 + options.len()].copy_from_slice(options);
        Frame::of(0, &bytes).expect("it fits")
    }

    #[test]
    fn check_finds_record_route_and_rejects_bad_options() {
        let ok = |options: &[u8]| check(&frame(options)).expect("sound");
        let bad = |options: &[u8]| check(&frame(options)).expect_err("a fault");
        assert_eq!(ok(&[]), None);
        assert_eq!(ok(&[1, 1, 1, 0]), None);
        assert_eq!(ok(&[0, 131, 255, 255]), None);
        assert_eq!(ok(&[1, 7, 7, 4, 0, 0, 0, 0]), Some(35));
        assert_eq!(ok(&[68, 4, 5, 0, 148, 4, 0, 0]), None);
        assert_eq!(bad(&[131, 3, 4, 0]), (Reason::SlowSourceRoute, [0; 4]));
        assert_eq!(bad(&[1, 137, 3, 4]), (Reason::SlowSourceRoute, [0; 4]));
        assert_eq!(bad(&[1, 1, 1, 7]), (Reason::SlowOptions, [23, 0, 0, 0]));
        assert_eq!(bad(&[68, 1, 0, 0]), (Reason::SlowOptions, [21, 0, 0, 0]));
        assert_eq!(bad(&[68, 5, 0, 0]), (Reason::SlowOptions, [21, 0, 0, 0]));
        assert_eq!(bad(&[7, 3, 3, 0]), (Reason::SlowOptions, [22, 0, 0, 0]));
    }

    #[test]
    fn record_writes_an_address_if_there_is_room() {
        let mut one = frame(&[7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let expected = [
            [7, 11, 8, 1, 2, 3, 4, 0, 0, 0, 0, 0],
            [7, 11, 12, 1, 2, 3, 4, 1, 2, 3, 4, 0],
            [7, 11, 12, 1, 2, 3, 4, 1, 2, 3, 4, 0],
        ];
        for expected in expected {
            record(&mut one, 34, V4(0x0102_0304));
            assert_eq!(one.bytes()[34..46], expected);
        }
        let mut odd = frame(&[7, 7, 255, 0, 0, 0, 0, 0]);
        record(&mut odd, 34, V4(1));
        assert_eq!(odd.bytes()[34..42], [7, 7, 255, 0, 0, 0, 0, 0]);
    }
}
