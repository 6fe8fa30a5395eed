//! Sending through AF_XDP in copy mode: works with any interface and, because
//! it loads no program, also without the right to load BPF.

use crate::sender::SenderConfig;
use crate::user_sender::{Transmit, UserSender};
use crate::xdp::interface_index;
use crate::{PortError, clock};
use fwdlab_packet::FrameWriter;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::net::sockopt::{
    set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size, set_xdp_umem_fill_ring_size,
    set_xdp_umem_reg, xdp_mmap_offsets,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XdpDesc,
    XdpDescOptions, XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SendFlags, SocketType, bind, send, socket};
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const FRAMES: u32 = 4096;
const FRAME_BYTES: u32 = 2048;
const RING: u32 = 2048;
/// Descriptors that one system call takes at most in copy mode (the kernel's
/// TX_BATCH_SIZE): more in a batch would only be more calls.
const BATCH: usize = 32;

/// Starts a sending thread that uses an AF_XDP socket on queue 0.
///
/// # Errors
/// When the kernel has no AF_XDP, or refuses the socket.
pub fn sender(config: &SenderConfig) -> Result<UserSender, PortError> {
    UserSender::new(config, |config, writer| XskTransmit::open(&config.interface, writer))
}

/// A ring shared with the kernel: one side produces, the other consumes.
struct Ring<T> {
    base: *mut u8,
    bytes: usize,
    offsets: XdpRingOffset,
    kind: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(socket: &OwnedFd, offsets: XdpRingOffset, at: u64) -> Result<Ring<T>, PortError> {
        let bytes = offsets.desc as usize + RING as usize * size_of::<T>();
        let (access, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping where the kernel chooses, of the size that the
        // kernel's own offsets give for RING descriptors.
        let base = unsafe { mmap(null_mut(), bytes, access, flags, socket, at) }
            .map_err(|e| PortError::system("mapping an AF_XDP ring", e))?;
        Ok(Ring { base: base.cast(), bytes, offsets, kind: std::marker::PhantomData })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: the kernel's offset of a 4-byte aligned u32 inside the mapping,
        // which lives as long as `self`; both sides access it atomically.
        unsafe { &*self.base.add(self.offsets.producer as usize).cast() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as `producer`.
        unsafe { &*self.base.add(self.offsets.consumer as usize).cast() }
    }

    fn slot(&self, index: u32) -> *mut T {
        let at = self.offsets.desc as usize + (index % RING) as usize * size_of::<T>();
        // SAFETY: index is reduced to the ring, so the slot lies inside the mapping.
        unsafe { self.base.add(at).cast() }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: what `map` mapped, on drop of its only owner.
        let _ = unsafe { munmap(self.base.cast(), self.bytes) };
    }
}

struct XskTransmit {
    socket: OwnedFd,
    memory: *mut u8,
    length: usize,
    free: Vec<u64>,
    tx: Ring<XdpDesc>,
    completion: Ring<u64>,
}

impl XskTransmit {
    fn open(interface: &str, writer: &FrameWriter) -> Result<XskTransmit, PortError> {
        let failed = |what: &'static str| move |e: Errno| PortError::system(what, e);
        let socket = socket(AddressFamily::XDP, SocketType::RAW, None)
            .map_err(failed("an AF_XDP socket"))?;
        let bytes = (FRAMES * FRAME_BYTES) as usize;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new anonymous mapping where the kernel chooses.
        let memory = unsafe { mmap_anonymous(null_mut(), bytes, access, flags) }
            .map_err(failed("memory for AF_XDP frames"))?
            .cast::<u8>();
        let region = XdpUmemReg {
            addr: memory as u64,
            len: bytes as u64,
            chunk_size: FRAME_BYTES,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        set_xdp_umem_reg(&socket, region).map_err(failed("registering AF_XDP memory"))?;
        set_xdp_umem_fill_ring_size(&socket, 64).map_err(failed("an AF_XDP fill ring"))?;
        set_xdp_umem_completion_ring_size(&socket, RING)
            .map_err(failed("an AF_XDP completion ring"))?;
        set_xdp_tx_ring_size(&socket, RING).map_err(failed("an AF_XDP transmit ring"))?;
        let offsets = xdp_mmap_offsets(&socket).map_err(failed("AF_XDP ring offsets"))?;
        let tx = Ring::map(&socket, offsets.tx, XDP_PGOFF_TX_RING)?;
        let completion = Ring::map(&socket, offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING)?;
        let address =
            SocketAddrXdp::new(SocketAddrXdpFlags::XDP_COPY, interface_index(interface)?, 0);
        bind_patiently(&socket, &address)?;
        let length = writer.frame_length();
        let free: Vec<u64> = (0..FRAMES).map(|n| u64::from(n * FRAME_BYTES)).collect();
        let mut transmit = XskTransmit { socket, memory, length, free, tx, completion };
        for n in 0..FRAMES {
            writer.prepare(transmit.frame(u64::from(n * FRAME_BYTES)));
        }
        Ok(transmit)
    }

    fn frame(&mut self, address: u64) -> &mut [u8] {
        // SAFETY: addresses come from the free list or the completion ring, so
        // the frame is inside the memory and the kernel does not read it now;
        // `&mut self` keeps a second reference away.
        unsafe { std::slice::from_raw_parts_mut(self.memory.add(address as usize), self.length) }
    }

    fn reap(&mut self) {
        let produced = self.completion.producer().load(Ordering::Acquire);
        let mut consumed = self.completion.consumer().load(Ordering::Relaxed);
        while consumed != produced {
            // SAFETY: a slot that the kernel has filled (between consumer and producer).
            let address = unsafe { self.completion.slot(consumed).read_volatile() };
            self.free.push(address);
            consumed = consumed.wrapping_add(1);
        }
        self.completion.consumer().store(consumed, Ordering::Release);
    }
}

/// Binds; the kernel releases a queue some time after its last socket was closed,
/// so a busy one is asked again for a second.
fn bind_patiently(socket: &OwnedFd, address: &SocketAddrXdp) -> Result<(), PortError> {
    let deadline = clock::monotonic_ns() + 1_000_000_000;
    loop {
        match bind(socket, address) {
            Ok(()) => return Ok(()),
            Err(Errno::BUSY) if clock::monotonic_ns() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(e) => return Err(PortError::system("binding an AF_XDP socket", e)),
        }
    }
}

impl Transmit for XskTransmit {
    fn capacity(&self) -> usize {
        BATCH
    }

    fn transmit(
        &mut self,
        count: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<usize, PortError> {
        self.reap();
        let count = count.min(self.free.len());
        let begin = self.tx.producer().load(Ordering::Relaxed);
        for n in 0..count as u32 {
            let Some(address) = self.free.pop() else { break };
            fill(self.frame(address));
            let descriptor = XdpDesc {
                addr: address,
                len: self.length as u32,
                options: XdpDescOptions::empty(),
            };
            // SAFETY: the slot is free: at most BATCH of RING slots are in use,
            // because every call waits until the kernel has consumed its own.
            unsafe { self.tx.slot(begin.wrapping_add(n)).write_volatile(descriptor) };
        }
        let end = begin.wrapping_add(count as u32);
        self.tx.producer().store(end, Ordering::Release);
        // Until all are consumed, so that every packet counts in the phase that
        // it was stamped with.
        while self.tx.consumer().load(Ordering::Acquire) != end {
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {}
                Err(e) => return Err(PortError::system("sending through AF_XDP", e)),
            }
            self.reap();
        }
        Ok(count)
    }
}

impl Drop for XskTransmit {
    fn drop(&mut self) {
        // SAFETY: what `open` mapped. The kernel holds pages of its own
        // reference while frames are in flight.
        let _ = unsafe { munmap(self.memory.cast(), (FRAMES * FRAME_BYTES) as usize) };
    }
}
