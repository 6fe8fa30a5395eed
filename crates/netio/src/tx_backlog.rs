//! What a socket's other end has not yet taken.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Bytes that were sent on a socket and that nobody has received yet (`SIOCOUTQ`, unix(7)
/// and tcp(7)). For Unix sockets the kernel's own overhead of each message is counted too;
/// 0 is 0.
///
/// # Errors
/// When it is no socket that can tell.
pub fn bytes(socket: impl AsFd) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ (the number of SIOCOUTQ) writes one int, which outlives the call; the
    // descriptor is open as long as it is borrowed.
    let status = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    match status {
        0 => Ok(bytes.try_into().unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn what_was_received_is_no_longer_unsent() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        assert_eq!(bytes(&ours).unwrap(), 0);
        ours.send(&[0; 60]).unwrap();
        assert!(bytes(&ours).unwrap() >= 60);
        theirs.recv(&mut [0; 100]).unwrap();
        assert_eq!(bytes(&ours).unwrap(), 0);
    }
}
