//! Ctrl-C and SIGTERM: the first one ends the run in progress cleanly, a second one ends the
//! program immediately.

use crate::exit::Exit;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Polling interval for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Flag of the user's order to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

/// The flag of this process, from the first listener on: later listeners also receive an earlier
/// signal.
static LISTENING: Mutex<Option<Stop>> = Mutex::new(None);

/// Ends the program at the first signal, after `before`: for programs with nothing to finish.
///
/// # Errors
/// Fails if the handlers cannot be installed.
pub(crate) fn end_after(before: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let stop = Stop::on_signals()?;
    std::thread::spawn(move || {
        while !stop.requested() {
            std::thread::sleep(LOOK);
        }
        before();
        std::process::exit(Exit::Interrupted as i32);
    });
    Ok(())
}

/// Flag of SIGHUP: the input is to be read again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hangup(Arc<AtomicBool>);

impl Hangup {
    /// Listens from now on, instead of ending the program.
    ///
    /// # Errors
    /// Fails if the handler cannot be installed.
    pub(crate) fn on_signal() -> io::Result<Hangup> {
        let hangup = Hangup::default();
        flag::register(SIGHUP, hangup.0.clone())?;
        Ok(hangup)
    }

    /// True once after each signal; simultaneous signals count once.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Stop {
    /// Listens from now on.
    ///
    /// # Errors
    /// Fails if the handlers cannot be installed.
    pub(crate) fn on_signals() -> io::Result<Stop> {
        let mut listening = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stop) = &*listening {
            return Ok(stop.clone());
        }
        let stop = Stop::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset, and sets it.
            flag::register_conditional_shutdown(signal, Exit::Interrupted as i32, stop.0.clone())?;
            flag::register(signal, stop.0.clone())?;
        }
        Ok(listening.insert(stop).clone())
    }

    /// True after the first signal.
    pub(crate) fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag, for threads that cannot know this type.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// The flag, for code that cannot know this type and outlives the reference.
    pub(crate) fn shared(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Acts like a signal.
    #[cfg(test)]
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_listener_shares_the_flag() {
        let (first, second) = (Stop::on_signals().unwrap(), Stop::on_signals().unwrap());
        assert!(Arc::ptr_eq(&first.0, &second.0));
    }
}
