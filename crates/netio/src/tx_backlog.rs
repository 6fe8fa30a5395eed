//! Transmit backlog of a socket: bytes its peer has not yet received.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Returns the number of bytes sent on a socket and not yet received (`SIOCOUTQ`, unix(7) and
/// tcp(7)). For Unix sockets it includes the kernel's overhead of each message; an empty backlog is
/// 0.
///
/// # Errors
/// If the descriptor is not a socket with such a counter.
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
    fn received_bytes_leave_backlog() {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        assert_eq!(bytes(&sender).unwrap(), 0);
        sender.send(&[0; 60]).unwrap();
        assert!(bytes(&sender).unwrap() >= 60);
        receiver.recv(&mut [0; 100]).unwrap();
        assert_eq!(bytes(&sender).unwrap(), 0);
    }
}
