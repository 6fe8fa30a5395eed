//! Programs that must not outlive this one.

use rustix::process::{Signal, set_parent_process_death_signal};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the kernel kill the program when the thread that starts it ends, however
/// that happens: a killed laboratory leaves no `ip` behind that goes on making
/// what the next one has just removed (prctl(2), PR_SET_PDEATHSIG).
pub fn die_with_us(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs between fork and exec; it makes one system call,
    // allocates nothing and takes no lock.
    unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?)) }
}
