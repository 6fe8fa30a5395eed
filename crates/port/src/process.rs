//! Child processes that must not outlive this one.

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
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

/// Asks the program of this process number to end (SIGINT), as Ctrl-C does.
///
/// # Errors
/// When there is none.
pub fn interrupt(pid: u32) -> std::io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, Signal::INT)?)
}
