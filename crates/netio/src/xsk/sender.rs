//! Sends the lab's own packets in copy mode.
//!
//! A frame sent through a transmit queue of a veth device arrives at the receive queue of the same
//! number at its peer (`veth_xmit` in drivers/net/veth.c): one socket per queue spreads flows over
//! the peer's receive queues. No faster interface does this: frames that an XDP program redirects
//! (`veth_xdp_xmit`) go to the queue of the sending CPU.

use super::socket::{KICK, Kick, Outlet, bind_patiently, offsets, open};
use super::umem::{FRAMES, Umem};
use crate::NetioError;
use crate::sender::SenderConfig;
use crate::user_sender::{Frames, Transmit, UserSender};
use crate::xdp::interface_index;
use fwdlab_packet::FrameWriter;
use rustix::io::Errno;
use rustix::net::xdp::{SocketAddrXdpFlags, XdpDesc, XdpDescOptions};
use std::os::fd::OwnedFd;

/// Starts a sending thread with an AF_XDP socket on queue 0, or one for each queue that its flows
/// are spread over.
///
/// # Errors
/// If the kernel has no AF_XDP, or refuses a socket.
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
    /// Lanes by queue; `None` for unused queues.
    lanes: Vec<Option<Lane>>,
}

/// Socket and memory of one queue.
struct Lane {
    socket: OwnedFd,
    umem: Umem,
    outlet: Outlet,
    /// Length of the longest frame.
    length: usize,
    /// Frames written and not yet handed over.
    filled: usize,
}

impl Lane {
    fn open(interface: &str, queue: u16, writer: &FrameWriter) -> Result<Lane, NetioError> {
        let (socket, mut umem) = open()?;
        let outlet = Outlet::new(&socket, &offsets(&socket)?, Umem::addresses(0, FRAMES))?;
        let place = (interface, interface_index(interface)?);
        bind_patiently(&socket, place, queue.into(), SocketAddrXdpFlags::XDP_COPY)?;
        let length = writer.frame_length();
        for address in Umem::addresses(0, FRAMES) {
            // SAFETY: nothing has been handed to the kernel yet.
            if let Some(frame) = unsafe { umem.bytes_mut(address, length) } {
                writer.prepare(frame);
            }
        }
        Ok(Lane { socket, umem, outlet, length, filled: 0 })
    }

    /// Writes a frame; false if the kernel has all of them.
    fn write(&mut self, frames: &mut Frames<'_>) -> bool {
        if self.filled == 0 {
            self.outlet.reap();
        }
        let Some(address) = self.outlet.free.pop() else { return false };
        // SAFETY: the frame was in the list of frames not owned by the kernel.
        let frame = unsafe { self.umem.bytes_mut(address, self.length) };
        let length = frame.map_or(0, |frame| frames.write(frame));
        let (len, options) = (length as u32, XdpDescOptions::empty());
        // The ring has room: every call waits until the kernel has consumed its frames.
        self.outlet.tx.push(XdpDesc { addr: address, len, options });
        self.filled += 1;
        true
    }

    /// Hands over the written frames and waits until all are consumed, so that every packet counts
    /// in the phase of its stamp.
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
    /// A larger batch per queue would only cause more system calls.
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
