//! Sending the lab's own packets, in copy mode.
//!
//! What is sent through a transmit queue of a veth device arrives at the receive queue of
//! the same number at its peer (`veth_xmit` in drivers/net/veth.c): a socket for each
//! queue spreads flows over the peer's receive queues. Nothing faster does: what an XDP
//! program redirects (`veth_xdp_xmit`) goes to the queue of the CPU that sends.

use super::socket::{KICK, Kick, Outlet, bind_patiently, offsets, open};
use super::umem::{FRAMES, Umem};
use crate::NetioError;
use crate::sender::SenderConfig;
use crate::user_sender::{Frames, Transmit, UserSender};
use fwdlab_packet::FrameWriter;
use rustix::io::Errno;
use rustix::net::xdp::{SocketAddrXdpFlags, XdpDesc, XdpDescOptions};
use std::os::fd::OwnedFd;

/// Starts a sending thread that uses an AF_XDP socket on queue 0, or one for each queue
/// that its flows are spread over.
///
/// # Errors
/// When the kernel has no AF_XDP, or refuses a socket.
pub fn sender(config: &SenderConfig) -> Result<UserSender, NetioError> {
    UserSender::new(config, |config, writer| {
        let queues = config.spread.as_ref().map_or(vec![0], |turns| turns.own.clone());
        let most = queues.iter().copied().max().unwrap_or(0);
        let mut lanes: Vec<Option<Lane>> = (0..=most).map(|_| None).collect();
        for queue in queues {
            lanes[usize::from(queue)] = Some(Lane::open(&config.interface, queue, writer)?);
        }
        Ok(XskTransmit { lanes })
    })
}

struct XskTransmit {
    /// By queue.
    lanes: Vec<Option<Lane>>,
}

/// The way through one queue.
struct Lane {
    socket: OwnedFd,
    umem: Umem,
    outlet: Outlet,
    /// Of the longest frame.
    length: usize,
    /// Frames written and not yet handed over.
    filled: usize,
}

impl Lane {
    fn open(interface: &str, queue: u16, writer: &FrameWriter) -> Result<Lane, NetioError> {
        let (socket, mut umem) = open()?;
        let outlet = Outlet::new(&socket, &offsets(&socket)?, Umem::addresses(0, FRAMES))?;
        bind_patiently(&socket, interface, queue.into(), SocketAddrXdpFlags::XDP_COPY)?;
        let length = writer.frame_length();
        for address in Umem::addresses(0, FRAMES) {
            // SAFETY: nothing has been handed to the kernel yet.
            if let Some(frame) = unsafe { umem.bytes_mut(address, length) } {
                writer.prepare(frame);
            }
        }
        Ok(Lane { socket, umem, outlet, length, filled: 0 })
    }

    /// Writes a frame; false when there is none that the kernel doesn't have.
    fn write(&mut self, frames: &mut Frames<'_>) -> bool {
        if self.filled == 0 {
            self.outlet.reap();
        }
        let Some(address) = self.outlet.free.pop() else { return false };
        // SAFETY: the frame was in the list of those that are not the kernel's.
        let frame = unsafe { self.umem.bytes_mut(address, self.length) };
        let length = frame.map_or(0, |frame| frames.write(frame));
        let (len, options) = (length as u32, XdpDescOptions::empty());
        // There is room: every call waits until the kernel has consumed its own.
        self.outlet.tx.push(XdpDesc { addr: address, len, options });
        self.filled += 1;
        true
    }

    /// Hands over what was written and waits until all of it is consumed, so that every
    /// packet counts in the phase that it was stamped with.
    fn flush(&mut self) -> Result<(), NetioError> {
        if self.filled == 0 {
            return Ok(());
        }
        self.filled = 0;
        self.outlet.tx.publish();
        while self.outlet.tx.pending() > 0 {
            if self.outlet.kick(&self.socket)? == Kick::Down {
                return Err(NetioError::system("sending through AF_XDP", Errno::NETDOWN));
            }
            self.outlet.reap();
        }
        Ok(())
    }
}

impl Transmit for XskTransmit {
    /// More in a batch of a queue would only be more system calls.
    fn capacity(&self) -> usize {
        KICK * self.lanes.iter().flatten().count().max(1)
    }

    fn transmit(&mut self, count: usize, frames: &mut Frames<'_>) -> Result<usize, NetioError> {
        let mut taken = 0;
        while taken < count {
            let queue = usize::from(frames.queue());
            let Some(Some(lane)) = self.lanes.get_mut(queue) else { break };
            if !lane.write(frames) {
                break;
            }
            taken += 1;
            if lane.filled == KICK {
                lane.flush()?;
            }
        }
        self.lanes.iter_mut().flatten().try_for_each(Lane::flush)?;
        Ok(taken)
    }
}
