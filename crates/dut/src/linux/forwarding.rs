//! Side effects of enabling forwarding on a machine of a laboratory.
//!
//! Writing `ip_forward` also sets `forwarding` of every interface, and `all.accept_redirects`
//! (`inet_forward_change` in net/ipv4/devinet.c). Writing IPv6's `all.forwarding` sets `forwarding`
//! of every interface, and removes the default routes of router advertisements on interfaces whose
//! `accept_ra` is not 2 (`addrconf_fixup_forwarding` in net/ipv6/addrconf.c): the machine could lose
//! the way to its controller.

use crate::links::Links;
use crate::restore::SettingRestorer;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use std::collections::BTreeMap;

/// Script that prints the sysctls concerned as lines `PATH VALUE`, relative to `/proc/sys/net`.
const LIST: &str = r#"cd /proc/sys/net || exit 1
for file in ipv4/ip_forward ipv4/conf/all/accept_redirects \
ipv4/conf/*/forwarding ipv6/conf/*/forwarding ipv6/conf/*/accept_ra; do
[ ! -e "$file" ] || echo "$file $(cat "$file")"; done"#;

/// Records the values that enabling forwarding resets, and keeps default routes of router
/// advertisements.
///
/// # Errors
/// Fails if the values cannot be read or recorded.
pub(super) fn contain(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    links: &Links,
) -> Result<(), BenchError> {
    let listed = host.run(&["/bin/sh", "-c", LIST, "fwdlab"], "")?;
    let SideEffects { undo, accept_ra } = SideEffects::new(&listed, links);
    // Undone after the switches of both families, which are changed later.
    keeper.note(host, &undo)?;
    keeper.put(host, &accept_ra)
}

/// Commands and settings that contain the side effects.
#[derive(Debug, PartialEq, Eq)]
struct SideEffects {
    /// Commands that restore values after forwarding is disabled.
    undo: Vec<String>,
    /// Settings to write before forwarding is enabled.
    accept_ra: Vec<(String, String)>,
}

impl SideEffects {
    fn new(listed: &str, links: &Links) -> SideEffects {
        let values: BTreeMap<&str, &str> =
            listed.lines().filter_map(|line| line.split_once(' ')).collect();
        let is_off = |switch: &str| values.get(switch) == Some(&"0");
        let (mut undo, mut accept_ra) = (Vec::new(), Vec::new());
        let mut restore = |path: &str, value: &str| {
            let path = format!("/proc/sys/net/{path}");
            // An interface may be gone.
            undo.push(format!("[ ! -e '{path}' ] || echo {value} >'{path}'"));
        };
        let (inet, inet6) = ("ipv4/ip_forward", "ipv6/conf/all/forwarding");
        let redirects = "ipv4/conf/all/accept_redirects";
        if is_off(inet) && is_off(redirects) {
            restore(redirects, "0");
        }
        for (path, value) in &values {
            let mut parts = path.split('/');
            let (Some(family), _, Some(name), Some(key)) =
                (parts.next(), parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let is_changed = is_off(if family == "ipv4" { inet } else { inet6 });
            if !is_changed || name == "all" || name.contains('\'') {
                continue;
            }
            let is_of_test = links.both().iter().any(|link| link.interface == name);
            match (key, *value) {
                ("forwarding", "1") => restore(path, "1"),
                // Interfaces that forward already ignore advertisements.
                ("accept_ra", "1")
                    if !is_of_test
                        && !["default", "lo"].contains(&name)
                        && is_off(&format!("ipv6/conf/{name}/forwarding")) =>
                {
                    accept_ra.push((format!("/proc/sys/net/{path}"), "2".to_owned()));
                }
                _ => {}
            }
        }
        SideEffects { undo, accept_ra }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "ipv4/ip_forward 0\n\
                          ipv4/conf/all/accept_redirects 0\n\
                          ipv4/conf/all/forwarding 0\n\
                          ipv4/conf/br.7/forwarding 1\n\
                          ipv4/conf/m0/forwarding 0\n\
                          ipv6/conf/all/forwarding 0\n\
                          ipv6/conf/br.7/forwarding 1\n\
                          ipv6/conf/d0/forwarding 0\n\
                          ipv6/conf/m0/forwarding 0\n\
                          ipv6/conf/all/accept_ra 1\n\
                          ipv6/conf/br.7/accept_ra 1\n\
                          ipv6/conf/d0/accept_ra 1\n\
                          ipv6/conf/default/accept_ra 1\n\
                          ipv6/conf/m0/accept_ra 1\n";

    #[test]
    fn side_effects_of_forwarding_are_restored() {
        let links = Links::of_namespaces();
        let of = |listed: &str| SideEffects::new(listed, &links);
        let found = of(LISTED);
        let undo = |path, value| {
            format!("[ ! -e '/proc/sys/net/{path}' ] || echo {value} >'/proc/sys/net/{path}'")
        };
        let expected = [
            undo("ipv4/conf/all/accept_redirects", 0),
            undo("ipv4/conf/br.7/forwarding", 1),
            undo("ipv6/conf/br.7/forwarding", 1),
        ];
        assert_eq!(found.undo, expected);
        let m0 = "/proc/sys/net/ipv6/conf/m0/accept_ra".to_owned();
        assert_eq!(found.accept_ra, [(m0, "2".to_owned())]);
        // A machine that forwards already is not changed.
        let found = of(&LISTED
            .replace("ip_forward 0", "ip_forward 1")
            .replace("ipv6/conf/all/forwarding 0", "ipv6/conf/all/forwarding 1"));
        assert_eq!(found, SideEffects { undo: Vec::new(), accept_ra: Vec::new() });
        // Without IPv6.
        assert_eq!(of(&LISTED[..LISTED.find("ipv6").unwrap_or(0)]).undo, expected[..2]);
    }
}
