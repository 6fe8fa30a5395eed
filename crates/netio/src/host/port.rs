//! A router's port to the kernel's stack.

use crate::NetioError;
use crate::frame::{BATCH, Batch, CAPACITY, LONGEST};
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use std::fs::File;
use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

/// A queue of a host device. The router continues even if the device is gone: then nothing arrives,
/// and sent frames are lost.
#[derive(Debug)]
pub struct HostPort {
    file: File,
    number: u8,
    is_gone: bool,
    /// Bytes beyond a frame's buffer.
    rest: Box<[u8]>,
}

impl HostPort {
    /// Creates port `number` on a queue.
    pub fn new(queue: OwnedFd, number: u8) -> HostPort {
        let rest = vec![0; LONGEST - CAPACITY].into_boxed_slice();
        HostPort { file: File::from(queue), number, is_gone: false, rest }
    }
}

impl Port for HostPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        let (frames, mut count) = (batch.fill(BATCH), 0);
        while count < frames.len() && !self.is_gone {
            let frame = &mut frames[count];
            let parts = &mut [IoSliceMut::new(frame.buffer_mut()), IoSliceMut::new(&mut self.rest)];
            match self.file.read_vectored(parts) {
                Ok(length) if length <= CAPACITY => {
                    frame.reset(self.number, length);
                    count += 1;
                }
                Ok(length) => {
                    let rest = &self.rest[..length - CAPACITY];
                    // Without memory for it, the frame is lost.
                    count += usize::from(frame.reset_long(self.number, rest).is_ok());
                }
                Err(error) => {
                    let is_transient =
                        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
                    self.is_gone = !is_transient;
                    break;
                }
            }
        }
        batch.fill(count);
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        let (number, mut sent) = (Some(self.number), Sent::default());
        for frame in batch.frames().iter().filter(|frame| frame.egress() == number) {
            // Frames that the device refuses, for example because it is down, are lost.
            let taken = self.file.write(&frame.whole()).is_ok_and(|taken| taken == frame.len());
            *if taken { &mut sent.sent } else { &mut sent.lost } += 1;
        }
        Ok(sent)
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        if !self.is_gone {
            wakers.add(self.file.as_fd());
        }
        Ok(())
    }

    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        self.is_gone |= woken == Woken::Failing;
        Ok(())
    }

    fn missed(&mut self) -> u64 {
        0
    }

    /// True: the kernel sends only when the router does something else as well.
    fn is_at_end(&self) -> bool {
        true
    }
}
