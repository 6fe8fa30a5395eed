//! Polling of the receiver's interface, and the CPU time that it costs the device.
//!
//! By default a veth is polled in a softirq on the CPU that sends into it: the DUT's. The
//! receiver's counting, and with live frames the return of every frame to the sender's page pool
//! with its locks, would then use the DUT's CPU time. So a NAPI thread polls r0, on a dedicated CPU
//! or on the sender's.
//!
//! Two measures make polling cheap. A timer defers the poll: otherwise the DUT would wake another
//! CPU for nearly every packet, which on a virtual machine costs more than forwarding it. And the
//! thread has priority over the sender, whose time slices are longer than the time to fill the 256
//! frames of a veth's ring.

use crate::cpu::Placement;
use crate::dut::findings::Findings;
use crate::dut::linux::scheduling::thread_polling;
use crate::error::BenchError;
use crate::host::{Host, NamespaceHost};
use crate::wiring::Wiring;
use fwdlab_model::record::{Counter, DeviceTime, ReceiverPlace};
use fwdlab_model::settings::{Arrangement, Rate};
use fwdlab_model::warning::Warning;
use fwdlab_netio::affinity;

/// Time between two polls, nanoseconds. A ring of 256 frames lasts five times as long at a million
/// packets per second; in trials, 20 us cost the sender half of its rate.
const POLL_NS: u32 = 50_000;
/// Polls without a packet before the thread sleeps until the next wake-up: never, in a run.
const IDLE_POLLS: u32 = 2_000_000_000;
/// The DUT's counter of frames that found the receiver's ring full.
pub(super) const REFUSED: [&str; 2] = ["d1 tx_dropped", "d0 tx_dropped"];
/// Share of the device's CPU time that the receiver may use without a warning.
const TOLERATED: f64 = 0.1;

/// Sets up polling of r0 by `placement`; returns the polling threads, an empty list if the DUT
/// polls.
///
/// # Errors
/// Returns an error if kernel threads cannot be placed, or `/proc` does not show them.
pub(super) fn poll(
    wiring: &Wiring,
    placement: &Placement,
    is_both: bool,
) -> Result<Vec<u32>, BenchError> {
    if placement.receiver.is_empty() {
        return Ok(Vec::new());
    }
    let ends = [(&wiring.receiver, "r0"), (&wiring.sender, "g0")];
    let mut threads = Vec::new();
    for (namespace, interface) in ends.into_iter().take(if is_both { 2 } else { 1 }) {
        let host = NamespaceHost::new(namespace, &placement.control)?;
        threads.extend(thread_polling(&host, interface, &placement.receiver)?);
        for (name, value) in [("napi_defer_hard_irqs", IDLE_POLLS), ("gro_flush_timeout", POLL_NS)]
        {
            host.put(&format!("/sys/class/net/{interface}/{name}"), &value.to_string())?;
        }
    }
    threads.iter().try_for_each(|&thread| affinity::put_first(thread))?;
    Ok(threads)
}

/// Makes the sending CPU poll r0 immediately: a packet's latency then contains neither a timer nor
/// the wake-up of another CPU. The receiver's work per packet then uses the DUT's CPU. Without the
/// permission to change this, no thread was set up either, see [`poll_or_say`].
pub(super) fn poll_at_once(wiring: &Wiring, findings: &mut Findings) {
    let restore = || {
        let host = NamespaceHost::new(&wiring.receiver, &[])?;
        let names = ["napi_defer_hard_irqs", "gro_flush_timeout", "threaded"];
        names.iter().try_for_each(|name| host.put(&format!("/sys/class/net/r0/{name}"), "0"))
    };
    let polling = match restore() {
        Ok(()) => "softirq of the DUT, at once".to_owned(),
        Err(error) => format!("as at other times: {error}"),
    };
    findings.facts.insert("r0 polling while packets are timed".into(), polling);
}

/// Runs [`poll`], with a remark if that is not permitted: the DUT then polls r0, as without
/// threads.
pub(super) fn poll_or_say(
    wiring: &Wiring,
    placement: &Placement,
    is_both: bool,
    findings: &mut Findings,
) -> Vec<u32> {
    let (threads, polling) = match poll(wiring, placement, is_both) {
        Ok(threads) if threads.is_empty() => (threads, "softirq of the DUT".to_owned()),
        Ok(threads) => {
            let polling = format!("{} threads on CPUs {:?}", threads.len(), placement.receiver);
            (threads, polling)
        }
        Err(error) => {
            findings.warnings.push(Warning::Fallback {
                used: "the receiver's polling on the DUT's CPU".into(),
                why: error.to_string(),
            });
            (Vec::new(), "softirq of the DUT".to_owned())
        }
    };
    let what = if is_both { "r0 and g0 polling" } else { "r0 polling" };
    findings.facts.insert(what.into(), polling);
    threads
}

/// Returns the place of the threads `receiver`.
pub(super) fn place(receiver: &[u32], placement: &Placement) -> ReceiverPlace {
    let on = |cpus: &[u16]| placement.receiver.iter().any(|cpu| cpus.contains(cpu));
    match receiver {
        [] => ReceiverPlace::Within,
        _ if on(&placement.dut) => ReceiverPlace::Device,
        _ if on(&placement.senders) => ReceiverPlace::Sender,
        _ => ReceiverPlace::Own,
    }
}

/// Returns a warning if the receiver used too much of the device's CPU time. In the closed
/// arrangement sender, device and receiver share each CPU by design, and the rate is the joint rate
/// of all three.
pub(crate) fn doubt(time: &DeviceTime, placement: &Placement) -> Option<Warning> {
    if placement.arrangement == Arrangement::Closed || time.receiver == ReceiverPlace::Unknown {
        return None;
    }
    let share = time.receiver_share();
    let is_much = share.is_none_or(|share| share > TOLERATED);
    is_much.then_some(Warning::ReceiverOnDevice { share })
}

/// Returns a warning about frames lost because the ring of a receiver on another CPU was full; veth
/// counts them as the DUT's drops. At the maximum rate a few are lost whenever the hypervisor
/// steals the receiver's CPU; at a paced rate each would be reported as loss.
pub(crate) fn refused(
    counters: &[Counter],
    forwarded: u64,
    rate: Rate,
    time: &DeviceTime,
) -> Option<Warning> {
    let polls = [ReceiverPlace::Own, ReceiverPlace::Sender, ReceiverPlace::Device];
    // With traffic in one direction, the device sends no test packets through d0.
    let dropped = counters.iter().filter(|counter| REFUSED.contains(&counter.name.as_str()));
    let packets: u64 = dropped.map(Counter::delta).sum();
    let tolerated = if rate == Rate::Max { forwarded / 1000 } else { 0 };
    (polls.contains(&time.receiver) && packets > tolerated)
        .then_some(Warning::ReceiverDropped { packets })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::place_all;

    #[test]
    fn receiver_causes_a_warning_only_on_the_duts_cpu() {
        let mut placement = place_all(&[0, 1], Arrangement::Open, 1, 1);
        assert_eq!(place(&[7], &placement), ReceiverPlace::Sender);
        assert_eq!(place(&[], &placement), ReceiverPlace::Within);
        let time = |receiver, receiver_ns| DeviceTime {
            ran_ns: Some(900),
            receiver_ns: Some(receiver_ns),
            receiver_cpus: vec![0],
            receiver,
        };
        let doubts = |time| doubt(&time, &placement);
        assert_eq!(doubts(time(ReceiverPlace::Sender, 800)), None);
        assert_eq!(doubts(time(ReceiverPlace::Device, 50)), None);
        let share = Some(0.4);
        assert_eq!(
            doubts(time(ReceiverPlace::Device, 600)),
            Some(Warning::ReceiverOnDevice { share })
        );
        assert_eq!(
            doubts(time(ReceiverPlace::Within, 0)),
            Some(Warning::ReceiverOnDevice { share: None })
        );
        placement.receiver = vec![1];
        assert_eq!(place(&[7], &placement), ReceiverPlace::Device);
        let closed = place_all(&[0, 1], Arrangement::Closed, 1, 1);
        assert_eq!(doubt(&time(ReceiverPlace::Within, 0), &closed), None);
        let dedicated = place_all(&[0, 1, 2], Arrangement::Open, 1, 1);
        assert_eq!(place(&[7], &dedicated), ReceiverPlace::Own);
    }

    #[test]
    fn full_receiver_ring_causes_a_warning() {
        let dropped = |after| {
            vec![Counter { name: "d1 tx_dropped".into(), before: 10, after, expected: None }]
        };
        let elsewhere = DeviceTime { receiver: ReceiverPlace::Sender, ..DeviceTime::default() };
        let within = DeviceTime { receiver: ReceiverPlace::Within, ..DeviceTime::default() };
        let warned = |after, rate, time| refused(&dropped(after), 100_000, rate, time);
        let warning = |packets| Some(Warning::ReceiverDropped { packets });
        assert_eq!(warned(110, Rate::Max, &elsewhere), None);
        assert_eq!(warned(111, Rate::Max, &elsewhere), warning(101));
        assert_eq!(warned(11, Rate::Pps(1000.0), &elsewhere), warning(1));
        assert_eq!(warned(10, Rate::Pps(1000.0), &elsewhere), None);
        // If the DUT itself polls, a full ring has other causes.
        assert_eq!(warned(5000, Rate::Max, &within), None);
        assert_eq!(refused(&[], 100_000, Rate::Max, &elsewhere), None);
    }
}
