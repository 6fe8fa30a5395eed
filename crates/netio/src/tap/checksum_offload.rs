//! Completes checksums left to a device.
//!
//! On a virtual link (veth, tap) stacks leave TCP and UDP checksums to a nonexistent device: the
//! other end is notified, and trusts data that never left the machine's memory. A router that takes
//! frames from such a link has to complete the checksums, or every receiver beyond drops the
//! frames. AF_PACKET marks these frames. AF_XDP does not; they are recognised by the contents of
//! the checksum field ([`fwdlab_packet::checksum::complete`]).

use crate::NetioError;
use crate::frame::Batch;
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use fwdlab_packet::checksum;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A port whose received frames have complete checksums.
pub struct CompleteTap {
    port: Box<dyn Port>,
    completed: Arc<AtomicU64>,
}

impl CompleteTap {
    /// Completes the checksums of frames that `port` receives, and counts them in `completed`.
    pub fn new(port: Box<dyn Port>, completed: Arc<AtomicU64>) -> CompleteTap {
        CompleteTap { port, completed }
    }
}

impl Port for CompleteTap {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        let count = self.port.receive(batch)?;
        for frame in batch.frames_mut() {
            if frame.edit(|bytes| checksum::complete(bytes, false)) {
                self.completed.fetch_add(1, Relaxed);
            }
        }
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        self.port.send(batch)
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
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
