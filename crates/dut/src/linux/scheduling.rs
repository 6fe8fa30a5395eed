//! CPU assignment of the DUT's receive processing and queues (NAPI threads, RPS, XPS).

use crate::cpu::{self, Placement};
use crate::findings::Findings;
use crate::links::Links;
use crate::restore::SettingRestorer;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::{Arrangement, Napi, Settings};
use fwdlab_model::warning::Warning;

/// Configures polling, steering and queues according to the settings, and reads them back. Returns
/// the ids of the kernel threads that poll for the DUT on CPUs assigned to them, if this machine's
/// kernel knows them; empty if softirqs poll, or if the scheduler places the threads.
///
/// # Errors
/// Fails if an explicit placement is not possible; `napi = "auto"` falls back with a warning.
pub(crate) fn apply(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    links: &Links,
    settings: &Settings,
    placement: &Placement,
    findings: &mut Findings,
) -> Result<Vec<u32>, BenchError> {
    let mut bound = Vec::new();
    // With traffic in both directions packets arrive on both interfaces.
    let arriving = links.both().into_iter().take(settings.traffic.directions.count() as usize);
    for link in arriving {
        let interface = link.interface.as_str();
        bound.extend(configure_ingress(host, keeper, interface, settings, placement, findings)?);
    }
    // A device with one queue has no map to write.
    if settings.dut.bind_queues && settings.dut.queues > 1 {
        let expected = queue_maps(&links.egress.interface, settings.dut.queues, &placement.dut);
        keeper.put(host, &expected)?;
        verify_queue_maps(host, &expected, findings)?;
    }
    if !keeper.is_namespace() {
        bound.clear();
    }
    Ok(bound)
}

/// Configures the receive processing of an interface; returns the threads that poll it.
fn configure_ingress(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    ingress: &str,
    settings: &Settings,
    placement: &Placement,
    findings: &mut Findings,
) -> Result<Vec<u32>, BenchError> {
    let dut = &settings.dut;
    let mut bound = Vec::new();
    let threaded = match dut.napi {
        Napi::Threaded => true,
        Napi::Softirq => false,
        // A network card's softirqs run on the CPUs of its interrupts, a veth's on the sender's
        // CPU.
        Napi::Auto => keeper.is_namespace() && placement.arrangement == Arrangement::Open,
    };
    let polling = if threaded {
        let polled = keeper.put(host, &poll(ingress, "1"));
        match polled.and_then(|()| bind(host, ingress, &placement.dut)) {
            Ok(threads) => {
                bound = threads;
                format!("{} threads on CPUs {:?}", bound.len(), placement.dut)
            }
            Err(error) if dut.napi == Napi::Threaded => return Err(error),
            Err(error) => fall_back(host, keeper, ingress, settings, placement, &error, findings),
        }
    } else {
        let poll = poll(ingress, "0");
        // Kernels before Linux 5.12 have no NAPI threads.
        if host.get(&poll[0].0).is_ok() {
            keeper.put(host, &poll)?;
        }
        "softirq".to_owned()
    };
    findings.facts.insert(format!("{ingress} polling"), polling);
    if !dut.rps.is_empty() {
        let expected = steering(ingress, dut.queues, &dut.rps);
        keeper.put(host, &expected)?;
        let found = host.get(&expected[0].0)?;
        findings.expect("rps", short_mask(&dut.rps), short_mask(&found));
    }
    Ok(bound)
}

/// Fallbacks without permission to bind kernel threads: RPS, if permitted; otherwise unbound NAPI
/// threads; otherwise the sender's softirq.
fn fall_back(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    ingress: &str,
    settings: &Settings,
    placement: &Placement,
    error: &BenchError,
    findings: &mut Findings,
) -> String {
    let mask = cpu_mask(&placement.dut);
    let steered = keeper.put(host, &steering(ingress, settings.dut.queues, &mask));
    let used = if steered.is_ok() {
        let _ = keeper.put(host, &poll(ingress, "0"));
        format!("receive packet steering to CPUs {:?}", placement.dut)
    } else if host.get(&poll(ingress, "1")[0].0).is_ok_and(|value| value == "1") {
        "NAPI threads placed by the scheduler".to_owned()
    } else {
        "softirq on the sender's CPU".to_owned()
    };
    let why = format!("NAPI threads can't be bound to CPUs: {error}");
    findings.warnings.push(Warning::Fallback { used: used.clone(), why });
    used
}

/// Sysfs setting that makes an interface poll in NAPI threads (`1`) or softirqs (`0`).
fn poll(interface: &str, threaded: &str) -> [(String, String); 1] {
    [(format!("/sys/class/net/{interface}/threaded"), threaded.to_owned())]
}

/// Makes a temporary interface poll in NAPI threads and binds them to CPUs; returns their ids.
///
/// # Errors
/// Fails without permission to place kernel threads.
pub fn thread_polling(
    host: &dyn Host,
    interface: &str,
    cpus: &[u16],
) -> Result<Vec<u32>, BenchError> {
    poll(interface, "1").iter().try_for_each(|(path, value)| host.put(path, value))?;
    bind(host, interface, cpus)
}

/// Binds the threads that poll an interface to CPUs; returns their ids there. Kernel threads are
/// visible machine-wide, and the interface has the same name in every testbed: the lock of the
/// machine ensures that there is only one.
fn bind(host: &dyn Host, interface: &str, cpus: &[u16]) -> Result<Vec<u32>, BenchError> {
    const BIND: &str = r#"for file in /proc/[0-9]*/comm; do read -r name 2>/dev/null <"$file" || continue
case $name in "napi/$1-"*) pid=${file#/proc/} pid=${pid%/comm}
taskset -pc "$2" "$pid" >/dev/null || exit 1; echo "$pid";;
esac; done"#;
    let output = host.run(&["/bin/sh", "-c", BIND, "bind", interface, &cpu::list(cpus)], "")?;
    let threads: Vec<u32> = output.split_whitespace().flat_map(str::parse).collect();
    if threads.is_empty() {
        return Err(BenchError::environment(
            format!("the NAPI threads of {interface} do not show in /proc of {}", host.name()),
            "let root see all processes there (/proc not mounted with hidepid), or take napi = \
             \"softirq\"",
        ));
    }
    Ok(threads)
}

/// Paths and CPU mask for receive packet steering (RPS) of all queues; an empty mask disables it.
pub(crate) fn steering(ingress: &str, queues: u16, mask: &str) -> Vec<(String, String)> {
    let mask = if mask.is_empty() { "0" } else { mask };
    let path = |queue| format!("/sys/class/net/{ingress}/queues/rx-{queue}/rps_cpus");
    (0..queues).map(|queue| (path(queue), mask.to_owned())).collect()
}

/// Paths and masks for transmit packet steering (XPS): transmit queue i belongs to the DUT's CPU i
/// modulo the number of CPUs.
fn queue_maps(egress: &str, queues: u16, cpus: &[u16]) -> Vec<(String, String)> {
    let path = |queue| format!("/sys/class/net/{egress}/queues/tx-{queue}/xps_cpus");
    let pairs = (0..queues).zip(cpus.iter().cycle());
    pairs.map(|(queue, &cpu)| (path(queue), cpu_mask(&[cpu]))).collect()
}

/// Reads [`queue_maps`] back.
///
/// # Errors
/// Fails if a map cannot be read.
fn verify_queue_maps(
    host: &dyn Host,
    expected: &[(String, String)],
    findings: &mut Findings,
) -> Result<(), BenchError> {
    for (path, mask) in expected {
        let found = host.get(path)?;
        let name = path.trim_start_matches("/sys/class/net/").replace("/queues/", " ");
        findings.expect(&name.replace('/', " "), mask, short_mask(&found));
    }
    Ok(())
}

/// A CPU mask in the format of sysfs; only CPUs below 64 are supported.
fn cpu_mask(cpus: &[u16]) -> String {
    format!("{:x}", cpus.iter().filter(|&&cpu| cpu < 64).fold(0u64, |mask, cpu| mask | 1 << cpu))
}

/// A mask printed by sysfs, without leading zeros.
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
    fn cpu_masks_are_formatted_and_shortened() {
        assert_eq!(cpu_mask(&[0, 5]), "21");
        assert_eq!(short_mask("00000000,00000002"), "2");
        assert_eq!(short_mask("0"), "0");
    }

    #[test]
    fn queue_maps_cycle_through_the_cpus() {
        let host = fwdlab_host::FakeHost::default();
        for queue in 0..3 {
            let path = format!("/sys/class/net/d1/queues/tx-{queue}/xps_cpus");
            if let Ok(mut files) = host.files.lock() {
                files.insert(path, String::new());
            }
        }
        let mut findings = Findings::default();
        let expected = queue_maps("d1", 3, &[0, 1]);
        expected.iter().for_each(|(path, mask)| host.put(path, mask).expect("bound"));
        verify_queue_maps(&host, &expected, &mut findings).expect("read back");
        assert_eq!(findings.facts["d1 tx-2 xps_cpus"], "1");
        assert_eq!(findings.facts["d1 tx-1 xps_cpus"], "2");
        assert!(findings.warnings.is_empty());
    }
}
