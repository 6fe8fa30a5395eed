//! Opens senders and receivers on existing interfaces, in the namespace of the process.
//!
//! All changes to the interface end with the process: the receiver's XDP program, sockets. The
//! receiver is not promiscuous: frames must be addressed to its MAC.

use super::protocol::{ReceiveOrder, SendOrder};
use super::{serve_receive, serve_send};
use crate::arrivals;
use crate::engines::{ReceiverKind, engine_name, open_receiver, open_sender};
use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use fwdlab_model::settings::Engine;
use fwdlab_netio::sender::Counted;
use fwdlab_netio::{NetNs, Sender, SenderConfig, Watch, affinity, clock, sender};
use fwdlab_packet::Flows;
use fwdlab_packet::arrivals::Expected;
use fwdlab_packet::{Stream, Template};
use std::collections::BTreeMap;
use std::time::Duration;

/// Batch size in frames at the maximum rate, as in the testbed of namespaces.
const BATCH: u32 = 64;
/// Maximum number of sending threads that a stamp can distinguish.
const SENDERS_MAX: usize = 16;
/// Maximum number of flows that a stamp can distinguish.
const FLOWS_MAX: u64 = 1 << 24;
/// Run id of the packets that probe a mechanism.
const TRIAL_ID: u32 = 0x7472_7900;
/// Number of packets that probe a mechanism.
const TRIAL_PACKETS: u64 = 200;
const TRIAL_PPS: f64 = 100_000.0;
/// Time limit for sending the probe packets: a sender on a busy machine starts late.
const TRIAL_SENDING: Duration = Duration::from_secs(2);
/// Time limit for the interface's counters: some drivers read them from the card only every two
/// seconds.
const TRIAL_COUNTING: Duration = Duration::from_millis(2500);
/// Time limit for the link to return after a driver has resized its rings for XDP.
const LINK: Duration = Duration::from_secs(15);

/// Opens the senders of an order; they wait for the order to start. [`Engine::Auto`] probes which
/// mechanism the driver supports with a few packets to the interface's own MAC, which no host
/// accepts.
///
/// # Errors
/// Fails if the order is invalid, the interface is missing, or no mechanism works.
pub fn senders(order: &SendOrder) -> Result<serve_send::Opened, BenchError> {
    check(order)?;
    let namespace = NetNs::current()?;
    let allowed = affinity::allowed_cpus()?;
    let cpus = match order.cpus.as_slice() {
        // The last CPU: interrupts prefer the first.
        [] => allowed.iter().rev().take(1).copied().collect(),
        cpus => cpus.to_vec(),
    };
    if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(BenchError::Refused(format!("no CPU {cpu} here: there are {allowed:?}")));
    }
    // The thread that answers the controller avoids the senders' CPUs if possible.
    let others: Vec<u16> = allowed.iter().filter(|cpu| !cpus.contains(cpu)).copied().collect();
    if !others.is_empty() {
        affinity::pin_thread(&others)?;
    }
    wait_for_link(&order.interface)?;
    let template = |run_id, to| Template::new(&order.stream, run_id, order.source_mac, to);
    let config = |number: usize, template, rate_pps| SenderConfig {
        namespace: namespace.clone(),
        interface: order.interface.clone(),
        cpu: cpus[number],
        number: order.first_number + number as u8,
        template,
        rate_pps,
        limit: order.limit.map(|packets| {
            let all = Counted { packets, first: order.first_flow };
            all.share(number, cpus.len(), order.stream.flows.count())
        }),
        burst: sender::burst(cpus.len()),
        timestamps: order.timestamps,
        spread: None,
        flood: None,
        yields: false,
        batch: BATCH,
    };
    let mut facts = BTreeMap::new();
    let engine = match order.engine {
        Engine::Auto => {
            let trial = SenderConfig {
                limit: None,
                ..config(0, template(TRIAL_ID, order.source_mac), Some(TRIAL_PPS))
            };
            let (engine, failures) = find(&trial)?;
            if !failures.is_empty() {
                facts.insert("sender falls back".into(), failures.join("; "));
            }
            engine
        }
        configured => configured,
    };
    let rate = sender::share_of_rate(order.rate_pps, cpus.len());
    let template = template(order.run_id, order.next_hop_mac);
    let senders: Result<Vec<Box<dyn Sender>>, BenchError> = (0..cpus.len())
        .map(|number| open_sender(engine, &config(number, template.clone(), rate)))
        .collect();
    facts.insert("sender".into(), engine_name(engine).into());
    facts.insert("sender CPUs".into(), format!("{cpus:?}"));
    Ok((senders?, facts))
}

/// Validates an order.
fn check(order: &SendOrder) -> Result<(), BenchError> {
    let refused = |why: String| Err(BenchError::Refused(why));
    check_packets(&order.stream)?;
    if usize::from(order.first_number) + order.cpus.len().max(1) > SENDERS_MAX {
        return refused(format!("more than {SENDERS_MAX} sending threads"));
    }
    if order.rate_pps.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
        return refused("a rate must be above 0".into());
    }
    interface_is_here(&order.interface)
}

/// Validates frame size and flows.
fn check_packets(stream: &Stream) -> Result<(), BenchError> {
    let Stream { family, frame_size: size, flows: Flows { sources, destinations }, .. } = *stream;
    let refused = |why: String| Err(BenchError::Refused(why));
    if !stream.endpoints().are_of(family) {
        return refused(format!("the addresses are not of {}", family.name()));
    }
    if !stream.endpoints().have_room_for(stream.flows) {
        return refused("the addresses of the flows go beyond the last address".into());
    }
    let smallest = Template::smallest_frame(family);
    if size.least() < smallest {
        return refused(format!(
            "no frame of {} bytes: of {} the smallest has {smallest}",
            size.least(),
            family.name()
        ));
    }
    let flows = u64::from(sources) * u64::from(destinations);
    if flows == 0 || flows > FLOWS_MAX {
        return refused(format!("{flows} flows: there are 1 to {FLOWS_MAX}"));
    }
    let most = fwdlab_packet::address::MAX_ADDRESSES;
    if sources.max(destinations) > most {
        return refused(format!("at most {most} sources and {most} destinations"));
    }
    Ok(())
}

/// Returns the fastest working mechanism, and why faster ones do not work.
fn find(trial: &SenderConfig) -> Result<(Engine, Vec<String>), BenchError> {
    let mut failures = Vec::new();
    for engine in [Engine::Xdp, Engine::Xsk, Engine::Packet] {
        match attempt(engine, trial) {
            Ok(()) => return Ok((engine, failures)),
            Err(why) => failures.push(format!("{}: {why}", engine_name(engine))),
        }
    }
    Err(BenchError::environment(
        format!("no way to send works on {}: {}", trial.interface, failures.join("; ")),
        "run as root; see `fwdlab doctor`",
    ))
}

/// Sends some packets and waits until the interface has counted them.
fn attempt(engine: Engine, trial: &SenderConfig) -> Result<(), String> {
    let counted = || counter(&trial.interface, "tx_packets");
    let before = counted();
    let sender = open_sender(engine, trial).map_err(|error| error.to_string())?;
    sender.start();
    wait_until(TRIAL_SENDING, || sender.sent().iter().sum::<u64>() >= TRIAL_PACKETS);
    let sent: u64 = sender.halt().map_err(|error| error.to_string())?.iter().sum();
    if sent == 0 {
        return Err("nothing was sent".into());
    }
    // Without interface counters the check is skipped.
    let Some(before) = before else { return Ok(()) };
    let left = || counted().unwrap_or(before).saturating_sub(before);
    match wait_until(TRIAL_COUNTING, || left() >= sent / 2) {
        true => Ok(()),
        false => Err(format!("{sent} packets were sent, {} left {}", left(), trial.interface)),
    }
}

/// Opens the receiver of an order; on return the link is up and packets are counted.
///
/// # Errors
/// Fails if the interface is missing or no mechanism works.
pub fn receiver(order: &ReceiveOrder) -> Result<serve_receive::Opened, BenchError> {
    interface_is_here(&order.interface)?;
    let namespace = NetNs::current()?;
    let watch = watch(order)?;
    let candidates: &[ReceiverKind] = match order.engine {
        Engine::Packet => &[ReceiverKind::Packet],
        _ => &[ReceiverKind::Xdp, ReceiverKind::XdpGeneric, ReceiverKind::Packet],
    };
    let mut failures = Vec::new();
    for &receiving in candidates {
        let ReceiveOrder { interface, cpus, .. } = order;
        match open_receiver(receiving, &namespace, interface, &watch, cpus) {
            Ok(receiver) => {
                wait_for_link(interface)?;
                return Ok((receiver, facts(receiving, &failures), arrivals::checked(&watch)));
            }
            Err(error) => failures.push(format!("{}: {error}", receiving.name())),
        }
    }
    Err(BenchError::environment(
        format!("no way to receive works on {}: {}", order.interface, failures.join("; ")),
        "run as root, and see whether another XDP program is attached (`ip link`)",
    ))
}

/// The packets to count according to the order.
fn watch(order: &ReceiveOrder) -> Result<Watch, BenchError> {
    let Some(expected) = &order.expected else {
        return Ok(Watch::Stamps { run_id: order.run_id, flows: order.flows });
    };
    check_packets(&expected.stream)?;
    if !(1..=SENDERS_MAX).contains(&usize::from(expected.senders)) {
        let senders = expected.senders;
        return Err(BenchError::Refused(format!(
            "{senders} sending threads: there are 1 to {SENDERS_MAX}"
        )));
    }
    Ok(Watch::Packets(Box::new(Expected {
        // The template has the sender's MACs; they are not compared.
        template: Template::new(&expected.stream, order.run_id, [0; 6], [0; 6]),
        destination_mac: Some(expected.destination_mac),
        source_mac: expected.source_mac,
        translated: expected.translated,
        hops: expected.hops,
        senders: expected.senders,
        timestamps: expected.timestamps,
        same_clock: expected.same_clock,
        sampled: expected.sampled,
    })))
}

fn facts(receiving: ReceiverKind, failures: &[String]) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::from([("receiver".to_owned(), receiving.name().to_owned())]);
    if !failures.is_empty() {
        facts.insert("receiver falls back".into(), failures.join("; "));
    }
    facts
}

/// Waits for carrier: some drivers take the link down when an XDP program is attached at either
/// end.
fn wait_for_link(interface: &str) -> Result<(), BenchError> {
    let carrier = format!("/sys/class/net/{interface}/carrier");
    match wait_until(LINK, || LocalHost.get(&carrier).is_ok_and(|carrier| carrier == "1")) {
        true => Ok(()),
        false => Err(BenchError::environment(
            format!("{interface} has had no link for {} s", LINK.as_secs()),
            format!("switch it on (`ip link set {interface} up`), and check cable and far end"),
        )),
    }
}

fn interface_is_here(interface: &str) -> Result<(), BenchError> {
    mac_of(interface).map(drop)
}

/// Returns the MAC of an interface of this machine.
///
/// # Errors
/// [`BenchError::Environment`] if there is no interface of this name or it has no MAC.
pub fn mac_of(interface: &str) -> Result<[u8; 6], BenchError> {
    let missing = || {
        BenchError::environment(
            format!("there is no Ethernet interface `{interface}` here"),
            "`ip -br link` lists them",
        )
    };
    if interface.contains('/') {
        return Err(missing());
    }
    let text = LocalHost.get(&format!("/sys/class/net/{interface}/address"));
    let text = text.map_err(|_| missing())?;
    let text: fwdlab_model::lab::Mac = text.parse().map_err(|_| missing())?;
    Ok(text.0)
}

/// Reads an interface counter of this machine; `None` if it does not exist.
fn counter(interface: &str, name: &str) -> Option<u64> {
    let path = format!("/sys/class/net/{interface}/statistics/{name}");
    LocalHost.get(&path).ok()?.parse().ok()
}

/// Polls a condition every millisecond; returns true once it holds, false after the time limit.
fn wait_until(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = clock::monotonic_ns() + patience.as_nanos() as u64;
    loop {
        let now = clock::monotonic_ns();
        if condition() {
            return true;
        }
        if now >= deadline {
            return false;
        }
        clock::sleep_until(now + 1_000_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_packet::Family;

    fn stream(bytes: u16, sources: u32, destinations: u32) -> Stream {
        Stream::new(Family::Inet6, bytes, Flows { sources, destinations })
    }

    fn order() -> SendOrder {
        SendOrder {
            interface: "lo".into(),
            source_mac: [2, 0, 0, 0, 0, 1],
            next_hop_mac: [2, 0, 0, 0, 0, 2],
            stream: stream(84, 10, 10),
            run_id: 1,
            first_number: 0,
            rate_pps: None,
            limit: None,
            first_flow: 0,
            timestamps: false,
            engine: Engine::Packet,
            cpus: vec![],
            at_most_ns: 1,
        }
    }

    #[test]
    fn invalid_orders_are_refused_before_opening() {
        let why = |order: SendOrder| check(&order).expect_err("refused").to_string();
        assert!(
            why(SendOrder { stream: stream(64, 10, 10), ..order() })
                .contains("the smallest has 84")
        );
        assert!(why(SendOrder { stream: stream(84, 0, 10), ..order() }).contains("0 flows"));
        assert!(why(SendOrder { stream: stream(84, 5000, 5000), ..order() }).contains("flows"));
        assert!(
            why(SendOrder { stream: stream(84, 65_025, 10), ..order() }).contains("65024 sources")
        );
        assert!(why(SendOrder { first_number: 15, cpus: vec![0, 1], ..order() }).contains("16"));
        assert!(why(SendOrder { rate_pps: Some(f64::NAN), ..order() }).contains("rate"));
        for name in ["no-such-one", "../lo", "lo"] {
            // The loopback interface has no valid MAC.
            let error = why(SendOrder { interface: name.into(), ..order() });
            assert!(error.contains(name) && error.contains("ip -br link"), "{error}");
        }
    }
}
