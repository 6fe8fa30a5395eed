//! Cables: the interfaces that they join, and missing ones.

use crate::diagnostic::Diagnostic;
use crate::lab::raw::{self, Host, Interface, RawLab};
use crate::lab::{Cable, End, Role, Side};
use std::ops::Range;
use toml::Spanned;

/// An existing end of a cable.
struct ExistingEnd<'a> {
    host: &'a Host,
    interface: &'a Interface,
    place: Range<usize>,
}

impl ExistingEnd<'_> {
    fn end(&self) -> End {
        let host = self.host.name.get_ref().clone();
        End { host, interface: self.interface.name.get_ref().clone() }
    }

    fn is(&self, other: &ExistingEnd) -> bool {
        std::ptr::eq(self.interface, other.interface)
    }
}

/// A cable with existing ends.
struct JoinedCable<'a> {
    ends: [ExistingEnd<'a>; 2],
    switch: Option<&'a str>,
    speed_bps: Option<u64>,
}

/// Checks cables; returns those that join the DUT and another host.
pub(super) fn cables(written: &RawLab, faults: &mut Vec<Diagnostic>) -> Vec<Cable> {
    let before = faults.len();
    let joined: Vec<JoinedCable> =
        written.cables.iter().filter_map(|cable| find(written, cable, faults)).collect();
    let complete =
        faults.len() == before && !written.cables_incomplete && !written.hosts_incomplete;
    twice(&joined, faults);
    let cables = joined.iter().filter_map(|cable| judged(cable, faults)).collect();
    if complete {
        missing(written, &joined, faults);
    }
    cables
}

fn find<'a>(
    written: &'a RawLab,
    cable: &'a raw::Cable,
    faults: &mut Vec<Diagnostic>,
) -> Option<JoinedCable<'a>> {
    let ends = [&cable.a, &cable.b].map(|text| end(written, text, faults));
    let [Some(a), Some(b)] = ends else { return None };
    let switch = cable.switch.as_deref();
    Some(JoinedCable { ends: [a, b], switch, speed_bps: cable.speed_bps })
}

fn end<'a>(
    written: &'a RawLab,
    text: &Spanned<String>,
    faults: &mut Vec<Diagnostic>,
) -> Option<ExistingEnd<'a>> {
    let Some((name, interface)) = text.get_ref().split_once(':') else {
        faults.push(
            Diagnostic::new(text.span(), format!("`{}` is no end of a cable", text.get_ref()))
                .help("write \"host:interface\""),
        );
        return None;
    };
    let Some(host) = written.hosts.iter().find(|host| host.name.get_ref() == name) else {
        if !written.hosts_incomplete {
            let hosts: Vec<&str> =
                written.hosts.iter().map(|host| host.name.get_ref().as_str()).collect();
            let message = format!("there is no host `{name}`");
            faults.push(Diagnostic::new(text.span(), message).suggest(name, &hosts, "hosts"));
        }
        return None;
    };
    let found = host.interfaces.iter().find(|known| known.name.get_ref() == interface);
    if found.is_none() && !written.hosts_incomplete {
        let names: Vec<&str> =
            host.interfaces.iter().map(|known| known.name.get_ref().as_str()).collect();
        let message = format!("`{name}` has no interface `{interface}`");
        let fault = Diagnostic::new(text.span(), message);
        faults.push(match names.is_empty() {
            true => fault.help("write its interfaces as [[host.interface]] below the host"),
            false => fault.suggest(interface, &names, "its interfaces"),
        });
    }
    Some(ExistingEnd { host, interface: found?, place: text.span() })
}

/// Checks that an interface has one cable, or several that all go to the same switch.
fn twice(joined: &[JoinedCable], faults: &mut Vec<Diagnostic>) {
    let ends: Vec<(&ExistingEnd, Option<&str>)> =
        joined.iter().flat_map(|cable| cable.ends.iter().map(|end| (end, cable.switch))).collect();
    for (at, (end, switch)) in ends.iter().enumerate() {
        let Some((first, other)) = ends[..at].iter().find(|(earlier, _)| earlier.is(end)) else {
            continue;
        };
        if switch.is_none() || switch != other {
            faults.push(
                Diagnostic::new(end.place.clone(), format!("`{}` has two cables", end.end()))
                    .context(first.place.clone(), "the first")
                    .help("where both go to one switch, write switch = \"its name\" in each"),
            );
        }
    }
}

/// Returns the meaning of a cable, if it is valid.
fn judged(cable: &JoinedCable, faults: &mut Vec<Diagnostic>) -> Option<Cable> {
    let [a, b] = &cable.ends;
    // Unreadable roles are already reported.
    if a.host.roles.is_none() || b.host.roles.is_none() {
        return None;
    }
    let (dut, far) = match (a.host.is(Role::Dut), b.host.is(Role::Dut)) {
        (true, false) => (a, b),
        (false, true) => (b, a),
        (both, _) => {
            let message = if both {
                "this cable leads from the device under test to itself"
            } else {
                "this cable goes past the device under test"
            };
            faults.push(
                Diagnostic::new(b.place.clone(), message)
                    .context(a.place.clone(), "its other end")
                    .help("one end of each cable is the DUT's"),
            );
            return None;
        }
    };
    sides(dut, far, faults);
    link(dut, far, faults);
    let switch = cable.switch.map(str::to_owned);
    Some(Cable { dut: dut.end(), far: far.end(), switch, speed_bps: cable.speed_bps })
}

/// Checks that both ends are on the same side.
fn sides(dut: &ExistingEnd, far: &ExistingEnd, faults: &mut Vec<Diagnostic>) {
    let sides = (dut.host.side_of(dut.interface), far.host.side_of(far.interface));
    let (Some(near), Some(other)) = sides else { return };
    if near != other {
        let message = format!("`{}` and `{}` are on different sides", dut.end(), far.end());
        faults.push(
            Diagnostic::new(far.place.clone(), message)
                .label(format!("the {}'s side", other.name()))
                .context(dut.place.clone(), format!("the {}'s side", near.name()))
                .help("change a `side`, or where the cable goes"),
        );
    }
}

/// Checks that both ends share a link in every family in which both have addresses.
fn link(dut: &ExistingEnd, far: &ExistingEnd, faults: &mut Vec<Diagnostic>) {
    for four in [true, false] {
        let of = |found: &ExistingEnd| -> Vec<_> {
            let all = found.interface.addresses.iter().map(|address| *address.get_ref());
            all.filter(|address| address.address.is_ipv4() == four).collect()
        };
        let (near, other) = (of(dut), of(far));
        let shared = near.iter().any(|a| other.iter().any(|b| a.shares_link_with(b)));
        if let (Some(a), Some(b), false) = (near.first(), other.first(), shared) {
            let message = format!("the ends of this cable are in different networks: {b} and {a}");
            faults.push(
                Diagnostic::new(far.place.clone(), message)
                    .context(dut.place.clone(), "its other end")
                    .help("give both ends addresses with the same prefix"),
            );
        }
    }
}

/// Checks that every interface of the DUT, both of its sides, and every sender and receiver have a
/// cable.
fn missing(written: &RawLab, joined: &[JoinedCable], faults: &mut Vec<Diagnostic>) {
    let has_cable = |interface: &Interface| {
        joined.iter().any(|cable| cable.ends.iter().any(|e| std::ptr::eq(e.interface, interface)))
    };
    for host in &written.hosts {
        let name = host.name.get_ref();
        for side in Side::ALL {
            let of_side = || host.interfaces.iter().filter(|i| host.side_of(i) == Some(side));
            let needs_cable = host.is(Role::Dut) || host.is(side.into());
            let unsided = host.interfaces.iter().any(|i| host.side_of(i).is_none());
            let bare: Vec<&Interface> = of_side().filter(|i| !has_cable(i)).collect();
            if needs_cable && of_side().next().is_none() && !unsided {
                let message = format!("`{name}` has no interface on the {}'s side", side.name());
                faults.push(
                    Diagnostic::new(host.name.span(), message)
                        .help("write it as [[host.interface]] below the host"),
                );
            } else if needs_cable && (host.is(Role::Dut) || bare.len() == of_side().count()) {
                faults.extend(bare.iter().map(|interface| {
                    let message = format!("`{name}:{}` has no cable", interface.name.get_ref());
                    Diagnostic::new(interface.name.span(), message).help(format!(
                        "write [[cable]] with \"{name}:{}\"",
                        interface.name.get_ref()
                    ))
                }));
            }
        }
    }
}
