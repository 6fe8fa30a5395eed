//! Sends the frames of a port.

use super::offload::HEADER_BYTES;
use crate::NetioError;
use crate::frame::{BATCH, Frame};
use crate::port::Sent;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The offload header of a frame that leaves nothing to the device.
static NOTHING: [u8; HEADER_BYTES] = [0; HEADER_BYTES];

/// Arguments of `sendmmsg`, allocated once.
#[derive(Debug)]
pub(super) struct Outbox {
    /// Two for each frame: offload header and frame.
    vectors: Vec<[libc::iovec; 2]>,
    messages: Vec<libc::mmsghdr>,
    /// Copies of frames that extend beyond their buffers.
    long: Vec<Vec<u8>>,
}

// SAFETY: the pointers inside are rewritten for every call and not used after it.
unsafe impl Send for Outbox {}

impl Outbox {
    pub(super) fn new() -> Outbox {
        let (vectors, messages) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        Outbox { vectors, messages, long: Vec::new() }
    }

    /// Sends the frames whose egress is port `number`.
    pub(super) fn send(
        &mut self,
        socket: &OwnedFd,
        number: u8,
        frames: &[Frame],
    ) -> Result<Sent, NetioError> {
        self.vectors.clear();
        self.messages.clear();
        self.long.clear();
        for frame in frames.iter().filter(|frame| frame.egress() == Some(number)) {
            let bytes = match frame.is_long() {
                false => frame.bytes(),
                true => {
                    self.long.push(frame.whole().into_owned());
                    // The bytes do not move when more copies follow.
                    self.long.last().map_or(&[][..], Vec::as_slice)
                }
            };
            // The kernel only reads the frames.
            let (iov_base, iov_len) = (bytes.as_ptr().cast_mut().cast(), bytes.len());
            let nothing = libc::iovec {
                iov_base: NOTHING.as_ptr().cast_mut().cast(),
                iov_len: NOTHING.len(),
            };
            self.vectors.push([nothing, libc::iovec { iov_base, iov_len }]);
        }
        // No vector moves from now on.
        self.messages.extend(self.vectors.iter_mut().map(|vectors| {
            // SAFETY: an all-zero mmsghdr is valid (null pointers, zero lengths).
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = vectors.as_mut_ptr();
            message.msg_hdr.msg_iovlen = vectors.len() as _;
            message
        }));
        let mut sent = Sent::default();
        let mut rest = &mut self.messages[..];
        while !rest.is_empty() {
            // SAFETY: the messages point to vectors and frames (or copies in `long`) that outlive
            // the call, and their number is given.
            let taken = unsafe {
                let (first, count) = (rest.as_mut_ptr(), rest.len() as u32);
                libc::sendmmsg(socket.as_raw_fd(), first, count, libc::MSG_DONTWAIT)
            };
            let done = match usize::try_from(taken) {
                Ok(taken) => {
                    sent.sent += taken as u64;
                    taken
                }
                Err(_) => {
                    let lost = lost_by(io::Error::last_os_error(), rest.len())?;
                    sent.lost += lost as u64;
                    lost
                }
            };
            rest = &mut rest[done..];
        }
        Ok(sent)
    }
}

/// Returns the number of unsent frames that an error loses.
fn lost_by(error: io::Error, frames: usize) -> Result<usize, NetioError> {
    match error.raw_os_error() {
        Some(libc::EINTR) => Ok(0),
        // The queue is full: all remaining frames are lost.
        Some(libc::EAGAIN) => Ok(frames),
        // The driver had no room for this frame, or the frame cannot be sent.
        Some(libc::ENOBUFS | libc::EMSGSIZE | libc::EINVAL | libc::ENETDOWN) => Ok(1),
        _ => Err(NetioError::system("sending through a packet socket", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_queue_loses_all_and_refused_frame_only_itself() {
        let lost = |code| lost_by(io::Error::from_raw_os_error(code), 7);
        assert!(matches!(lost(libc::EAGAIN), Ok(7)));
        assert!(matches!(lost(libc::EMSGSIZE), Ok(1)));
        assert!(matches!(lost(libc::EINTR), Ok(0)));
        assert!(lost(libc::ENXIO).is_err());
    }
}
