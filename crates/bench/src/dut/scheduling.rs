//! Which CPU does the DUT's receive work, and which queue belongs to which CPU.

use super::linux::Findings;
use super::{EGRESS, INGRESS};
use crate::cpu::Placement;
use crate::error::BenchError;
use crate::host::Host;
use fwdlab_model::settings::{Arrangement, Napi, Settings};
use fwdlab_model::warning::Warning;

/// Places polling, steering and queues as the settings say, and reads back.
///
/// # Errors
/// When a placement that was named can't be had; `napi = "auto"` takes what it
/// can get and says so.
pub fn apply(
    host: &dyn Host,
    settings: &Settings,
    placement: &Placement,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let threaded = match settings.dut.napi {
        Napi::Threaded => true,
        Napi::Softirq => false,
        Napi::Auto => placement.arrangement == Arrangement::Open,
    };
    let polling = if threaded {
        match thread_polling(host, INGRESS, &placement.dut) {
            Ok(threads) => format!("{threads} threads on CPUs {:?}", placement.dut),
            Err(error) if settings.dut.napi == Napi::Threaded => return Err(error),
            Err(error) => fall_back(host, settings, placement, &error, findings),
        }
    } else {
        "softirq".to_owned()
    };
    findings.facts.insert("d0 polling".into(), polling);
    if !settings.dut.rps.is_empty() {
        steer(host, settings.dut.queues, &settings.dut.rps)?;
        let found = host.get(&format!("/sys/class/net/{INGRESS}/queues/rx-0/rps_cpus"))?;
        findings.expect("rps", short_mask(&settings.dut.rps), short_mask(&found));
    }
    // A device of one queue has no map to write: there is nothing to bind.
    if settings.dut.bind_queues && settings.dut.queues > 1 {
        bind_queues(host, settings.dut.queues, &placement.dut, findings)?;
    }
    Ok(())
}

/// Without the right to bind kernel threads: steering moves the work, if that is
/// allowed; else threads that the scheduler places; else the sender's softirq.
fn fall_back(
    host: &dyn Host,
    settings: &Settings,
    placement: &Placement,
    error: &BenchError,
    findings: &mut Findings,
) -> String {
    let threaded = format!("/sys/class/net/{INGRESS}/threaded");
    let used = if steer(host, settings.dut.queues, &cpu_mask(&placement.dut)).is_ok() {
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

/// Makes an interface poll in kernel threads and binds them; returns their number.
///
/// # Errors
/// Without the right to place kernel threads.
pub fn thread_polling(host: &dyn Host, interface: &str, cpus: &[u16]) -> Result<usize, BenchError> {
    // Kernel threads are visible machine-wide and the interface's name is the
    // same in every testbed: the journal's lock makes sure that there is one only.
    host.put(&format!("/sys/class/net/{interface}/threaded"), "1")?;
    let threads = napi_threads(interface);
    if threads.is_empty() {
        return Err(BenchError::environment(
            format!("the NAPI threads of {interface} do not show in /proc"),
            "run fwdlab where /proc shows kernel threads (not with hidepid)",
        ));
    }
    for &thread in &threads {
        fwdlab_port::affinity::pin_task(thread, cpus)?;
    }
    Ok(threads.len())
}

/// Sets receive packet steering of all queues; an empty mask is none.
///
/// # Errors
/// When the kernel refuses, as it does in a user namespace.
pub fn steer(host: &dyn Host, queues: u16, mask: &str) -> Result<(), BenchError> {
    let mask = if mask.is_empty() { "0" } else { mask };
    (0..queues).try_for_each(|queue| {
        host.put(&format!("/sys/class/net/{INGRESS}/queues/rx-{queue}/rps_cpus"), mask)
    })
}

/// Outgoing queue i belongs to the i-th CPU of the DUT, round and round (XPS).
fn bind_queues(
    host: &dyn Host,
    queues: u16,
    cpus: &[u16],
    findings: &mut Findings,
) -> Result<(), BenchError> {
    for (queue, &cpu) in (0..queues).zip(cpus.iter().cycle()) {
        let mask = cpu_mask(&[cpu]);
        let path = format!("/sys/class/net/{EGRESS}/queues/tx-{queue}/xps_cpus");
        host.put(&path, &mask)?;
        let found = host.get(&path)?;
        findings.expect(&format!("d1 tx-{queue} xps_cpus"), &mask, short_mask(&found));
    }
    Ok(())
}

/// A CPU mask as sysfs takes it; only the CPUs below 64 are used here.
fn cpu_mask(cpus: &[u16]) -> String {
    format!("{:x}", cpus.iter().filter(|&&cpu| cpu < 64).fold(0u64, |mask, cpu| mask | 1 << cpu))
}

/// A mask as sysfs prints it, without leading zeros.
fn short_mask(mask: &str) -> &str {
    match mask.trim_start_matches(['0', ',']) {
        "" => "0",
        short => short,
    }
}

/// Kernel threads that poll an interface.
fn napi_threads(interface: &str) -> Vec<u32> {
    let wanted = format!("napi/{interface}-");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|comm| comm.starts_with(&wanted))
        })
        .collect()
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
        bind_queues(&host, 3, &[0, 1], &mut findings).expect("bound");
        assert_eq!(findings.facts["d1 tx-2 xps_cpus"], "1");
        assert_eq!(findings.facts["d1 tx-1 xps_cpus"], "2");
        assert!(findings.warnings.is_empty());
    }
}
