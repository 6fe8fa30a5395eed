//! A private user namespace: networking without root.

use crate::NetioError;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;
use std::fs;

/// Moves this process, which must still have a single thread, into a new user, network and mount
/// namespace in which it is root, with an empty `/run`.
///
/// Namespaces, veth, addresses, forwarding, nftables and packet sockets then work. Loading BPF
/// fails if `kernel.unprivileged_bpf_disabled` is set.
///
/// # Errors
/// If the kernel or its settings forbid user namespaces (`user.max_user_namespaces`,
/// `kernel.apparmor_restrict_unprivileged_userns`).
pub fn enter() -> Result<(), NetioError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWNS;
    // SAFETY: neither memory nor the descriptor table is unshared; with more
    // than one thread the kernel refuses (EINVAL) and nothing has happened.
    unsafe { rustix::thread::unshare_unsafe(flags) }
        .map_err(|e| NetioError::system("a user namespace of our own (unshare)", e))?;
    let write = |path: &str, text: String| {
        fs::write(path, text).map_err(|e| NetioError::system(format!("writing {path}"), e))
    };
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("0 {user} 1"))?;
    write("/proc/self/gid_map", format!("0 {group} 1"))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|e| NetioError::system("making our mounts private", e))?;
    mount("tmpfs", "/run", "tmpfs", MountFlags::empty(), None)
        .map_err(|e| NetioError::system("mounting a /run of our own", e))
}

/// True if this process is root in its user namespace, which may be the initial one.
pub fn is_root() -> bool {
    geteuid().is_root()
}
