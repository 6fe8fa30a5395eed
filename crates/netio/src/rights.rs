//! Capabilities of a process that has opened everything it needs.

use crate::NetioError;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

/// Permanently gives up all capabilities of the calling thread and of threads it starts later: no
/// program they start gains any (`no_new_privs`).
///
/// # Errors
/// If the kernel refuses.
pub fn drop_all() -> Result<(), NetioError> {
    let failed = |error: rustix::io::Errno| NetioError::system("giving up capabilities", error);
    set_no_new_privs(true).map_err(failed)?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_all_leaves_no_capabilities() {
        let status = std::thread::spawn(|| {
            drop_all().expect("the kernel takes them");
            std::fs::read_to_string("/proc/thread-self/status").expect("/proc")
        });
        let status = status.join().expect("no panic");
        let value_of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.expect("a line").trim().to_owned()
        };
        assert_eq!(
            (value_of("CapEff:").as_str(), value_of("CapPrm:").as_str()),
            ("0000000000000000", "0000000000000000")
        );
        assert_eq!(value_of("NoNewPrivs:"), "1");
    }
}
