//! A port that outlives its interface.
//!
//! An interface may be deleted and created again, as with containers and tunnels. By then
//! a router has no rights left to open sockets or to load programs, but it may bind open sockets to
//! the new interface. So each port keeps a packet socket in reserve, and AF_XDP sockets if it began
//! with one ([`XskReserve`]). Once an interface of its name exists again, the port continues with
//! AF_XDP, or with the packet socket if that fails.

use super::port::{PacketConfig, PacketPort, Share};
use super::socket::{enlarge_buffers, new_socket, receive_all};
use crate::frame::Batch;
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use crate::xdp::interface_index;
use crate::xsk::XskReserve;
use crate::{NetioError, clock};
use rustix::net::netdevice::{index_to_name, name_to_index};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Interval between two checks for the interface.
const LOOK: Duration = Duration::from_millis(100);

/// Sockets with which an interface has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReturnKind {
    /// AF_XDP.
    Xsk,
    /// AF_PACKET, as before.
    Packet,
    /// AF_PACKET in place of AF_XDP, for this reason.
    InsteadOfXsk(String),
}

/// Number of times that a port's interface disappeared and returned.
#[derive(Debug, Default)]
pub struct Presence {
    losses: AtomicU64,
    returns: AtomicU64,
    last_return: Mutex<Option<ReturnKind>>,
}

impl Presence {
    /// Returns the number of disappearances.
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Returns the number of returns.
    pub fn returns(&self) -> u64 {
        self.returns.load(Ordering::Acquire)
    }

    /// Returns the sockets of the last return; `None` if there was no return.
    pub fn last_return(&self) -> Option<ReturnKind> {
        self.last_return.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add_return(&self, kind: ReturnKind) {
        *self.last_return.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind);
        self.returns.fetch_add(1, Ordering::Release);
    }
}

/// The reserve socket and its configuration.
#[derive(Debug)]
pub struct Reserve {
    socket: OwnedFd,
    index: u32,
    config: PacketConfig,
    mtu: u16,
    share: Option<Share>,
    completed: Option<Arc<AtomicU64>>,
    /// Reserve for AF_XDP, and this port's queue.
    xsk: Option<(Arc<XskReserve>, u32)>,
}

impl Reserve {
    /// Opens the reserve for frames with IP packets of up to `mtu` bytes. Checksums are completed
    /// if `completed` counts them. With `share`, each of several workers gets some flows.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, or if the interface is currently missing.
    pub fn open(
        config: &PacketConfig,
        mtu: u16,
        share: Option<Share>,
        completed: Option<Arc<AtomicU64>>,
    ) -> Result<Reserve, NetioError> {
        let (socket, index) = (new_socket()?, interface_index(&config.interface)?);
        enlarge_buffers(&socket);
        // Membership in a group would keep the socket on the deleted interface.
        let config = PacketConfig { fanout: None, ..config.clone() };
        Ok(Reserve { socket, index, config, mtu, share, completed, xsk: None })
    }

    /// Prefers AF_XDP: this queue of `reserve`.
    pub fn with_xsk(self, reserve: Arc<XskReserve>, queue: u32) -> Reserve {
        Reserve { xsk: Some((reserve, queue)), ..self }
    }

    /// Opens a port on the interface that currently has the name.
    fn port(&mut self) -> Result<(Box<dyn Port>, ReturnKind), NetioError> {
        let gone = |e| NetioError::system(format!("looking for {}", self.config.interface), e);
        let index = name_to_index(&self.socket, &self.config.interface).map_err(gone)?;
        // Other stations that know the router's previous MAC send to it.
        receive_all(&self.socket, index)
            .map_err(|e| NetioError::system(format!("groups of {}", self.config.interface), e))?;
        let kind = match self.xsk.as_ref().map(|(reserve, queue)| reserve.port(index, *queue)) {
            Some(Ok(port)) => {
                self.index = index;
                return Ok((Box::new(port), ReturnKind::Xsk));
            }
            Some(Err(why)) => ReturnKind::InsteadOfXsk(why),
            None => ReturnKind::Packet,
        };
        // A duplicate of this socket; the original outlives the port.
        let socket = self.socket.try_clone();
        let socket = socket.map_err(|e| NetioError::system("copying a descriptor", e))?;
        let port = PacketPort::again(socket, &self.config, index, self.mtu, self.share)?;
        self.index = index;
        let port = match &self.completed {
            Some(completed) => port.completing(Arc::clone(completed)),
            None => port,
        };
        Ok((Box::new(port), kind))
    }
}

/// A port that outlives its interface.
pub struct LastingPort {
    port: Option<Box<dyn Port>>,
    reserve: Reserve,
    presence: Option<Arc<Presence>>,
    /// Time of the next check for the interface.
    look_ns: u64,
    /// Frames missed by previous ports.
    missed: u64,
}

impl LastingPort {
    /// Wraps a port; `presence` records the state of its interface.
    pub fn new(
        port: Box<dyn Port>,
        reserve: Reserve,
        presence: Option<Arc<Presence>>,
    ) -> LastingPort {
        LastingPort { port: Some(port), reserve, presence, look_ns: 0, missed: 0 }
    }

    /// Handles an error: returns it unless the cause is a missing interface.
    #[cold]
    fn outlive(&mut self, error: NetioError) -> Result<(), NetioError> {
        if index_to_name(&self.reserve.socket, self.reserve.index).is_ok() {
            return Err(error);
        }
        if let Some(mut port) = self.port.take() {
            self.missed += port.missed();
        }
        if let Some(presence) = &self.presence {
            presence.losses.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    #[cold]
    fn look(&mut self) {
        let now = clock::monotonic_ns();
        if now < self.look_ns {
            return;
        }
        self.look_ns = now.saturating_add(LOOK.as_nanos() as u64);
        // If anything is not ready yet, the next check tries again.
        let Ok((port, kind)) = self.reserve.port() else { return };
        self.port = Some(port);
        if let Some(presence) = &self.presence {
            presence.add_return(kind);
        }
    }
}

impl Port for LastingPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        let Some(port) = &mut self.port else {
            batch.clear();
            self.look();
            return Ok(0);
        };
        match port.receive(batch) {
            Err(error) => {
                batch.clear();
                self.outlive(error).map(|()| 0)
            }
            received => received,
        }
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        let number = Some(self.reserve.config.number);
        let count = |batch: &Batch| {
            batch.frames().iter().filter(|frame| frame.egress() == number).count() as u64
        };
        match self.port.as_mut().map(|port| port.send(batch)) {
            Some(Err(error)) => self.outlive(error)?,
            Some(sent) => return sent,
            None => {}
        }
        Ok(Sent { sent: 0, lost: count(batch) })
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        match self.port.as_mut().map(|port| port.wake_by(wakers)) {
            Some(Err(error)) => self.outlive(error)?,
            Some(Ok(())) => return Ok(()),
            None => {}
        }
        wakers.within(LOOK);
        Ok(())
    }

    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        match self.port.as_mut().map(|port| port.woken(woken)) {
            Some(Err(error)) => self.outlive(error),
            _ => Ok(()),
        }
    }

    fn missed(&mut self) -> u64 {
        self.missed + self.port.as_mut().map_or(0, |port| port.missed())
    }

    fn is_at_end(&self) -> bool {
        self.port.as_ref().is_some_and(|port| port.is_at_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::{socket_recv_buffer_size, socket_send_buffer_size};

    #[test]
    fn reserve_opens_with_large_buffers() {
        let config = PacketConfig { interface: "lo".into(), number: 0, fanout: None };
        let Ok(ordinary) = new_socket() else {
            return fwdlab_testdata::skip("packet sockets can't be opened here (root)");
        };
        let reserve = Reserve::open(&config, 1500, None, None).expect("a reserve");
        let size = |socket| (socket_recv_buffer_size(socket), socket_send_buffer_size(socket));
        let ((receive, send), (more_receive, more_send)) = (size(&ordinary), size(&reserve.socket));
        assert!(more_receive.expect("a size") > receive.expect("a size"));
        assert!(more_send.expect("a size") > send.expect("a size"));
    }
}
