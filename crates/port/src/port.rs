//! The trait of a router's ports.

use crate::PortError;
use crate::frame::Batch;
use crate::poll::{self, Wakers, Woken};
use std::time::Duration;

/// A port: frames come in and go out; used by one thread.
///
/// Ports are numbered; each knows its number. Wrappers (to capture frames, inject faults,
/// or spread frames over threads) are ports too.
pub trait Port: Send {
    /// Receives pending frames, at most [`crate::frame::BATCH`], and returns how many. The
    /// previous contents of the batch are lost. Does not block.
    ///
    /// # Errors
    /// When the port is gone for good.
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError>;

    /// Sends the frames of the batch whose egress is this port, and returns the result. If
    /// all frames have this egress, the contents of the batch are unspecified afterwards;
    /// otherwise it is unchanged.
    ///
    /// # Errors
    /// When the port is gone for good.
    fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError>;

    /// Says what wakes a thread that has found nothing to receive and is about to sleep, at
    /// this port and others ([`poll::wait_any`]).
    ///
    /// # Errors
    /// When the port is gone for good.
    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), PortError>;

    /// Called after the sleep.
    ///
    /// # Errors
    /// When the port is gone for good.
    fn woken(&mut self, _: Woken) -> Result<(), PortError> {
        Ok(())
    }

    /// Waits until something may have come in, `timeout` at most.
    ///
    /// # Errors
    /// When the port is gone for good.
    fn wait(&mut self, timeout: Duration) -> Result<(), PortError> {
        poll::wait_one(self, timeout)
    }

    /// Frames that came in and were lost before they could be received, as far as
    /// the port knows.
    fn missed(&mut self) -> u64;

    /// True when nothing will ever come in again, as at the end of a file.
    fn is_at_end(&self) -> bool {
        false
    }
}

/// Result of sending frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames accepted.
    pub sent: u64,
    /// Frames lost because a queue was full.
    pub lost: u64,
}

impl<P: Port + ?Sized> Port for Box<P> {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        (**self).receive(batch)
    }
    fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError> {
        (**self).send(batch)
    }
    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), PortError> {
        (**self).wake_by(wakers)
    }
    fn woken(&mut self, woken: Woken) -> Result<(), PortError> {
        (**self).woken(woken)
    }
    fn missed(&mut self) -> u64 {
        (**self).missed()
    }
    fn is_at_end(&self) -> bool {
        (**self).is_at_end()
    }
}
