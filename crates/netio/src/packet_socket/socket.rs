//! Functions shared by all packet sockets.

use crate::NetioError;
use crate::xdp::interface_index;
use rustix::net::sockopt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

/// Opens a packet socket without an interface, which receives nothing yet.
pub(super) fn new_socket() -> Result<OwnedFd, NetioError> {
    // SAFETY: socket(2) takes plain integers; the result is checked, then owned once.
    unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(NetioError::system("a packet socket", io::Error::last_os_error()));
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Opens a packet socket on an interface, which receives nothing yet.
pub(super) fn open_socket(interface: &str) -> Result<OwnedFd, NetioError> {
    let socket = new_socket()?;
    bind_to(&socket, interface, 0)?;
    Ok(socket)
}

/// Opens a packet socket that receives nothing itself but makes its interface receive frames for
/// other stations, too.
pub(crate) fn listening_to(
    interface: &str,
    (what, kind): (&str, libc::c_int),
) -> Result<OwnedFd, NetioError> {
    let socket = open_socket(interface)?;
    join(&socket, interface_index(interface)?, kind)
        .map_err(|e| NetioError::system(format!("{what} at {interface}"), e))?;
    Ok(socket)
}

/// Makes an interface receive more frames, as long as the socket and the interface exist.
fn join(socket: &OwnedFd, index: u32, kind: libc::c_int) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: kind as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// Makes an interface receive frames to all groups and stations, as [`join`].
pub(super) fn receive_all(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let kinds = [libc::PACKET_MR_ALLMULTI, libc::PACKET_MR_PROMISC];
    kinds.into_iter().try_for_each(|kind| join(socket, index, kind))
}

/// Binds to an interface; with a protocol of 0 the socket receives nothing.
pub(super) fn bind_to(socket: &OwnedFd, interface: &str, protocol: u16) -> Result<(), NetioError> {
    bind_at(socket, interface, interface_index(interface)?, protocol)
}

/// Like [`bind_to`], with a known interface index.
pub(super) fn bind_at(
    socket: &OwnedFd,
    interface: &str,
    index: u32,
    protocol: u16,
) -> Result<(), NetioError> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address is a whole sockaddr_ll and its size is given.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as u32,
        )
    };
    if result < 0 {
        let error = io::Error::last_os_error();
        return Err(NetioError::system(format!("binding a packet socket to {interface}"), error));
    }
    Ok(())
}

/// Sets an option of level SOL_PACKET.
pub(super) fn set_option<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    set_option_at(socket, libc::SOL_PACKET, option, value)
}

fn set_option_at<T>(socket: &OwnedFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    // SAFETY: the pointer is to a live value of the size given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const *value).cast(),
            size_of::<T>() as u32,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Bytes of each buffer of a port's socket. The default, 200 kB, holds some hundred frames to send,
/// or two merged ones that exceed a slot.
const BUFFER_BYTES: usize = 8 << 20;

/// Enlarges both buffers of a socket. Only root of the initial namespace may exceed the limit, so
/// call this before the process gives up its rights.
pub(super) fn enlarge_buffers(socket: &OwnedFd) {
    let receive = Buffer {
        size: |socket| sockopt::socket_recv_buffer_size(socket),
        set: |socket, bytes| sockopt::set_socket_recv_buffer_size(socket, bytes),
        force: |socket, bytes| sockopt::set_socket_recv_buffer_size_force(socket, bytes),
    };
    let send = Buffer {
        size: |socket| sockopt::socket_send_buffer_size(socket),
        set: |socket, bytes| sockopt::set_socket_send_buffer_size(socket, bytes),
        force: |socket, bytes| sockopt::set_socket_send_buffer_size_force(socket, bytes),
    };
    receive.enlarge(socket);
    send.enlarge(socket);
}

/// Options of one of a socket's buffers.
struct Buffer {
    /// Reads twice the size set.
    size: fn(&OwnedFd) -> rustix::io::Result<usize>,
    /// Sets the size, or the limit.
    set: fn(&OwnedFd, usize) -> rustix::io::Result<()>,
    force: fn(&OwnedFd, usize) -> rustix::io::Result<()>,
}

impl Buffer {
    /// Enlarges the buffer to [`BUFFER_BYTES`] or the limit; never shrinks it.
    fn enlarge(&self, socket: &OwnedFd) {
        let size = (self.size)(socket).unwrap_or_default();
        if size >= 2 * BUFFER_BYTES || (self.force)(socket, BUFFER_BYTES).is_ok() {
            return;
        }
        // No option reads the limit, so another socket tries.
        let probe = UnixDatagram::unbound().map(OwnedFd::from);
        let limited = probe.ok().and_then(|probe| {
            (self.set)(&probe, BUFFER_BYTES).ok()?;
            (self.size)(&probe).ok()
        });
        if limited > Some(size) {
            // An error leaves the size unchanged.
            let _ = (self.set)(socket, BUFFER_BYTES);
        }
    }
}

/// Sends frames directly to the driver.
pub(super) fn bypass_queueing(socket: &OwnedFd) -> Result<(), NetioError> {
    set_option(socket, libc::PACKET_QDISC_BYPASS, &1i32)
        .map_err(|e| NetioError::system("bypassing the queueing discipline", e))
}

/// One instruction of a classic BPF program.
pub(super) fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// Attaches a classic BPF program, which needs no CAP_BPF. It returns the number of bytes to
/// receive of each frame; 0 drops the frame.
pub(super) fn attach_filter(socket: &OwnedFd, program: &[libc::sock_filter]) -> io::Result<()> {
    let filter =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // The program outlives the call, during which the kernel copies it.
    set_option_at(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
}

/// Detaches the program.
pub(super) fn detach_filter(socket: &OwnedFd) -> io::Result<()> {
    set_option_at(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0i32)
}

/// Returns the number of frames that found no room in the ring since the last call.
pub(super) fn take_drops(socket: &OwnedFd) -> u64 {
    // For older versions the kernel writes only the first two counters.
    let mut stats = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
    let mut length = size_of_val(&stats) as u32;
    // SAFETY: the buffer and its length belong together. Reading resets the counters.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &mut length,
        )
    };
    if result == 0 { u64::from(stats.tp_drops) } else { 0 }
}

/// A ring's memory, shared with the kernel.
#[derive(Debug)]
pub(super) struct Mapping {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is used by one thread at a time.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the configured ring; `bytes` must be its size.
    pub(super) fn new(socket: &OwnedFd, bytes: usize) -> io::Result<Mapping> {
        // SAFETY: a new shared mapping at an address that the kernel chooses; it refuses any size
        // but the ring's. Checked below.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { base: base.cast(), bytes })
    }

    /// Unmaps the ring; nothing is inside afterwards.
    pub(super) fn unmap(&mut self) {
        if self.bytes > 0 {
            // SAFETY: exactly the range that `new` mapped, once; no reference into it outlives a
            // call.
            unsafe { libc::munmap(self.base.cast(), self.bytes) };
        }
        self.bytes = 0;
    }

    /// Returns a pointer to the byte at `offset`, which must be inside.
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.bytes);
        self.base.wrapping_add(offset)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.unmap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(socket: &OwnedFd) -> [usize; 2] {
        [sockopt::socket_recv_buffer_size(socket), sockopt::socket_send_buffer_size(socket)]
            .map(|size| size.expect("a size"))
    }

    #[test]
    fn enlarge_buffers_never_shrinks_them() {
        let socket = || OwnedFd::from(UnixDatagram::unbound().expect("a socket"));
        let (ordinary, enlarged, large) = (socket(), socket(), socket());
        // Above the limit, if the test runs as root.
        let _ = sockopt::set_socket_recv_buffer_size_force(&large, BUFFER_BYTES / 2);
        let _ = sockopt::set_socket_send_buffer_size_force(&large, BUFFER_BYTES / 2);
        enlarge_buffers(&enlarged);
        let before = [&ordinary, &enlarged, &large].map(sizes);
        let sockets = std::thread::spawn(move || {
            crate::rights::drop_all().expect("the kernel takes them");
            let sockets = [ordinary, enlarged, large];
            sockets.iter().for_each(enlarge_buffers);
            sockets
        });
        let after = sockets.join().expect("no panic").each_ref().map(sizes);
        for (before, after) in before.iter().flatten().zip(after.iter().flatten()) {
            assert!(after >= before, "{before:?} {after:?}");
        }
    }
}
