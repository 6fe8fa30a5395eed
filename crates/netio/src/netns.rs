//! Network namespaces, entered by threads.
//!
//! A namespace applies to a *thread*: a thread that enters one stays in it. Child processes inherit
//! the namespace of the thread that starts them.

use crate::NetioError;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Directory of the names of `ip netns`.
pub const NAMED: &str = "/run/netns";

/// Namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A handle to a network namespace; keeps it alive.
#[derive(Clone, Debug)]
pub struct NetNs {
    name: String,
    file: Arc<File>,
}

impl NetNs {
    /// Opens a namespace by its `ip netns add` name.
    ///
    /// # Errors
    /// If there is no namespace of that name.
    pub fn open(name: &str) -> Result<NetNs, NetioError> {
        let path = Path::new(NAMED).join(name);
        let file = File::open(&path)
            .map_err(|e| NetioError::system(format!("opening namespace {}", path.display()), e))?;
        Ok(NetNs { name: name.into(), file: Arc::new(file) })
    }

    /// Returns the namespace of the calling thread.
    ///
    /// # Errors
    /// If `/proc` is not mounted.
    pub fn current() -> Result<NetNs, NetioError> {
        let file = File::open(OWN)
            .map_err(|e| NetioError::system(format!("opening this thread's namespace {OWN}"), e))?;
        Ok(NetNs { name: "the current one".into(), file: Arc::new(file) })
    }

    /// Name of the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread into the namespace, unless it is there already.
    ///
    /// # Errors
    /// Without CAP_SYS_ADMIN over the namespace.
    pub fn enter(&self) -> Result<(), NetioError> {
        if self.is_here() {
            return Ok(()); // entering takes rights that staying does not
        }
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|e| NetioError::system(format!("entering namespace {}", self.name), e))
    }

    /// True if the calling thread is in the namespace.
    fn is_here(&self) -> bool {
        let (Ok(own), Ok(this)) = (std::fs::metadata(OWN), self.file.metadata()) else {
            return false;
        };
        (own.dev(), own.ino()) == (this.dev(), this.ino())
    }

    /// Moves the calling thread into the namespace and gives it a private mount of `/sys` that
    /// shows the namespace's interfaces.
    ///
    /// # Errors
    /// As [`NetNs::enter`]; also if sysfs can't be mounted, which some containers forbid: then the
    /// thread is in the namespace nevertheless.
    pub fn enter_with_sysfs(&self) -> Result<(), NetioError> {
        self.enter()?;
        // SAFETY: unsharing the mount table and the working directory of this
        // thread alone touches no memory and no descriptor; `unsafe` because
        // rustix groups it with CLONE_FILES, which is not used.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }
            .map_err(|e| NetioError::system("a mount table of our own (unshare)", e))?;
        mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
            .map_err(|e| NetioError::system("making our mounts private", e))?;
        let _ = unmount("/sys", UnmountFlags::DETACH);
        mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)
            .map_err(|e| NetioError::system("mounting the namespace's sysfs", e))
    }

    /// Starts a thread in the namespace, bound to `cpus` unless empty.
    ///
    /// # Errors
    /// If the thread can't start; an error inside it is the thread's result.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        cpus: &[u16],
        work: impl FnOnce() -> Result<T, NetioError> + Send + 'static,
    ) -> Result<JoinHandle<Result<T, NetioError>>, NetioError> {
        let (namespace, cpus) = (self.clone(), cpus.to_vec());
        std::thread::Builder::new()
            .name(name.into())
            .spawn(move || {
                namespace.enter()?;
                if !cpus.is_empty() {
                    crate::affinity::pin_thread(&cpus)?;
                }
                work()
            })
            .map_err(|e| NetioError::system(format!("starting thread {name}"), e))
    }

    /// Runs `work` in the namespace on a new thread and waits for it.
    ///
    /// # Errors
    /// If entering fails, or the error of `work`.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, NetioError> + Send + 'static,
    ) -> Result<T, NetioError> {
        match self.spawn("in-namespace", &[], work)?.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_current_namespace_needs_no_rights() {
        let here = NetNs::current().expect("/proc");
        assert!(here.is_here());
        here.enter().expect("already there");
        let interfaces = here.run(|| {
            std::fs::read_to_string("/proc/thread-self/net/dev")
                .map_err(|e| NetioError::system("reading interfaces", e))
        });
        assert!(interfaces.expect("a list").contains("lo:"));
    }
}
