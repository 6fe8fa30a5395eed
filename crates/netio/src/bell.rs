//! Waking a thread that waits for its ports (eventfd(2)).

use crate::NetioError;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Ends the wait of one thread. Ringing costs a system call only while that one sleeps.
#[derive(Debug)]
pub struct Bell {
    descriptor: OwnedFd,
    /// Whoever waits, or is about to.
    sleeping: AtomicBool,
    rung: AtomicBool,
}

impl Bell {
    /// A bell.
    ///
    /// # Errors
    /// When the process has as many descriptors as it may.
    pub fn new() -> Result<Bell, NetioError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let descriptor =
            eventfd(0, flags).map_err(|e| NetioError::system("making an eventfd", e))?;
        Ok(Bell { descriptor, sleeping: AtomicBool::new(false), rung: AtomicBool::new(false) })
    }

    /// Ends the wait, or the next one, if nobody waits.
    pub fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        self.ring_if_asleep();
    }

    /// Ends the wait, if somebody waits: for whoever looks by itself, before it sleeps, at
    /// what this is about.
    pub fn ring_if_asleep(&self) {
        // What was written before is seen by whoever goes to sleep, or that one is seen here.
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) {
            // It can only fail when it has rung 2^64 times.
            let _ = rustix::io::write(&self.descriptor, &1u64.to_ne_bytes());
        }
    }

    /// To be called before the last look at what it rings for: what can be read when it rings,
    /// or nothing if it has rung.
    pub(crate) fn listen(&self) -> Option<BorrowedFd<'_>> {
        self.sleeping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        (!self.rung.load(Ordering::SeqCst)).then(|| self.descriptor.as_fd())
    }

    /// To be called after the wait.
    pub(crate) fn answer(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
        self.rung.store(false, Ordering::SeqCst);
        // Nothing to be read is nothing to be said.
        let _ = rustix::io::read(&self.descriptor, &mut [0; 8]);
    }
}
