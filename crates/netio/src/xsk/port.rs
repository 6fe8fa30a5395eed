//! A router's port on one queue of an interface.

use super::program::XskProgram;
use super::ring::{Consumer, Producer};
use super::socket::{KICK, Kick, Outlet, bare, bind_patiently, failed, offsets, prepare};
use super::umem::{FRAMES, Umem};
use crate::NetioError;
use crate::frame::{BATCH, Batch, CAPACITY};
use crate::poll::{Wakers, Woken, clear_error};
use crate::port::{Port, Sent};
use crate::xdp::XdpMode;
use rustix::io::Errno;
use rustix::net::sockopt::{set_xdp_rx_ring_size, xdp_options, xdp_statistics};
use rustix::net::xdp::{
    SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions,
    XdpOptionsFlags,
};
use rustix::net::{RecvFlags, recv};
use std::os::fd::{AsFd, OwnedFd};

/// Maximum number of kicks before a frame without room is lost: twice the number that one batch
/// takes.
const KICKS: usize = 2 * BATCH / KICK;

/// Bytes of an Ethernet header. The kernel skips the descriptor of an empty frame, and its memory
/// would never be returned.
const HEADER_BYTES: usize = 14;

/// A port on one queue.
#[derive(Clone, Debug)]
pub struct XskConfig {
    /// Queue of the interface, from 0.
    pub queue: u32,
    /// Number of the port.
    pub number: u8,
    /// Zero copy or copy mode.
    pub bind: Bind,
}

/// Transfer of frames between the device and the UMEM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bind {
    /// Zero copy if the driver supports it, else copy mode.
    #[default]
    Auto,
    /// Zero copy; fails if the driver does not support it.
    ZeroCopy,
    /// Copy mode: the kernel copies.
    Copy,
}

/// A port on one queue of an interface.
///
/// Half of its memory receives and half sends: a port that cannot send still receives. Received
/// frames are copied and their memory returned immediately, so no port ever waits for another.
///
/// Sending hands frames over; the interface counts those that the device then drops (`tx_dropped`).
#[derive(Debug)]
pub struct XskPort {
    // Before the program: closing a socket removes it from the map.
    socket: OwnedFd,
    number: u8,
    index: u32,
    umem: Umem,
    rx: Consumer<XdpDesc>,
    fill: Producer<u64>,
    outlet: Outlet,
    too_long: u64,
    _program: XskProgram,
}

impl XskPort {
    /// Opens the port on the interface of `program`, in the calling thread's namespace, which must
    /// be the interface's.
    ///
    /// # Errors
    /// If the kernel refuses socket, memory or queue, or if the queue already has a port.
    pub fn open(config: &XskConfig, program: &XskProgram) -> Result<XskPort, NetioError> {
        XskPort::on(bare()?, config, program)
    }

    /// Opens the port with a bare socket.
    pub(super) fn on(
        socket: OwnedFd,
        config: &XskConfig,
        program: &XskProgram,
    ) -> Result<XskPort, NetioError> {
        let umem = prepare(&socket)?;
        set_xdp_rx_ring_size(&socket, super::ring::RING)
            .map_err(failed("an AF_XDP receive ring"))?;
        let offsets = offsets(&socket)?;
        let rx = Consumer::map(&socket, offsets.rx, XDP_PGOFF_RX_RING)?;
        let mut fill = Producer::map(&socket, offsets.fr, XDP_UMEM_PGOFF_FILL_RING)?;
        for address in Umem::addresses(0, FRAMES / 2) {
            fill.push(address);
        }
        fill.publish();
        let outlet = Outlet::new(&socket, &offsets, Umem::addresses(FRAMES / 2, FRAMES))?;
        let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        flags |= match (config.bind, program.mode()) {
            // The kernel itself tries zero copy first and copies if the driver refuses.
            (Bind::Auto, XdpMode::Driver) => SocketAddrXdpFlags::empty(),
            (Bind::ZeroCopy, _) => SocketAddrXdpFlags::XDP_ZEROCOPY,
            // Behind a generic hook, frames have already been copied.
            (Bind::Auto, XdpMode::Generic) | (Bind::Copy, _) => SocketAddrXdpFlags::XDP_COPY,
        };
        let index = program.index();
        bind_patiently(&socket, (program.interface(), index), config.queue, flags)?;
        program.serve(config.queue, &socket)?;
        Ok(XskPort {
            socket,
            number: config.number,
            index,
            umem,
            rx,
            fill,
            outlet,
            too_long: 0,
            _program: program.clone(),
        })
    }

    /// True if the device accesses the frames' memory itself (`XDP_OPTIONS`).
    ///
    /// # Errors
    /// If the kernel lacks the option, before Linux 5.3.
    pub fn is_zero_copy(&self) -> Result<bool, NetioError> {
        let options = xdp_options(&self.socket).map_err(failed("asking for zero copy"))?;
        Ok(options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    /// Takes back sent frames, and notifies the kernel of unsent ones if it needs a wake-up.
    fn push_on(&mut self) -> Result<(), NetioError> {
        if self.outlet.tx.pending() > 0 && self.outlet.tx.needs_wakeup() {
            self.outlet.kick(&self.socket)?;
        }
        self.outlet.reap();
        Ok(())
    }

    /// Kicks the kernel until it has consumed all frames or is busy.
    fn drive(&mut self) -> Result<(), NetioError> {
        self.outlet.tx.publish();
        for _ in 0..KICKS {
            if self.outlet.tx.pending() == 0 || !self.outlet.tx.needs_wakeup() {
                break;
            }
            if self.outlet.kick(&self.socket)? != Kick::Heard {
                break;
            }
        }
        self.outlet.reap();
        Ok(())
    }

    /// Notifies the kernel that there is memory to receive into. Only this call reports that the
    /// interface of the socket is gone.
    fn wake_receiver(&self) -> Result<(), NetioError> {
        match recv(&self.socket, &mut [0; 0], RecvFlags::DONTWAIT) {
            Ok(_)
            | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR | Errno::NETDOWN) => {
                Ok(())
            }
            Err(e) => Err(NetioError::system("receiving through AF_XDP", e)),
        }
    }
}

impl Port for XskPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        let (frames, mut count) = (batch.fill(BATCH), 0);
        while count < frames.len()
            && let Some(descriptor) = self.rx.pop()
        {
            // SAFETY: the kernel has handed the frame over and gets it back below.
            let bytes = unsafe { self.umem.bytes(descriptor.addr, descriptor.len as usize) };
            let bytes = bytes.filter(|bytes| bytes.len() <= CAPACITY);
            match bytes.map(|bytes| frames[count].receive(self.number, bytes)) {
                Some(Ok(())) => count += 1,
                _ => self.too_long += 1,
            }
            // The ring has room for all frames.
            self.fill.push(Umem::begin(descriptor.addr));
        }
        batch.fill(count);
        self.rx.release();
        self.fill.publish();
        if self.fill.needs_wakeup() {
            self.wake_receiver()?;
        }
        if count == 0 {
            self.push_on()?;
        }
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        let (mut sent, mut full, number) = (Sent::default(), false, Some(self.number));
        self.outlet.reap();
        for frame in batch.frames().iter().filter(|frame| frame.egress() == number) {
            // Frames over several buffers are not supported.
            if frame.len() < HEADER_BYTES || frame.is_long() {
                sent.lost += 1;
                continue;
            }
            if self.outlet.free.is_empty() && !full {
                // Once per batch: without room now, there is none for the next frame either.
                self.drive()?;
                full = self.outlet.free.is_empty();
            }
            let Some(address) = self.outlet.free.pop() else {
                sent.lost += 1;
                continue;
            };
            let len = frame.len();
            // SAFETY: the frame's memory was in the list of frames not owned by the kernel.
            if let Some(buffer) = unsafe { self.umem.bytes_mut(address, len) } {
                buffer.copy_from_slice(frame.bytes());
            }
            let options = XdpDescOptions::empty();
            // The ring has room for all frames.
            self.outlet.tx.push(XdpDesc { addr: address, len: len as u32, options });
            sent.sent += 1;
        }
        if sent.sent > 0 {
            self.drive()?;
        }
        Ok(sent)
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        self.push_on()?;
        match self.rx.is_empty() {
            true => wakers.add(self.socket.as_fd()),
            false => wakers.ready(),
        }
        Ok(())
    }

    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        match woken {
            // Receiving wakes the kernel itself.
            Woken::Here | Woken::Elsewhere => Ok(()),
            Woken::InVain => self.wake_receiver(),
            Woken::Failing => {
                clear_error(&self.socket, self.index)?;
                self.wake_receiver()
            }
        }
    }

    /// Returns the number of frames without memory or a slot in the ring, and of frames longer than
    /// a buffer. The interface counts frames that the device dropped earlier.
    fn missed(&mut self) -> u64 {
        // A frame without memory already counts as dropped: the count of empty fill rings would
        // count it twice.
        let kernel = xdp_statistics(&self.socket)
            .map_or(0, |counts| counts.rx_dropped + counts.rx_ring_full.unwrap_or(0));
        kernel + self.too_long
    }
}
