//! Which CPU does the DUT's receive work, and which queue belongs to which CPU.

use super::linux::Findings;
use crate::cpu::Placement;
use crate::error::BenchError;
use crate::host::Host;
use crate::lab::links::Links;
use crate::schedstat;
use fwdlab_model::settings::{Arrangement, Napi, Settings};
use fwdlab_model::warning::Warning;

/// Places polling, steering and queues as the settings say, and reads back. Returns the
/// kernel threads (their ids) that poll for the DUT on CPUs given to them; none where
/// softirqs do, or where threads run wherever the scheduler puts them.
///
/// # Errors
/// When a placement that was named can't be had; `napi = "auto"` takes what it
/// can get and says so.
pub fn apply(
    host: &dyn Host,
    links: &Links,
    settings: &Settings,
    placement: &Placement,
    findings: &mut Findings,
) -> Result<Vec<u32>, BenchError> {
    let ingress = links.ingress.interface.as_str();
    let mut bound = Vec::new();
    let threaded = match settings.dut.napi {
        Napi::Threaded => true,
        Napi::Softirq => false,
        Napi::Auto => placement.arrangement == Arrangement::Open,
    };
    let polling = if threaded {
        match thread_polling(host, ingress, &placement.dut) {
            Ok(threads) => {
                bound = threads;
                format!("{} threads on CPUs {:?}", bound.len(), placement.dut)
            }
            Err(error) if settings.dut.napi == Napi::Threaded => return Err(error),
            Err(error) => fall_back(host, ingress, settings, placement, &error, findings),
        }
    } else {
        "softirq".to_owned()
    };
    findings.facts.insert(format!("{ingress} polling"), polling);
    if !settings.dut.rps.is_empty() {
        steer(host, ingress, settings.dut.queues, &settings.dut.rps)?;
        let found = host.get(&format!("/sys/class/net/{ingress}/queues/rx-0/rps_cpus"))?;
        findings.expect("rps", short_mask(&settings.dut.rps), short_mask(&found));
    }
    // A device of one queue has no map to write: there is nothing to bind.
    if settings.dut.bind_queues && settings.dut.queues > 1 {
        let wanted = queue_maps(&links.egress.interface, settings.dut.queues, &placement.dut);
        wanted.iter().try_for_each(|(path, mask)| host.put(path, mask))?;
        verify_queue_maps(host, &wanted, findings)?;
    }
    Ok(bound)
}

/// Without the right to bind kernel threads: steering moves the work, if that is
/// allowed; else threads that the scheduler places; else the sender's softirq.
fn fall_back(
    host: &dyn Host,
    ingress: &str,
    settings: &Settings,
    placement: &Placement,
    error: &BenchError,
    findings: &mut Findings,
) -> String {
    let threaded = format!("/sys/class/net/{ingress}/threaded");
    let used = if steer(host, ingress, settings.dut.queues, &cpu_mask(&placement.dut)).is_ok() {
        let _ = host.put(&threaded, "0");
        format!("receive packet steering to CPUs {:?}", placement.dut)
    } else if host.get(&threaded).is_ok_and(|value| value == "1") {
        "NAPI threads placed by the scheduler".to_owned()
    } else {
        "softirq on the sender's CPU".to_owned()
    };
    let why = format!("NAPI threads can't be bound to CPUs: {error}");
    findings.warnings.push(Warning::Fallback { used: used.clone(), why });
    used
}

/// Makes an interface poll in kernel threads and binds them; returns their ids.
///
/// # Errors
/// Without the right to place kernel threads.
pub fn thread_polling(
    host: &dyn Host,
    interface: &str,
    cpus: &[u16],
) -> Result<Vec<u32>, BenchError> {
    // Kernel threads are visible machine-wide and the interface's name is the
    // same in every testbed: the journal's lock makes sure that there is one only.
    host.put(&format!("/sys/class/net/{interface}/threaded"), "1")?;
    let threads = schedstat::tasks("/proc", &format!("napi/{interface}-"));
    if threads.is_empty() {
        return Err(BenchError::environment(
            format!("the NAPI threads of {interface} do not show in /proc"),
            "run fwdlab where /proc shows kernel threads (not with hidepid)",
        ));
    }
    for &thread in &threads {
        fwdlab_port::affinity::pin_task(thread, cpus)?;
    }
    Ok(threads)
}

fn steer(host: &dyn Host, ingress: &str, queues: u16, mask: &str) -> Result<(), BenchError> {
    let wanted = steering(ingress, queues, mask);
    wanted.iter().try_for_each(|(path, mask)| host.put(path, mask))
}

/// Receive packet steering of all queues, path and mask; an empty mask is none.
pub(super) fn steering(ingress: &str, queues: u16, mask: &str) -> Vec<(String, String)> {
    let mask = if mask.is_empty() { "0" } else { mask };
    let path = |queue| format!("/sys/class/net/{ingress}/queues/rx-{queue}/rps_cpus");
    (0..queues).map(|queue| (path(queue), mask.to_owned())).collect()
}

/// Outgoing queue i belongs to the i-th CPU of the DUT, round and round (XPS): path and
/// mask of each.
pub(super) fn queue_maps(egress: &str, queues: u16, cpus: &[u16]) -> Vec<(String, String)> {
    let path = |queue| format!("/sys/class/net/{egress}/queues/tx-{queue}/xps_cpus");
    let pairs = (0..queues).zip(cpus.iter().cycle());
    pairs.map(|(queue, &cpu)| (path(queue), cpu_mask(&[cpu]))).collect()
}

/// Reads [`queue_maps`] back.
///
/// # Errors
/// When one can't be read.
pub(super) fn verify_queue_maps(
    host: &dyn Host,
    wanted: &[(String, String)],
    findings: &mut Findings,
) -> Result<(), BenchError> {
    for (path, mask) in wanted {
        let found = host.get(path)?;
        let name = path.trim_start_matches("/sys/class/net/").replace("/queues/", " ");
        findings.expect(&name.replace('/', " "), mask, short_mask(&found));
    }
    Ok(())
}

/// A CPU mask as sysfs takes it; only the CPUs below 64 are used here.
pub(super) fn cpu_mask(cpus: &[u16]) -> String {
    format!("{:x}", cpus.iter().filter(|&&cpu| cpu < 64).fold(0u64, |mask, cpu| mask | 1 << cpu))
}

/// A mask as sysfs prints it, without leading zeros.
pub fn short_mask(mask: &str) -> &str {
    match mask.trim_start_matches(['0', ',']) {
        "" => "0",
        short => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        assert_eq!(cpu_mask(&[0, 5]), "21");
        assert_eq!(short_mask("00000000,00000002"), "2");
        assert_eq!(short_mask("0"), "0");
    }

    #[test]
    fn one_queue_has_nothing_to_bind_and_more_go_round_the_cpus() {
        let host = crate::host::FakeHost::default();
        for queue in 0..3 {
            let path = format!("/sys/class/net/d1/queues/tx-{queue}/xps_cpus");
            if let Ok(mut files) = host.files.lock() {
                files.insert(path, String::new());
            }
        }
        let mut findings = Findings::default();
        let wanted = queue_maps("d1", 3, &[0, 1]);
        wanted.iter().for_each(|(path, mask)| host.put(path, mask).expect("bound"));
        verify_queue_maps(&host, &wanted, &mut findings).expect("read back");
        assert_eq!(findings.facts["d1 tx-2 xps_cpus"], "1");
        assert_eq!(findings.facts["d1 tx-1 xps_cpus"], "2");
        assert!(findings.warnings.is_empty());
    }
}
