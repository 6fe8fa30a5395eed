//! Waiting for a socket with poll(2).

use crate::PortError;
use rustix::io::Errno;
use rustix::net::netdevice::index_to_name;
use rustix::net::sockopt::socket_error;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// Waits until `socket`, which is bound to interface number `index`, has something to
/// read, `timeout` at most. A signal or an interface that goes down end it early.
///
/// # Errors
/// When the interface is gone for good.
pub(crate) fn wait_readable(
    socket: &OwnedFd,
    index: u32,
    timeout: Duration,
) -> Result<(), PortError> {
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().min(3600) as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
    };
    // SAFETY: one pollfd, as said, and a whole timespec; no signal mask.
    let ready = unsafe { libc::ppoll(&mut poll, 1, &timeout, std::ptr::null()) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(PortError::system("waiting for frames (ppoll)", error));
        }
    } else if poll.revents & (libc::POLLERR | libc::POLLHUP) != 0 {
        // Asking clears it, so that the next poll waits again.
        let what = || format!("waiting for frames at interface {index}");
        let error = socket_error(socket).map_err(|e| PortError::system(what(), e))?;
        match error {
            Err(error) if error != Errno::NETDOWN => {
                return Err(PortError::system(what(), error));
            }
            // Down may be up again later, unless the interface does not exist any more.
            Err(_) => {
                index_to_name(socket, index).map(drop).map_err(|e| PortError::system(what(), e))?
            }
            Ok(()) => {}
        }
    }
    Ok(())
}
