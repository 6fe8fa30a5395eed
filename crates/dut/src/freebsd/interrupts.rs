//! Interrupts of the queues of the DUT's interfaces, and the CPUs that serve them.
//!
//! Interrupt names depend on the driver: `irq284: t5nex0:0a3` is queue 3 of port 0 of a Chelsio
//! adapter, `irq264: ix0:rxq1` queue 1 of an interface that uses iflib(4), `irq276: igb1:que 3` of
//! an older one. All interrupts of vtnet(4) have the name of their bus, `irq27: virtio_pci1`: first
//! the configuration interrupt, then one for each queue, `rxq0`, `txq0`, `rxq1` ... (observed on
//! FreeBSD 13.2 with MSI-X). Other drivers, and a vtnet whose queues share an interrupt, are
//! rejected.

use super::backup::Backup;
use super::queues::driver;
use crate::findings::Findings;
use crate::links::Links;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;

/// Note of the bound interrupts.
const NOTE: &str = "interrupts";

/// Interrupt of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Interrupt number.
    pub irq: u32,
    /// Queue.
    pub queue: u16,
}

/// Numbers, names and totals from the output of `vmstat -ai`.
pub fn parse(text: &str) -> Vec<(u32, String, u64)> {
    let line = |line: &str| {
        let (irq, rest) = line.trim().strip_prefix("irq")?.split_once(':')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (name, numbers) = words.split_at(words.len().checked_sub(2)?);
        let total = numbers.first()?.parse().ok()?;
        // An unassigned interrupt has no name.
        Some((irq.parse().ok()?, name.join(" "), total)).filter(|(_, name, _)| !name.is_empty())
    };
    text.lines().filter_map(line).collect()
}

/// Interrupts of an interface's queues, ordered by queue.
///
/// # Errors
/// Fails if interrupts cannot be listed or no name is recognised.
pub fn of(host: &dyn Host, interface: &str) -> Result<Vec<Interrupt>, BenchError> {
    let all = parse(&host.run(&["vmstat", "-ai"], "")?);
    let (name, unit) = driver(interface);
    let oid = |last: &str| host.run(&["sysctl", "-n", &format!("dev.{name}.{unit}.{last}")], "");
    // Chelsio's interrupts are named after the adapter and the port.
    let (parent, port) = match name {
        "cxgbe" | "cxl" | "cc" => {
            let location = oid("%location").unwrap_or_default();
            let port = location.split_whitespace().find_map(|word| word.strip_prefix("port="));
            (oid("%parent")?.trim().to_owned(), Some(port.unwrap_or(unit).to_owned()))
        }
        _ => (format!("{name}{unit}"), None),
    };
    let queue = |name: &str| {
        let rest = name.strip_prefix(&parent)?.strip_prefix(':')?;
        port.as_ref().map_or_else(|| plain_queue(rest), |port| chelsio_queue(rest, port))
    };
    let mut found: Vec<Interrupt> = match name {
        "vtnet" => virtio_queues(&all, oid("%parent")?.trim()),
        _ => all
            .iter()
            .filter_map(|(irq, name, _)| Some(Interrupt { irq: *irq, queue: queue(name)? }))
            .collect(),
    };
    found.sort_by_key(|interrupt| interrupt.queue);
    if found.is_empty() {
        return Err(BenchError::Refused(format!(
            "bind_interrupts: no interrupt in the output of `vmstat -ai` on {} is known as one of \
             {interface}'s queues\n  next step: leave it out, or bind them by a command of the \
             revision's `install` (cpuset -l CPU -x IRQ)",
            host.name()
        )));
    }
    Ok(found)
}

/// Interrupts of a vtnet's queues by the name of its bus; empty if the queues share one.
fn virtio_queues(all: &[(u32, String, u64)], bus: &str) -> Vec<Interrupt> {
    let of_bus = all.iter().filter(|(_, name, _)| name == bus);
    let mut numbers: Vec<u32> = of_bus.map(|(irq, ..)| *irq).collect();
    numbers.sort_unstable();
    match numbers.split_first() {
        Some((_, queues)) if !queues.is_empty() && queues.len() % 2 == 0 => {
            let numbered = queues.iter().zip(0..);
            numbered.map(|(&irq, index)| Interrupt { irq, queue: index / 2 }).collect()
        }
        _ => Vec::new(),
    }
}

/// Parses `0a3` (port, virtual interface, queue in hexadecimal) or, up to FreeBSD 10, `0.3`.
pub fn chelsio_queue(text: &str, port: &str) -> Option<u16> {
    let rest = text.strip_prefix(port)?;
    match rest.strip_prefix('a') {
        Some(queue) => u16::from_str_radix(queue, 16).ok(),
        None => rest.strip_prefix('.')?.parse().ok(),
    }
}

/// Parses `rxq3`, `rxq3:txq3`, `q3`, `que 3`, `queue 3`.
pub fn plain_queue(text: &str) -> Option<u16> {
    let rest = ["rxq", "queue", "que", "q"].iter().find_map(|word| text.strip_prefix(word))?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Binds queue n of both interfaces to CPU n, or releases interrupts that were bound before to all
/// CPUs.
///
/// # Errors
/// Fails if interrupts are not found or a CPU is rejected.
pub fn apply(
    host: &dyn Host,
    backup: &Backup,
    links: &Links,
    bind: bool,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let cpus: u16 = host.run(&["sysctl", "-n", "hw.ncpu"], "")?.trim().parse().unwrap_or(1).max(1);
    if !bind {
        // The numbers may be from an earlier boot: interrupts that no longer exist are skipped.
        if let Some(bound) = backup.note(NOTE)? {
            let all = format!("0-{}", cpus - 1);
            for irq in bound.split_whitespace() {
                let _ = host.run(&["cpuset", "-l", &all, "-x", irq], "");
            }
            backup.forget(NOTE)?;
        }
        return Ok(());
    }
    let mut bound = Vec::new();
    for link in links.both() {
        for Interrupt { irq, queue } in of(host, &link.interface)? {
            bound.push((
                link.interface.as_str(),
                irq.to_string(),
                queue,
                (queue % cpus).to_string(),
            ));
        }
    }
    let numbers: Vec<&str> = bound.iter().map(|(_, irq, ..)| irq.as_str()).collect();
    backup.set_note(NOTE, &numbers.join(" "))?;
    for (interface, irq, queue, cpu) in &bound {
        host.run(&["cpuset", "-l", cpu, "-x", irq], "")?;
        let answer = host.run(&["cpuset", "-g", "-x", irq], "")?;
        // Example: `irq 284 mask: 3`
        let found = answer.rsplit_once(':').map_or("", |(_, mask)| mask.trim());
        findings.expect(&format!("{interface} queue {queue} (irq {irq}) CPU"), cpu, found);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `vmstat -i` on a router with adapters of Intel and Chelsio.
    const VMSTAT: &str = "interrupt                          total       rate\nirq276: igb1:que 3                  1246          1\nirq281: igb1:link                      2          0\nirq283: t5nex0:evt                     4          0\nirq284: t5nex0:0a0                608689        474\nirq285: t5nex0:0a1                281882        219\nirq292: t5nex0:1a0                     5          0\ncpu0:timer                        100000        100\nTotal                             900000        700\n";

    #[test]
    fn vtnet_queues_are_found_by_their_order() {
        // FreeBSD 13.2 in QEMU: two pairs of queues behind a PCI Express port, and an interface
        // without.
        let text = "irq16:                                 0          0\nstray irq16                            0          0\nirq26: virtio_pci0                     1          0\nirq27: virtio_pci1                     0          0\nirq28: virtio_pci1                     7          0\nirq29: virtio_pci1                     0          0\nirq30: virtio_pci1                     9          0\nirq31: virtio_pci1                     0          0\nirq22: virtio_pci4+                  880          5\n";
        let all = parse(text);
        assert_eq!(all.len(), 7, "{all:?}");
        let found = virtio_queues(&all, "virtio_pci1").into_iter();
        let found: Vec<(u32, u16)> = found.map(|found| (found.irq, found.queue)).collect();
        assert_eq!(found, [(28, 0), (29, 0), (30, 1), (31, 1)]);
        assert_eq!(virtio_queues(&all, "virtio_pci4"), []);
        assert_eq!(virtio_queues(&all, "virtio_pci0"), []);
    }

    #[test]
    fn queues_are_found_by_interrupt_name() {
        let all = parse(VMSTAT);
        assert_eq!(all.len(), 6);
        assert_eq!(all[0], (276, "igb1:que 3".into(), 1246));
        assert_eq!(chelsio_queue("0a1f", "0"), Some(31));
        assert_eq!(chelsio_queue("1a0", "0"), None);
        assert_eq!(chelsio_queue("0.3", "0"), Some(3));
        assert_eq!(plain_queue("que 3"), Some(3));
        assert_eq!(plain_queue("rxq12:txq12"), Some(12));
        assert_eq!(plain_queue("link"), None);
    }
}
