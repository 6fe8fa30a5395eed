//! A port that outlives its interface.
//!
//! An interface may be deleted and made again, as those of containers and tunnels are. A router
//! has no rights any more by then to open sockets or to load programs; but one that is open
//! may be bound to what is there now. So each port has a packet socket in reserve, and goes on
//! with it, whatever it was before, once there is an interface of its name again.

use super::port::{PacketConfig, PacketPort, Share};
use super::socket::new_socket;
use crate::frame::Batch;
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use crate::xdp::interface_index;
use crate::{NetioError, clock};
use rustix::net::netdevice::{index_to_name, name_to_index};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time between two looks whether the interface is there again.
const LOOK: Duration = Duration::from_millis(100);

/// How often a port's interface has gone, and come back.
#[derive(Debug, Default)]
pub struct Presence {
    losses: AtomicU64,
    returns: AtomicU64,
}

impl Presence {
    /// Times that it went.
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Times that it came back.
    pub fn returns(&self) -> u64 {
        self.returns.load(Ordering::Acquire)
    }
}

/// The socket in reserve, and how it is to be used.
#[derive(Debug)]
pub struct Reserve {
    socket: OwnedFd,
    index: u32,
    config: PacketConfig,
    mtu: u16,
    share: Option<Share>,
    completed: Option<Arc<AtomicU64>>,
}

impl Reserve {
    /// Opens it, for frames with IP packets of up to `mtu` bytes, and checksums that are
    /// completed if they are counted in `completed`. Of several workers, with `share`, each
    /// gets some flows.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, or when the interface is missing now.
    pub fn open(
        config: &PacketConfig,
        mtu: u16,
        share: Option<Share>,
        completed: Option<Arc<AtomicU64>>,
    ) -> Result<Reserve, NetioError> {
        let (socket, index) = (new_socket()?, interface_index(&config.interface)?);
        // A group would hold on to the interface that is gone.
        let config = PacketConfig { fanout: None, ..config.clone() };
        Ok(Reserve { socket, index, config, mtu, share, completed })
    }

    /// A port on the interface that has the name now.
    fn port(&mut self) -> Result<PacketPort, NetioError> {
        let gone = |e| NetioError::system(format!("looking for {}", self.config.interface), e);
        let index = name_to_index(&self.socket, &self.config.interface).map_err(gone)?;
        // The same socket as this one, which outlives the port.
        let socket = self.socket.try_clone();
        let socket = socket.map_err(|e| NetioError::system("copying a descriptor", e))?;
        let port = PacketPort::again(socket, &self.config, index, self.mtu, self.share)?;
        self.index = index;
        Ok(match &self.completed {
            Some(completed) => port.completing(Arc::clone(completed)),
            None => port,
        })
    }
}

/// A port that outlives its interface.
pub struct LastingPort {
    port: Option<Box<dyn Port>>,
    reserve: Reserve,
    presence: Option<Arc<Presence>>,
    /// When to look for the interface next.
    look_ns: u64,
    /// By ports that are gone.
    missed: u64,
}

impl LastingPort {
    /// Around a port; what becomes of its interface is told by `presence`.
    pub fn new(
        port: Box<dyn Port>,
        reserve: Reserve,
        presence: Option<Arc<Presence>>,
    ) -> LastingPort {
        LastingPort { port: Some(port), reserve, presence, look_ns: 0, missed: 0 }
    }

    /// After an error: nothing, if that is because the interface is gone.
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
        // Whatever it is that isn't ready yet may be so next time.
        let Ok(port) = self.reserve.port() else { return };
        self.port = Some(Box::new(port));
        if let Some(presence) = &self.presence {
            presence.returns.fetch_add(1, Ordering::Release);
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
