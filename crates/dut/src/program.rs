//! Common to all programs that forward instead of the kernel: interface set-up, and drop
//! places from the program's own counters.

use super::drop_accounting::{self, with_unexplained};
use super::linux::{interfaces, scheduling};
use super::{DutContext, Loss};
use crate::cpu::Placement;
use crate::findings::Findings;
use crate::links::Links;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::DropPlace;
use fwdlab_model::settings::Settings;

/// Places where packets were lost between two readings of `program`: by the program's own
/// counters, and before the program; the last place is the unexplained remainder.
pub(super) fn drops(program: &str, loss: &Loss<'_>, links: &Links) -> Vec<DropPlace> {
    let Loss { before, after, .. } = *loss;
    let first = |name: &str| {
        before.own.iter().find(|counter| counter.name == name).map(|counter| counter.packets)
    };
    let dropped = after.own.iter().filter(|counter| counter.class.is_loss());
    let places = dropped.map(|counter| {
        let packets = counter.packets.saturating_sub(first(&counter.name).unwrap_or(0));
        (format!("{program}: {}", counter.name), packets as i64)
    });
    let mut drops = with_unexplained(places, loss);
    // With traffic in both directions packets arrive on both interfaces.
    let arriving = links.both().into_iter().take(loss.settings.traffic.directions.count() as usize);
    let rings = arriving.map(|link| {
        (format!("{} rx_dropped", link.interface), drop_accounting::ring(&link.interface))
    });
    // The program handed these over; the interface could not deliver them.
    let outputs = links.both().map(|link| {
        (format!("{} tx_dropped", link.interface), drop_accounting::output_of(&link.interface))
    });
    let wire = (WIRE_FULL.to_owned(), WIRE_FULL.to_owned());
    for (counter, place) in rings.chain(outputs).chain([wire]) {
        if after.machine.contains_key(&counter) {
            let increment = drop_accounting::risen(&before.machine, &after.machine, &counter);
            drops = drop_accounting::with_place(drops, place, increment);
        }
    }
    drops
}

/// Drop place on testbed `memory` at a paced rate: no free slot on the wire.
pub const WIRE_FULL: &str = "wire full";

/// Sets up the interfaces for a program so that the kernel neither answers nor forwards, and in a
/// namespace assigns CPUs to their NAPI threads. Returns those threads, like [`scheduling::apply`]:
/// they deliver the program's packets and are therefore part of the device.
///
/// # Errors
/// Fails if something is missing or rejected.
pub(super) fn configure(
    host: &dyn Host,
    context: &DutContext<'_>,
    settings: &Settings,
    placement: &Placement,
    findings: &mut Findings,
) -> Result<Vec<u32>, BenchError> {
    let DutContext { links, keeper, .. } = *context;
    let mut polling = Vec::new();
    let names = links.both().map(|link| link.interface.as_str());
    for interface in names {
        // Programs leave an interface promiscuous.
        if !is_promiscuous(&interfaces::flags(host, interface)?) {
            keeper.note(host, &[format!("ip link set {interface} promisc off")])?;
        }
        // With forwarding enabled the kernel would forward every packet a second time.
        for family in ["ipv4", "ipv6"] {
            let path = format!("/proc/sys/net/{family}/conf/{interface}/forwarding");
            if host.get(&path).is_ok() {
                keeper.put(host, &[(path, "0".into())])?;
            }
        }
    }
    interfaces::switch_on(host, keeper, links)?;
    if keeper.is_namespace() {
        for interface in names {
            // GRO makes veth poll, which frames redirected into it require.
            host.run(&["ethtool", "-K", interface, "gro", "on", "tso", "off", "gso", "off"], "")?;
        }
        polling = scheduling::apply(host, keeper, links, settings, placement, findings)?;
    }
    interfaces::wait_for_signal(host, links)?;
    Ok(polling)
}

/// IFF_PROMISC is the ninth bit of an interface's flags (netdevice(7)).
fn is_promiscuous(flags: &str) -> bool {
    let bits = u32::from_str_radix(flags.trim_start_matches("0x"), 16);
    bits.is_ok_and(|bits| bits & 0x100 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;
    use crate::counters::ProgramCounter;
    use crate::cpu::place;
    use crate::restore::SettingRestorer;
    use crate::router::Wires;
    use fwdlab_host::FakeHost;
    use fwdlab_model::record::Counts;
    use fwdlab_model::settings::{Arrangement, DutKind};
    use fwdlab_packet::forwarding::Class;
    use std::path::Path;
    use std::sync::Mutex;

    #[test]
    fn program_drops_and_the_remainder_are_reported() {
        let reading = |refused| Reading {
            own: vec![
                ProgramCounter::new("forwarded", Class::Forwarded, 90),
                ProgramCounter::new("firewall", Class::Dropped, refused),
            ],
            ..Reading::default()
        };
        let (before, after) = (reading(5), reading(15));
        let total = Counts { offered: 125, forwarded: 90 };
        let settings = Settings::default();
        let loss = Loss { before: &before, after: &after, total, receiver: 3, settings: &settings };
        let drops = drops("router", &loss, &Links::of_namespaces());
        let found: Vec<_> = drops.iter().map(|drop| (&drop.place[..], drop.packets)).collect();
        assert_eq!(
            found,
            [("router: firewall", 10), ("receiver of the testbed", 3), ("no counter tells", 22)]
        );
    }

    /// A DUT with a setting that cannot be restored.
    struct Stuck;

    impl SettingRestorer for Stuck {
        fn is_namespace(&self) -> bool {
            false
        }
        fn note(&self, _: &dyn Host, _: &[String]) -> Result<(), BenchError> {
            Ok(())
        }
        fn put(&self, _: &dyn Host, _: &[(String, String)]) -> Result<(), BenchError> {
            Ok(())
        }
        fn change(&self, _: &dyn Host, _: &str, _: &str) -> Result<(), BenchError> {
            Ok(())
        }
        fn get(&self, host: &dyn Host, path: &str) -> Result<String, BenchError> {
            host.get(path)
        }
        fn mark_routes(&self, _: &dyn Host) -> Result<&'static str, BenchError> {
            Ok("")
        }
        fn undo(&self, host: &dyn Host) -> Result<(), BenchError> {
            Err(BenchError::NotPutBack {
                host: host.name().into(),
                why: "/proc/x is not '1' again".into(),
                instead: "",
                journal: "/run/list".into(),
            })
        }
    }

    #[test]
    fn setting_that_cannot_be_restored_is_a_warning() {
        let (links, wires, here) = (Links::of_namespaces(), Wires::Sockets, Path::new(""));
        let context = DutContext {
            links: &links,
            experiment: here,
            program: here,
            keeper: &Stuck,
            wires: &wires,
        };
        let mut settings = Settings::default();
        settings.dut.command.start = vec!["forward".into()];
        let mut host = FakeHost::default();
        let flags = |name: &str| (format!("/sys/class/net/{name}/flags"), "0x1003".to_owned());
        host.files = Mutex::new(["d0", "d1"].map(flags).into());
        let placement = place(&[0, 1], Arrangement::Open, 1, 1);
        for kind in [DutKind::Command, DutKind::Router] {
            let mut findings = Findings::default();
            let configured =
                crate::open(kind, context).configure(&host, &settings, &placement, &mut findings);
            // The programs of this host end before they forward.
            let error = configured.expect_err("no program");
            assert!(!matches!(error, BenchError::NotPutBack { .. }), "{error}");
            let [warning] = &findings.warnings[..] else { panic!("{:?}", findings.warnings) };
            assert!(format!("{warning:?}").contains("/proc/x"), "{warning:?}");
        }
    }
}
