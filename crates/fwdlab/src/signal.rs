//! Ctrl-C and SIGTERM: the first ends the run in progress cleanly, a second one
//! ends the program at once.

use crate::exit::Exit;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Between two looks at whether a signal came.
const LOOK: Duration = Duration::from_millis(50);

/// Whether the user asked to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

/// The one of this process, from when somebody listens: whoever listens later hears of an earlier
/// signal, too.
static LISTENING: Mutex<Option<Stop>> = Mutex::new(None);

/// Ends the program at the first signal, after `before`: for what has nothing to finish.
///
/// # Errors
/// When the handlers can't be installed.
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

/// Whether SIGHUP came: what was read is to be read anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hangup(Arc<AtomicBool>);

impl Hangup {
    /// Listens from now on, in place of ending the program.
    ///
    /// # Errors
    /// When the handler can't be installed.
    pub(crate) fn on_signal() -> io::Result<Hangup> {
        let hangup = Hangup::default();
        flag::register(SIGHUP, hangup.0.clone())?;
        Ok(hangup)
    }

    /// True once after each signal; several at once are one.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Stop {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the handlers can't be installed.
    pub(crate) fn on_signals() -> io::Result<Stop> {
        let mut listening = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stop) = &*listening {
            return Ok(stop.clone());
        }
        let stop = Stop::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag down, and raises it.
            flag::register_conditional_shutdown(signal, Exit::Interrupted as i32, stop.0.clone())?;
            flag::register(signal, stop.0.clone())?;
        }
        Ok(listening.insert(stop).clone())
    }

    /// True after the first signal.
    pub(crate) fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The same for threads that can't know this type.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// The same for what can't know this type and outlives the reference.
    pub(crate) fn shared(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// As a signal would.
    #[cfg(test)]
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_later_hears_what_came_before() {
        let (first, second) = (Stop::on_signals().unwrap(), Stop::on_signals().unwrap());
        assert!(Arc::ptr_eq(&first.0, &second.0));
    }
}
