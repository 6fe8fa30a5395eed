//! A tap that writes passing frames to a capture file.

use crate::frame::{Batch, Frame};
use crate::pcap::PcapWriter;
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use crate::{NetioError, clock};
use std::io::{self, Write};

/// Writes incoming and outgoing frames as pcap, with times in nanoseconds.
///
/// Frames of a batch share one time: when the router had the batch. The file also contains outgoing
/// frames that find no room.
#[derive(Debug)]
pub struct PcapTap<P, W: Write> {
    port: P,
    number: u8,
    writer: PcapWriter<W>,
}

impl<P: Port, W: Write + Send> PcapTap<P, W> {
    /// Begins a capture of the frames that pass `port`, which has this number.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(port: P, number: u8, to: W) -> Result<PcapTap<P, W>, NetioError> {
        Ok(PcapTap { port, number, writer: PcapWriter::new(to).map_err(failed)? })
    }

    /// Ends the capture; returns the port and the output.
    pub fn into_inner(self) -> (P, W) {
        (self.port, self.writer.into_inner())
    }

    fn write<'a>(&mut self, frames: impl Iterator<Item = &'a Frame>) -> Result<(), NetioError> {
        let now = clock::realtime_ns();
        for frame in frames {
            self.writer.write(now, &frame.whole()).map_err(failed)?;
        }
        Ok(())
    }
}

fn failed(error: io::Error) -> NetioError {
    NetioError::system("writing captured frames", error)
}

impl<P: Port, W: Write + Send> Port for PcapTap<P, W> {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        let count = self.port.receive(batch)?;
        self.write(batch.frames().iter())?;
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        // Before sending: afterwards the contents of the batch are unspecified.
        let number = Some(self.number);
        self.write(batch.frames().iter().filter(|frame| frame.egress() == number))?;
        self.port.send(batch)
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        self.writer.flush().map_err(failed)?;
        self.port.wake_by(wakers)
    }

    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        self.port.woken(woken)
    }

    fn missed(&mut self) -> u64 {
        self.port.missed()
    }

    fn is_at_end(&self) -> bool {
        self.port.is_at_end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{FakePort, NUMBER, batch_to, receive_all};
    use super::*;

    #[test]
    fn tap_captures_both_directions_with_times() {
        let before = clock::realtime_ns();
        let port = FakePort { incoming: vec![vec![1; 60], vec![2; 61]], ..FakePort::default() };
        let mut tap = PcapTap::new(port, NUMBER, Vec::new()).expect("a header");
        assert_eq!(receive_all(&mut tap), [vec![1; 60], vec![2; 61]]);
        let sent = tap.send(&mut batch_to(&[NUMBER, 0, NUMBER], |n| vec![n as u8; 70]));
        assert_eq!(sent.expect("sending"), Sent { sent: 2, lost: 0 });
        assert_eq!(tap.missed(), 7);
        let (port, file) = tap.into_inner();
        assert_eq!(port.outgoing, [vec![0; 70], vec![2; 70]]);
        // The header as other programs write it: nanoseconds, 2.4, Ethernet.
        let header =
            [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
        assert_eq!(file[..24], header);
        let mut rest = &file[24..];
        for expected in [vec![1u8; 60], vec![2; 61], vec![0; 70], vec![2; 70]] {
            let (record, after) = rest.split_at(16);
            let [seconds, nanoseconds, captured, length] = [0, 4, 8, 12].map(|at| {
                u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
            });
            let time = i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds);
            assert!((before..=clock::realtime_ns()).contains(&time));
            assert_eq!((captured as usize, length as usize), (expected.len(), expected.len()));
            assert_eq!(after[..expected.len()], expected);
            rest = &after[expected.len()..];
        }
        assert!(rest.is_empty());
    }
}
