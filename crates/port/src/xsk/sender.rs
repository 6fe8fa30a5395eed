//! Sending the lab's own packets, in copy mode.

use super::socket::{KICK, Kick, Outlet, bind_patiently, offsets, open};
use super::umem::{FRAMES, Umem};
use crate::PortError;
use crate::sender::SenderConfig;
use crate::user_sender::{Transmit, UserSender};
use fwdlab_packet::FrameWriter;
use rustix::io::Errno;
use rustix::net::xdp::{SocketAddrXdpFlags, XdpDesc, XdpDescOptions};
use std::os::fd::OwnedFd;

/// Starts a sending thread that uses an AF_XDP socket on queue 0.
///
/// # Errors
/// When the kernel has no AF_XDP, or refuses the socket.
pub fn sender(config: &SenderConfig) -> Result<UserSender, PortError> {
    UserSender::new(config, |config, writer| XskTransmit::open(&config.interface, writer))
}

struct XskTransmit {
    socket: OwnedFd,
    umem: Umem,
    outlet: Outlet,
    length: usize,
}

impl XskTransmit {
    fn open(interface: &str, writer: &FrameWriter) -> Result<XskTransmit, PortError> {
        let (socket, mut umem) = open()?;
        let outlet = Outlet::new(&socket, &offsets(&socket)?, Umem::addresses(0, FRAMES))?;
        bind_patiently(&socket, interface, 0, SocketAddrXdpFlags::XDP_COPY)?;
        let length = writer.frame_length();
        for address in Umem::addresses(0, FRAMES) {
            // SAFETY: nothing has been handed to the kernel yet.
            if let Some(frame) = unsafe { umem.bytes_mut(address, length) } {
                writer.prepare(frame);
            }
        }
        Ok(XskTransmit { socket, umem, outlet, length })
    }
}

impl Transmit for XskTransmit {
    /// More in a batch would only be more system calls.
    fn capacity(&self) -> usize {
        KICK
    }

    fn transmit(
        &mut self,
        count: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<usize, PortError> {
        self.outlet.reap();
        let mut taken = 0;
        while taken < count {
            let Some(address) = self.outlet.free.pop() else { break };
            // SAFETY: the frame was in the list of those that are not the kernel's.
            if let Some(frame) = unsafe { self.umem.bytes_mut(address, self.length) } {
                fill(frame);
            }
            let (len, options) = (self.length as u32, XdpDescOptions::empty());
            // There is room: every call waits until the kernel has consumed its own.
            self.outlet.tx.push(XdpDesc { addr: address, len, options });
            taken += 1;
        }
        self.outlet.tx.publish();
        // Until all are consumed, so that every packet counts in the phase that
        // it was stamped with.
        while self.outlet.tx.pending() > 0 {
            if self.outlet.kick(&self.socket)? == Kick::Down {
                return Err(PortError::system("sending through AF_XDP", Errno::NETDOWN));
            }
            self.outlet.reap();
        }
        Ok(taken)
    }
}
