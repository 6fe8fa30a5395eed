//! The DUT of a laboratory, by its system.

use crate::cpu;
use crate::dut::counters::Reading;
use crate::dut::freebsd::{self, FreebsdDut};
use crate::dut::linux::Findings;
use crate::dut::linux_remote::LinuxRemote;
use crate::dut::remote::RemoteDut;
use crate::dut::{counters, queues};
use crate::error::BenchError;
use crate::host::Host;
use crate::lab::links::{Link, Links};
use fwdlab_model::record::CpuTime;
use fwdlab_model::settings::{Firewall, Settings};

/// A DUT.
pub(super) enum Dut {
    /// A Linux machine.
    Linux(LinuxRemote),
    /// A FreeBSD machine.
    Freebsd(FreebsdDut),
}

impl Dut {
    /// As every DUT of a laboratory.
    pub(super) fn remote(&mut self) -> &mut dyn RemoteDut {
        match self {
            Dut::Linux(dut) => dut,
            Dut::Freebsd(dut) => dut,
        }
    }

    /// Switches from one variant to another while traffic flows.
    pub(super) fn switch(
        &mut self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
    ) -> Result<(), BenchError> {
        match self {
            Dut::Linux(dut) => dut.switch(host, from, to),
            Dut::Freebsd(_) => Err(BenchError::Refused(
                "only a Linux DUT can be switched while traffic flows: remove `alternate`".into(),
            )),
        }
    }

    /// Reads back what [`Dut::switch`] has just changed.
    pub(super) fn verify_live(
        &self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        match self {
            Dut::Linux(dut) => dut.verify_live(host, from, to, findings),
            Dut::Freebsd(_) => Ok(()),
        }
    }

    /// Packets of each queue of both interfaces; empty where a driver doesn't tell.
    pub(super) fn queues(&self, host: &dyn Host, links: &Links) -> Reading {
        let of = |link: &Link| match self {
            Dut::Linux(_) => queues::read(host, &link.interface),
            Dut::Freebsd(_) => freebsd::queues::packets(host, &link.interface),
        };
        links.both().into_iter().flat_map(of).collect()
    }

    /// States of its firewall; none where it has none, or doesn't tell.
    pub(super) fn states(&self, host: &dyn Host, firewall: &Firewall) -> Option<u64> {
        match self {
            Dut::Linux(_) if *firewall == Firewall::None => None,
            Dut::Linux(_) => counters::states(host),
            // pf, ipfw and ipf each count otherwise: none is asked yet.
            Dut::Freebsd(_) => None,
        }
    }

    /// CPU times since boot; none where they can't be read.
    pub(super) fn cpu_times(&self, host: &dyn Host) -> Vec<CpuTime> {
        match self {
            Dut::Linux(_) => cpu::times(&host.get("/proc/stat").unwrap_or_default()),
            Dut::Freebsd(_) => {
                let text = host.run(&["sysctl", "-n", "kern.cp_times", "kern.clockrate"], "");
                text.ok().and_then(|text| ticks(&text)).unwrap_or_default()
            }
        }
    }
}

/// Times of all CPUs from `kern.cp_times`, which counts at the rate `stathz` of
/// `kern.clockrate` (clocks(7)); FreeBSD's interrupts are Linux's softirqs.
fn ticks(text: &str) -> Option<Vec<CpuTime>> {
    let (times, rates) = text.trim().split_once('\n')?;
    let rate = rates.split("stathz =").nth(1)?;
    let rate: String = rate.trim_start().chars().take_while(char::is_ascii_digit).collect();
    let tick_ns = 1_000_000_000 / rate.parse::<u64>().ok().filter(|&rate| rate > 0)?;
    let cpus = freebsd::cpu_times(times)?.into_iter().zip(0..);
    let times = cpus.map(|(ticks, cpu)| CpuTime {
        cpu,
        role: String::new(),
        user_ns: (ticks.user + ticks.nice) * tick_ns,
        system_ns: ticks.system * tick_ns,
        softirq_ns: ticks.interrupt * tick_ns,
        idle_ns: ticks.idle * tick_ns,
        stolen_ns: 0,
    });
    Some(times.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let text = "1 2 3 4 5 10 20 30 40 50\n{ hz = 1000, tick = 1000, profhz = 8128, stathz = \
                    100 }\n";
        let times = ticks(text).expect("two CPUs");
        assert_eq!((times[1].cpu, times[1].user_ns), (1, 300_000_000));
        assert_eq!((times[0].softirq_ns, times[0].idle_ns), (40_000_000, 50_000_000));
        assert!(ticks("1 2 3\n{ stathz = 127 }").is_none());
    }
}
