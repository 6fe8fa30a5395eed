//! What a router's ports have in common.

use crate::PortError;
use crate::frame::Batch;
use std::time::Duration;

/// One place where frames come in and go out, used by one thread.
///
/// Ports are numbered; each knows its number. What wraps a port (to write frames to
/// a file, to lose some on purpose, to spread them over threads) is a port too.
pub trait Port: Send {
    /// Receives what has come in, [`crate::frame::BATCH`] frames at most, and returns
    /// how many. What the batch held before is lost; nothing is waited for.
    ///
    /// # Errors
    /// When the port is gone for good.
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError>;

    /// Sends those frames of the batch that go out at this port, and returns what
    /// became of them. When no frame goes anywhere else, the batch may hold anything
    /// afterwards; else it is unchanged.
    ///
    /// # Errors
    /// When the port is gone for good.
    fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError>;

    /// Waits until something may have come in, `timeout` at most.
    ///
    /// # Errors
    /// When the port is gone for good.
    fn wait(&mut self, timeout: Duration) -> Result<(), PortError>;

    /// Frames that came in and were lost before they could be received, as far as
    /// the port knows.
    fn missed(&mut self) -> u64;

    /// True when nothing will ever come in again, as at the end of a file.
    fn is_at_end(&self) -> bool {
        false
    }
}

/// What became of frames that were to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames that were handed over.
    pub sent: u64,
    /// Frames that found no room, and are lost.
    pub lost: u64,
}

impl<P: Port + ?Sized> Port for Box<P> {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        (**self).receive(batch)
    }
    fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError> {
        (**self).send(batch)
    }
    fn wait(&mut self, timeout: Duration) -> Result<(), PortError> {
        (**self).wait(timeout)
    }
    fn missed(&mut self) -> u64 {
        (**self).missed()
    }
    fn is_at_end(&self) -> bool {
        (**self).is_at_end()
    }
}
