//! Offloads of a device that merge received TCP segments (ethtool(8)).

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// Commands that read a setting (linux/ethtool.h): generic receive offload, and flags, of which one
/// is large receive offload.
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETH_FLAG_LRO: u32 = 1 << 15;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ifreq`.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    value: *mut Value,
    rest: [u64; 2],
}

/// True if the device, or the kernel for it, merges received segments: sockets then get frames that
/// are longer than the MTU.
///
/// # Errors
/// If there is no such device.
pub fn merges_segments(device: &str) -> io::Result<bool> {
    Ok(read(device, ETHTOOL_GGRO)? != 0 || read(device, ETHTOOL_GFLAGS)? & ETH_FLAG_LRO != 0)
}

fn read(device: &str, command: u32) -> io::Result<u32> {
    let mut name = [0; libc::IFNAMSIZ];
    if device.len() >= name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    name[..device.len()].copy_from_slice(device.as_bytes());
    // Any socket of the network namespace is suitable.
    let socket = UnixDatagram::unbound()?;
    let mut value = Value { command, data: 0 };
    let mut request = Request { name, value: &raw mut value, rest: [0; 2] };
    // SAFETY: SIOCETHTOOL reads one `struct ifreq`, which is not larger than `Request`, and these
    // commands write one `struct ethtool_value`; both outlive the call. The descriptor is open.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    match status {
        0 => Ok(value.data),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_segments_requires_a_device() {
        assert!(merges_segments("lo").is_ok());
        assert!(merges_segments("no-such-device").is_err());
        assert!(merges_segments("a-name-that-is-too-long").is_err());
    }
}
