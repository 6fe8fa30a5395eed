//! Child processes that must not outlive this one.

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the kernel kill the program when the thread that starts it ends, however
/// that happens: a killed laboratory leaves no `ip` behind that goes on making
/// what the next one has just removed (prctl(2), PR_SET_PDEATHSIG).
///
/// The program can be interrupted, too, where this process can't: a shell that starts it in
/// the background (`fwdlab run ... &` of a script) has it ignore SIGINT and SIGQUIT, which
/// programs would inherit, and who is to print totals when interrupted would never end.
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

/// Lets the program inherit descriptors under their own numbers. Whoever calls keeps them open
/// until it has started; no other program gets them.
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

/// Asks the program of this process number to end (SIGINT), as Ctrl-C does.
///
/// # Errors
/// When there is none.
pub fn interrupt(pid: u32) -> std::io::Result<()> {
    signal(pid, Signal::INT)
}

/// Asks the program of this process number to read its file again (SIGHUP).
///
/// # Errors
/// When there is none.
pub fn signal_hangup(pid: u32) -> std::io::Result<()> {
    signal(pid, Signal::HUP)
}

fn signal(pid: u32, signal: Signal) -> std::io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, signal)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_program_can_be_interrupted_although_we_were_started_in_the_background() {
        let ignored = |dies: bool| {
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
            let told = String::from_utf8(command.output().unwrap().stdout).unwrap();
            u64::from_str_radix(told.trim(), 16).unwrap() & 1 << (libc::SIGINT - 1) != 0
        };
        assert!(ignored(false) && !ignored(true));
    }

    #[test]
    fn only_the_program_that_is_to_have_a_descriptor_has_it() {
        let (ours, _theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let number = ours.as_raw_fd();
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
