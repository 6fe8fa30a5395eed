//! A router's port to the kernel's stack.

use crate::PortError;
use crate::frame::{BATCH, Batch};
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

/// A queue of a host device. Whatever becomes of the device, the router goes on: without it
/// nothing comes in, and what is sent is lost.
#[derive(Debug)]
pub struct HostPort {
    file: File,
    number: u8,
    is_gone: bool,
}

impl HostPort {
    /// Port `number` on a queue.
    pub fn new(queue: OwnedFd, number: u8) -> HostPort {
        HostPort { file: File::from(queue), number, is_gone: false }
    }
}

impl Port for HostPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let (frames, mut count) = (batch.fill(BATCH), 0);
        while count < frames.len() && !self.is_gone {
            let frame = &mut frames[count];
            match self.file.read(frame.buffer_mut()) {
                Ok(length) => {
                    frame.reset(self.number, length);
                    count += 1;
                }
                Err(error) => {
                    let passes =
                        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
                    self.is_gone = !passes;
                    break;
                }
            }
        }
        batch.fill(count);
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError> {
        let (number, mut sent) = (Some(self.number), Sent::default());
        for frame in batch.frames().iter().filter(|frame| frame.egress() == number) {
            // What a device refuses, as one that is down, is lost.
            let taken = self.file.write(frame.bytes()).is_ok_and(|taken| taken == frame.len());
            *if taken { &mut sent.sent } else { &mut sent.lost } += 1;
        }
        Ok(sent)
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), PortError> {
        if !self.is_gone {
            wakers.add(self.file.as_fd());
        }
        Ok(())
    }

    fn woken(&mut self, woken: Woken) -> Result<(), PortError> {
        self.is_gone |= woken == Woken::Failing;
        Ok(())
    }

    fn missed(&mut self) -> u64 {
        0
    }

    /// The kernel sends only when the router does something else as well.
    fn is_at_end(&self) -> bool {
        true
    }
}
