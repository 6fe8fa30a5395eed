//! Checksums that were left to a device, completed.
//!
//! On a virtual link (veth, tap) stacks leave checksums of TCP and UDP to a device that there
//! isn't: the other end is told, and trusts what never left the machine's memory. A router
//! that takes the frames out has to complete them, or every receiver beyond drops them.
//! AF_PACKET tells which frames these are; AF_XDP doesn't, and they are known by what stands
//! in the checksum's place ([`fwdlab_packet::checksum::complete`]).

use crate::NetioError;
use crate::frame::Batch;
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use fwdlab_packet::checksum;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A port whose frames come in with whole checksums.
pub struct CompleteTap {
    port: Box<dyn Port>,
    completed: Arc<AtomicU64>,
}

impl CompleteTap {
    /// Completes checksums of what `port` receives, and counts them in `completed`.
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
