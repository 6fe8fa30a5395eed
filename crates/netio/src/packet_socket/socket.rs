//! Functions shared by all packet sockets.

use crate::NetioError;
use crate::xdp::interface_index;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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

/// Sets the send buffer to `bytes`, or to the maximum allowed.
pub(super) fn enlarge_send_buffer(socket: &OwnedFd, bytes: i32) {
    enlarge(socket, bytes, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF]);
}

/// Sets the receive buffer to `bytes`, or to the maximum allowed.
pub(super) fn enlarge_receive_buffer(socket: &OwnedFd, bytes: i32) {
    enlarge(socket, bytes, [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF]);
}

fn enlarge(socket: &OwnedFd, bytes: i32, [force, within_limit]: [libc::c_int; 2]) {
    let set = |option| set_option_at(socket, libc::SOL_SOCKET, option, &bytes);
    // Only root of the initial namespace may exceed the limit; the alternative never fails.
    let _ = set(force).or_else(|_| set(within_limit));
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

    /// Returns a pointer to the byte at `offset`, which must be inside.
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.bytes);
        self.base.wrapping_add(offset)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `new` mapped; no reference into it outlives a call.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}
