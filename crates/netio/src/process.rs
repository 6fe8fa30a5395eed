//! Child processes that must not outlive their parent.

use rustix::process::{
    Pid, Signal, kill_process, kill_process_group, set_parent_process_death_signal,
};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the kernel kill the program when the thread that starts it ends for any reason: a killed
/// laboratory leaves no `ip` behind that keeps creating what the next laboratory has just removed
/// (prctl(2), PR_SET_PDEATHSIG).
///
/// The program can be interrupted even if this process ignores interrupts. A shell that starts this
/// process in the background (`fwdlab run ... &` in a script) makes it ignore SIGINT and SIGQUIT.
/// Programs would inherit this, and a program that prints totals when interrupted would never end.
pub fn die_with_us(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs between fork and exec; it makes system calls that are safe
    // there (signal-safety(7)), allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGQUIT] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
        })
    }
}

/// Lets the program inherit descriptors under their own numbers. The caller keeps them open until
/// the program has started; no other program gets them.
pub fn keep_open(command: &mut Command, descriptors: Vec<RawFd>) -> &mut Command {
    // SAFETY: the closure runs between fork and exec; it makes a system call for each
    // descriptor, allocates nothing and takes no lock. A number that is not open is an error.
    unsafe {
        command.pre_exec(move || {
            for &descriptor in &descriptors {
                if libc::fcntl(descriptor, libc::F_SETFD, 0) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        })
    }
}

/// Interrupts the program with this process id (SIGINT), as Ctrl-C does.
///
/// # Errors
/// If there is no such process.
pub fn interrupt(pid: u32) -> std::io::Result<()> {
    signal(pid, Signal::INT)
}

/// Makes the program with this process id read its file again (SIGHUP).
///
/// # Errors
/// If there is no such process.
pub fn signal_hangup(pid: u32) -> std::io::Result<()> {
    signal(pid, Signal::HUP)
}

/// Interrupts the process group that the program with this process id leads (SIGINT), as Ctrl-C
/// does.
///
/// # Errors
/// If there is no such group.
pub fn interrupt_group(pid: u32) -> std::io::Result<()> {
    Ok(kill_process_group(pid_of(pid)?, Signal::INT)?)
}

/// Kills the process group that the program with this process id leads (SIGKILL).
///
/// # Errors
/// If there is no such group.
pub fn kill_group(pid: u32) -> std::io::Result<()> {
    Ok(kill_process_group(pid_of(pid)?, Signal::KILL)?)
}

fn signal(pid: u32, signal: Signal) -> std::io::Result<()> {
    Ok(kill_process(pid_of(pid)?, signal)?)
}

fn pid_of(pid: u32) -> std::io::Result<Pid> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Ok(pid.ok_or(std::io::ErrorKind::InvalidInput)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn child_of_background_process_is_interruptible() {
        let ignores_sigint = |dies: bool| {
            let mut command = Command::new("sed");
            command.args(["-n", "s/^SigIgn:[[:space:]]*//p", "/proc/self/status"]);
            // SAFETY: as above.
            unsafe {
                command.pre_exec(|| {
                    libc::signal(libc::SIGINT, libc::SIG_IGN);
                    Ok(())
                });
            }
            if dies {
                die_with_us(&mut command);
            }
            let mask = String::from_utf8(command.output().unwrap().stdout).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap() & 1 << (libc::SIGINT - 1) != 0
        };
        assert!(ignores_sigint(false) && !ignores_sigint(true));
    }

    #[test]
    fn only_keep_open_passes_descriptors() {
        let (socket, _peer) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let number = socket.as_raw_fd();
        let has_it = |keep: bool| {
            let mut command = Command::new("test");
            command.args(["-e", &format!("/dev/fd/{number}")]);
            if keep {
                keep_open(&mut command, vec![number]);
            }
            command.status().unwrap().success()
        };
        assert!(has_it(true) && !has_it(false));
    }
}
