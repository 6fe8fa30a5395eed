//! Sends the lab's own packets.

use super::socket::{bypass_queueing, open_socket};
use crate::NetioError;
use crate::sender::SenderConfig;
use crate::user_sender::{Frames, Transmit, UserSender};
use fwdlab_packet::FrameWriter;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};

/// Starts a sending thread that uses `sendmmsg` and bypasses the queueing discipline.
///
/// # Errors
/// Without CAP_NET_RAW, or if the interface is missing.
pub fn sender(config: &SenderConfig) -> Result<UserSender, NetioError> {
    UserSender::new(config, |config, writer| PacketTransmit::open(&config.interface, writer, 64))
}

struct PacketTransmit {
    socket: OwnedFd,
    frames: Vec<Vec<u8>>,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

impl PacketTransmit {
    fn open(
        interface: &str,
        writer: &FrameWriter,
        batch: usize,
    ) -> Result<PacketTransmit, NetioError> {
        let socket = open_socket(interface)?;
        bypass_queueing(&socket)?;
        let mut frames = vec![vec![0; writer.frame_length()]; batch];
        frames.iter_mut().for_each(|frame| writer.prepare(frame));
        let mut vectors: Vec<libc::iovec> = frames
            .iter_mut()
            .map(|f| libc::iovec { iov_base: f.as_mut_ptr().cast(), iov_len: f.len() })
            .collect();
        let messages = vectors
            .iter_mut()
            .map(|vector| {
                // SAFETY: an all-zero msghdr is valid (null pointers, zero lengths).
                let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
                message.msg_hdr.msg_iov = vector;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        Ok(PacketTransmit { socket, frames, vectors, messages })
    }
}

impl Transmit for PacketTransmit {
    fn capacity(&self) -> usize {
        self.frames.len()
    }

    fn transmit(&mut self, count: usize, next: &mut Frames<'_>) -> Result<usize, NetioError> {
        debug_assert_eq!(self.vectors.len(), self.messages.len());
        for (frame, vector) in self.frames[..count].iter_mut().zip(&mut self.vectors) {
            vector.iov_len = next.write(frame);
        }
        // SAFETY: the messages point to vectors and frames that this struct owns
        // and never resizes; `count` is at most their number.
        let taken = unsafe {
            libc::sendmmsg(self.socket.as_raw_fd(), self.messages.as_mut_ptr(), count as u32, 0)
        };
        if taken >= 0 {
            return Ok(taken as usize);
        }
        match io::Error::last_os_error() {
            // The queue is full, or a signal arrived: nothing was sent, try again.
            e if matches!(e.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR)) => {
                Ok(0)
            }
            error => Err(NetioError::system("sending through a packet socket", error)),
        }
    }
}
