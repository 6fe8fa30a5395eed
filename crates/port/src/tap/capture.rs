//! A tap that writes what passes to a capture file.

use crate::frame::{Batch, Frame};
use crate::pcap::PcapWriter;
use crate::port::{Port, Sent};
use crate::{PortError, clock};
use std::io::{self, Write};
use std::time::Duration;

/// Writes what comes in and what shall go out, with times in nanoseconds, as pcap.
///
/// Frames of a batch share their time: the one at which the router had it. Frames that
/// find no room to be sent are in the file too.
#[derive(Debug)]
pub struct PcapTap<P, W: Write> {
    port: P,
    number: u8,
    writer: PcapWriter<W>,
}

impl<P: Port, W: Write + Send> PcapTap<P, W> {
    /// Begins a capture of what passes `port`, which has this number.
    ///
    /// # Errors
    /// What writing gives.
    pub fn new(port: P, number: u8, to: W) -> Result<PcapTap<P, W>, PortError> {
        Ok(PcapTap { port, number, writer: PcapWriter::new(to).map_err(failed)? })
    }

    /// Ends the capture: the port, and what was written to.
    pub fn into_inner(self) -> (P, W) {
        (self.port, self.writer.into_inner())
    }

    fn write<'a>(&mut self, frames: impl Iterator<Item = &'a Frame>) -> Result<(), PortError> {
        let now = clock::realtime_ns();
        for frame in frames {
            self.writer.write(now, frame.bytes()).map_err(failed)?;
        }
        Ok(())
    }
}

fn failed(error: io::Error) -> PortError {
    PortError::system("writing captured frames", error)
}

impl<P: Port, W: Write + Send> Port for PcapTap<P, W> {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let count = self.port.receive(batch)?;
        self.write(batch.frames().iter())?;
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError> {
        // Before it is sent: afterwards the batch may hold anything.
        let number = Some(self.number);
        self.write(batch.frames().iter().filter(|frame| frame.egress() == number))?;
        self.port.send(batch)
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), PortError> {
        self.writer.flush().map_err(failed)?;
        self.port.wait(timeout)
    }

    fn missed(&mut self) -> u64 {
        self.port.missed()
    }

    fn is_at_end(&self) -> bool {
        self.port.is_at_end()
    }
}
