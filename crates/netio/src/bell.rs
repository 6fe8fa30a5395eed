//! Wakes a thread that waits for its ports (eventfd(2)).

use crate::NetioError;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Ends the wait of one thread. Ringing costs a system call only while the thread sleeps.
#[derive(Debug)]
pub struct Bell {
    descriptor: OwnedFd,
    /// True while the thread waits or is about to.
    sleeping: AtomicBool,
    rung: AtomicBool,
}

impl Bell {
    /// Creates a bell.
    ///
    /// # Errors
    /// If the process has reached its limit of descriptors.
    pub fn new() -> Result<Bell, NetioError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let descriptor =
            eventfd(0, flags).map_err(|e| NetioError::system("making an eventfd", e))?;
        Ok(Bell { descriptor, sleeping: AtomicBool::new(false), rung: AtomicBool::new(false) })
    }

    /// Ends the current wait, or the next one if the thread does not wait.
    pub fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        self.ring_if_asleep();
    }

    /// Ends the wait if the thread sleeps: for a thread that checks the reason for the wake-up
    /// itself before it sleeps.
    pub fn ring_if_asleep(&self) {
        // Either a thread that goes to sleep sees all earlier writes, or this thread sees that it
        // sleeps.
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) {
            // Fails only after 2^64 rings.
            let _ = rustix::io::write(&self.descriptor, &1u64.to_ne_bytes());
        }
    }

    /// Call this before the last check for work. Returns a descriptor that becomes readable when
    /// the bell rings, or `None` if the bell has rung.
    pub(crate) fn listen(&self) -> Option<BorrowedFd<'_>> {
        self.sleeping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        (!self.rung.load(Ordering::SeqCst)).then(|| self.descriptor.as_fd())
    }

    /// Call this after the wait.
    pub(crate) fn answer(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
        self.rung.store(false, Ordering::SeqCst);
        // An error means that there is nothing to read.
        let _ = rustix::io::read(&self.descriptor, &mut [0; 8]);
    }
}
