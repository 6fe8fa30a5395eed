//! CPU assignment of the DUT's receive processing and queues (NAPI threads, RPS, XPS).

use crate::cpu::{self, Placement};
use crate::findings::Findings;
use crate::links::Links;
use crate::restore::SettingRestorer;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::{Arrangement, Napi, Settings};
use fwdlab_model::warning::Warning;

/// Places polling, steering and queues as the settings say, and reads back. Returns the
/// kernel threads (their ids) that poll for the DUT on CPUs given to them, where this
/// machine's kernel knows them; none where softirqs do, or where threads run wherever the
/// scheduler puts them.
///
/// # Errors
/// When a placement that was named can't be had; `napi = "auto"` takes what it
/// can get and says so.
pub(crate) fn apply(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    links: &Links,
    settings: &Settings,
    placement: &Placement,
    findings: &mut Findings,
) -> Result<Vec<u32>, BenchError> {
    let mut bound = Vec::new();
    // Packets arrive on both interfaces where they go in both directions.
    let arriving = links.both().into_iter().take(settings.traffic.directions.count() as usize);
    for link in arriving {
        let interface = link.interface.as_str();
        bound.extend(receiving(host, keeper, interface, settings, placement, findings)?);
    }
    // A device of one queue has no map to write: there is nothing to bind.
    if settings.dut.bind_queues && settings.dut.queues > 1 {
        let wanted = queue_maps(&links.egress.interface, settings.dut.queues, &placement.dut);
        keeper.put(host, &wanted)?;
        verify_queue_maps(host, &wanted, findings)?;
    }
    if !keeper.is_namespace() {
        bound.clear();
    }
    Ok(bound)
}

/// Places what an interface receives; returns the threads that poll it.
fn receiving(
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
        // A network card's softirqs run where its interrupts do, a veth's where it is sent
        // from.
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
        // Before Linux 5.12 there are no threads for it.
        if host.get(&poll[0].0).is_ok() {
            keeper.put(host, &poll)?;
        }
        "softirq".to_owned()
    };
    findings.facts.insert(format!("{ingress} polling"), polling);
    if !dut.rps.is_empty() {
        let wanted = steering(ingress, dut.queues, &dut.rps);
        keeper.put(host, &wanted)?;
        let found = host.get(&wanted[0].0)?;
        findings.expect("rps", short_mask(&dut.rps), short_mask(&found));
    }
    Ok(bound)
}

/// Fallbacks without permission to bind kernel threads: RPS, if permitted; else unbound NAPI
/// threads; else the sender's softirq.
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

/// Makes a temporary interface poll in NAPI threads and binds them to CPUs; returns their
/// ids.
///
/// # Errors
/// Without the right to place kernel threads.
pub fn thread_polling(
    host: &dyn Host,
    interface: &str,
    cpus: &[u16],
) -> Result<Vec<u32>, BenchError> {
    poll(interface, "1").iter().try_for_each(|(path, value)| host.put(path, value))?;
    bind(host, interface, cpus)
}

/// Binds the threads that poll an interface to CPUs; returns their ids there. Kernel threads
/// are visible machine-wide, and the interface's name is the same in every testbed: the
/// lock of the machine makes sure that there is one only.
fn bind(host: &dyn Host, interface: &str, cpus: &[u16]) -> Result<Vec<u32>, BenchError> {
    const BIND: &str = r#"for file in /proc/[0-9]*/comm; do read -r name 2>/dev/null <"$file" || continue
case $name in "napi/$1-"*) pid=${file#/proc/} pid=${pid%/comm}
taskset -pc "$2" "$pid" >/dev/null || exit 1; echo "$pid";;
esac; done"#;
    let said = host.run(&["/bin/sh", "-c", BIND, "bind", interface, &cpu::list(cpus)], "")?;
    let threads: Vec<u32> = said.split_whitespace().flat_map(str::parse).collect();
    if threads.is_empty() {
        return Err(BenchError::environment(
            format!("the NAPI threads of {interface} do not show in /proc of {}", host.name()),
            "let root see all processes there (/proc not mounted with hidepid), or take napi = \
             \"softirq\"",
        ));
    }
    Ok(threads)
}

/// Receive packet steering (RPS) of all queues as path and CPU mask; an empty mask is off.
pub(crate) fn steering(ingress: &str, queues: u16, mask: &str) -> Vec<(String, String)> {
    let mask = if mask.is_empty() { "0" } else { mask };
    let path = |queue| format!("/sys/class/net/{ingress}/queues/rx-{queue}/rps_cpus");
    (0..queues).map(|queue| (path(queue), mask.to_owned())).collect()
}

/// Transmit packet steering (XPS): transmit queue i belongs to the DUT's CPU i modulo the
/// number of CPUs; path and mask of each queue.
fn queue_maps(egress: &str, queues: u16, cpus: &[u16]) -> Vec<(String, String)> {
    let path = |queue| format!("/sys/class/net/{egress}/queues/tx-{queue}/xps_cpus");
    let pairs = (0..queues).zip(cpus.iter().cycle());
    pairs.map(|(queue, &cpu)| (path(queue), cpu_mask(&[cpu]))).collect()
}

/// Reads [`queue_maps`] back.
///
/// # Errors
/// When one can't be read.
fn verify_queue_maps(
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
fn cpu_mask(cpus: &[u16]) -> String {
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
        let host = fwdlab_host::FakeHost::default();
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
