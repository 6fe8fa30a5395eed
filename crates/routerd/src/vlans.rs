//! Interfaces that are VLANs of others.

use super::mistake;
use fwdlab_model::router::{ChecksumKind, InterfaceSetup, PortKind, RouterSetup};

/// Valid VLAN identifiers (IEEE 802.1Q): 0 means no VLAN, and 4095 is reserved.
const NUMBERS: std::ops::RangeInclusive<u16> = 1..=4094;

/// The interface whose port carries an interface's frames: itself, or its parent if it is a VLAN.
pub(super) fn carrier<'a>(setup: &'a RouterSetup, entry: &'a InterfaceSetup) -> &'a InterfaceSetup {
    let parent = entry.parent.as_ref();
    parent.and_then(|name| setup.interfaces.iter().find(|i| i.name == *name)).unwrap_or(entry)
}

/// The VLANs of an interface, with the numbers of their interfaces.
pub(super) fn of(setup: &RouterSetup, parent: &InterfaceSetup) -> Vec<(u16, u8)> {
    let numbered = setup.interfaces.iter().zip(0u8..);
    let children = numbered.filter(|(i, _)| i.parent.as_ref() == Some(&parent.name));
    children.filter_map(|(i, number)| Some((i.vlan?, number))).collect()
}

/// Checks the VLANs of a set-up.
///
/// # Errors
/// User errors.
pub(super) fn check(setup: &RouterSetup) -> anyhow::Result<()> {
    for (at, entry) in setup.interfaces.iter().enumerate() {
        let fault = |what: String| Err(mistake(format!("interface {}: {what}", entry.name)));
        let (vlan, parent) = match (entry.vlan, &entry.parent) {
            (None, None) => continue,
            (Some(vlan), Some(parent)) => (vlan, parent),
            _ => return fault("a VLAN has both, `vlan` and `parent`".into()),
        };
        if !NUMBERS.contains(&vlan) {
            return fault(format!("vlan = {vlan}: there are VLANs 1 to 4094"));
        }
        match setup.interfaces.iter().find(|other| other.name == *parent) {
            _ if !setup.circuits.is_empty() => return fault("circuits have no VLANs".into()),
            None => return fault(format!("there is no interface `{parent}` for a parent")),
            Some(other) if other.parent.is_some() => {
                return fault(format!("its parent `{parent}` is a VLAN itself"));
            }
            Some(other) if other.port == PortKind::Xsk => {
                return fault(format!("{NO_XSK}; write port = \"packet\" at `{parent}`"));
            }
            Some(_) => {}
        }
        let is_same = |other: &&InterfaceSetup| {
            other.vlan == Some(vlan) && other.parent.as_ref() == Some(parent)
        };
        if let Some(other) = setup.interfaces[..at].iter().find(is_same) {
            return fault(format!("`{}` is VLAN {vlan} of `{parent}` already", other.name));
        }
        let of_ports = [
            ("port", entry.port != PortKind::Auto),
            ("input", entry.input.is_some()),
            ("output", entry.output.is_some()),
            ("capture", entry.capture.is_some()),
            ("trace", entry.trace.is_some()),
            ("faults", entry.faults.is_some()),
            ("sent_faults", entry.sent_faults.is_some()),
            ("checksums", entry.checksums != ChecksumKind::Complete),
        ];
        if let Some((key, _)) = of_ports.into_iter().find(|(_, is_written)| *is_written) {
            return fault(format!("`{key}` is its parent's: write it at `{parent}`"));
        }
    }
    Ok(())
}

/// The reason why VLANs do not work on these ports.
pub(super) const NO_XSK: &str =
    "VLANs are on it, and AF_XDP doesn't tell the tags that devices take out of frames";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vlan_mistakes_are_reported() {
        let fault = |change: &dyn Fn(&mut RouterSetup)| {
            let interface = |name: &str| InterfaceSetup { name: name.into(), ..Default::default() };
            let tagged = |name: &str, vlan| InterfaceSetup {
                vlan: Some(vlan),
                parent: Some("r0".into()),
                ..interface(name)
            };
            let interfaces = vec![tagged("x", 7), interface("r0"), tagged("y", 4094)];
            let mut setup = RouterSetup { interfaces, ..RouterSetup::default() };
            change(&mut setup);
            check(&setup).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(fault(&|_| ()), "");
        let expect_fault = |change: &dyn Fn(&mut RouterSetup), words: &str| {
            let error = fault(change);
            assert!(error.contains(words), "{error}");
        };
        expect_fault(&|s| s.interfaces[0].parent = None, "interface x: a VLAN has both");
        expect_fault(&|s| s.interfaces[0].vlan = Some(4095), "1 to 4094");
        expect_fault(&|s| s.interfaces[0].vlan = Some(4094), "`x` is VLAN 4094 of `r0` already");
        expect_fault(&|s| s.interfaces[0].parent = Some("z".into()), "no interface `z`");
        expect_fault(&|s| s.interfaces[0].parent = Some("y".into()), "is a VLAN itself");
        expect_fault(&|s| s.interfaces[1].port = PortKind::Xsk, "write port = \"packet\" at `r0`");
        expect_fault(&|s| s.interfaces[2].trace = Some("f".into()), "write it at `r0`");
        expect_fault(&|s| s.circuits.push("c".into()), "circuits have no VLANs");
    }
}
