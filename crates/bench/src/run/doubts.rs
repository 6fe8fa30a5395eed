//! Warnings derived from the counters and CPU times of machine and DUT during a trial.

use crate::Task;
use crate::cpu::{Placement, passed_ns};
use crate::testbed::LoadModel;
use crate::trial::Observed;
use fwdlab_model::record::{Counter, CpuTime, Sample, queues};
use fwdlab_model::settings::{Arrangement, Rate, Settings};
use fwdlab_model::warning::Warning;
use fwdlab_stats::contention::{LARGEST_CORRECTION, is_loss_doubtful, lost_to_waiting};
use fwdlab_stats::stolen_time::{Roles, StolenTime};

/// Share of the window that a CPU may lose to other work without a warning, if the kernel does not
/// report the DUT's waiting time.
const CONTENDED: f64 = 0.05;

/// Warnings derived from the counters and CPU times of machine and DUT.
pub(super) fn doubts(
    observed: &Observed,
    settings: &Settings,
    placement: &Placement,
    sender: LoadModel,
    task: &Task<'_>,
    counters: &[Counter],
    cpus: &[CpuTime],
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let seconds = observed.window_ns as f64 / 1e9;
    let forwarded_pps = observed.window.forwarded as f64 / seconds;
    let overloaded = sender == LoadModel::OpenLoop
        && placement.arrangement == Arrangement::Open
        && settings.traffic.rate == Rate::Max
        && observed.window.loss_ratio() < 0.01;
    match task.ceiling_pps {
        Some(ceiling_pps) if forwarded_pps > 0.9 * ceiling_pps || overloaded => {
            warnings.push(Warning::GeneratorLimited { forwarded_pps, ceiling_pps });
        }
        None if overloaded => {
            let ceiling_pps = observed.window.offered as f64 / seconds;
            warnings.push(Warning::GeneratorLimited { forwarded_pps, ceiling_pps });
        }
        _ => {}
    }
    let waiting = waiting(observed, cpus, counters);
    for cpu in cpus.iter().filter(|cpu| cpu.role != "sender") {
        // Relative to the time between the two readings, which need not be the length of the
        // window.
        let passed_ns = passed_ns(cpu).max(1) as f64;
        let stolen = cpu.stolen_ns as f64 / passed_ns;
        // A kernel forwards in kernel threads and softirqs: user time on a CPU dedicated to the DUT
        // belongs to another program. A DUT that is a program runs in user space itself.
        let is_kernel = !settings.dut.kind.row().is_program;
        let user =
            if cpu.role == "dut" && is_kernel { cpu.user_ns as f64 / passed_ns } else { 0.0 };
        let is_of_dut = cpu.role.split('+').any(|role| role == "dut");
        let (is_contended, waited) = match waiting.filter(|_| is_of_dut) {
            Some(Waiting { share, is_doubtful }) => (is_doubtful, Some(share)),
            None => (stolen > CONTENDED || user > CONTENDED, None),
        };
        if is_contended {
            warnings.push(Warning::CpuContended { cpu: cpu.cpu, stolen, user, waited });
        }
    }
    // The DUT's counters must match the receiver's exactly: it counts packets that the DUT
    // originates (neighbour discovery, multicast) separately.
    for counter in counters {
        if let Some(expected) = counter.expected
            && counter.delta() != expected
        {
            warnings.push(Warning::CounterMismatch {
                counter: counter.name.clone(),
                counted: counter.delta(),
                expected,
            });
        }
    }
    warnings.extend(idle_queues(counters));
    warnings
}

/// Waiting time of the DUT for its CPUs.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Share of the window, 0 to 1.
    share: f64,
    /// True if the wait may have changed the result.
    is_doubtful: bool,
}

/// Returns the DUT's waiting time; `None` if the kernel does not report the waiting time of
/// threads.
fn waiting(observed: &Observed, cpus: &[CpuTime], counters: &[Counter]) -> Option<Waiting> {
    let valid: Vec<Sample> =
        observed.samples.iter().copied().filter(|sample| sample.valid).collect();
    let roles = Roles::of(cpus);
    let stolen = StolenTime::of(&valid, roles);
    let counts = observed.window;
    let lost = counts.offered.saturating_sub(counts.forwarded);
    let is_doubtful = match observed.intended {
        Some(_) => {
            let waiting = lost_to_waiting(&valid, roles, counters);
            is_loss_doubtful(waiting, lost, counts.offered)
        }
        None => stolen.share() > LARGEST_CORRECTION,
    };
    stolen.knows_threads.then_some(Waiting { share: stolen.share(), is_doubtful })
}

/// Warns about queues of the DUT without packets while other queues of the interface had some: the
/// variant then uses fewer queues than its name states.
fn idle_queues(counters: &[Counter]) -> impl Iterator<Item = Warning> {
    queues::of_counters(counters).into_iter().filter_map(|queues| {
        let idle = queues.idle();
        (!idle.is_empty()).then(|| Warning::IdleQueues {
            interface: queues.interface,
            direction: queues.direction.name().into(),
            queues: queues.packets.len() as u16,
            idle,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::place;
    use fwdlab_model::record::Counts;
    use fwdlab_model::record::queues::{Direction, counter_name};

    /// Returns the warnings about a second in which `forwarded` of a million packets arrived.
    fn warnings_of(forwarded: u64, ceiling_pps: Option<f64>, cpus: &[CpuTime]) -> Vec<Warning> {
        let plan = fwdlab_model::load("x.toml", "version = 1\n", &|_| Err("no files".into()))
            .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
        let counts = Counts { offered: 1_000_000, forwarded };
        let observed = Observed {
            window_ns: 1_000_000_000,
            window: counts,
            total: counts,
            flows_seen: Some(2000),
            ..Observed::default()
        };
        let placement = place(&[0, 1], Arrangement::Open, 1, 1);
        let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps };
        let counter = |expected| Counter {
            name: "d1 tx_packets".into(),
            before: 0,
            after: forwarded,
            expected: Some(expected),
        };
        let counters = [counter(forwarded)];
        doubts(
            &observed,
            &plan.variants[0].settings,
            &placement,
            LoadModel::OpenLoop,
            &task,
            &counters,
            cpus,
        )
    }

    #[test]
    fn result_within_a_tenth_of_the_ceiling_causes_a_warning() {
        assert_eq!(warnings_of(800_000, Some(1e6), &[]), []);
        let limited = Warning::GeneratorLimited { forwarded_pps: 910_000.0, ceiling_pps: 1e6 };
        assert_eq!(warnings_of(910_000, Some(1e6), &[]), [limited]);
        // Nothing lost at the maximum rate: the DUT was never overloaded.
        let limited = Warning::GeneratorLimited { forwarded_pps: 995_000.0, ceiling_pps: 5e6 };
        assert_eq!(warnings_of(995_000, Some(5e6), &[]), [limited]);
        assert_eq!(warnings_of(995_000, None, &[]).len(), 1);
    }

    #[test]
    fn idle_queues_cause_a_warning() {
        let counter = |direction, queue, packets: u64| Counter {
            name: counter_name("d0", direction, queue),
            before: 7,
            after: 7 + packets,
            expected: None,
        };
        let (rx, tx) = (Direction::Receive, Direction::Transmit);
        let all = [counter(rx, 0, 5), counter(rx, 1, 5), counter(tx, 0, 9)];
        assert_eq!(idle_queues(&all).count(), 0);
        let some = [counter(rx, 0, 5), counter(rx, 1, 0), counter(rx, 2, 0), counter(tx, 0, 9)];
        let expected = Warning::IdleQueues {
            interface: "d0".into(),
            direction: "receive".into(),
            idle: vec![1, 2],
            queues: 3,
        };
        assert_eq!(idle_queues(&some).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn contention_warns_for_the_cpu_of_the_dut_only() {
        let cpu = |role: &str, user_ns, stolen_ns| CpuTime {
            cpu: 1,
            role: role.into(),
            user_ns,
            stolen_ns,
            idle_ns: 1_000_000_000_u64.saturating_sub(user_ns + stolen_ns),
            ..CpuTime::default()
        };
        assert_eq!(warnings_of(500_000, None, &[cpu("sender", 900_000_000, 900_000_000)]), []);
        assert_eq!(warnings_of(500_000, None, &[cpu("dut", 40_000_000, 40_000_000)]), []);
        let contended = Warning::CpuContended { cpu: 1, stolen: 0.0, user: 0.5, waited: None };
        assert_eq!(warnings_of(500_000, None, &[cpu("dut", 500_000_000, 0)]), [contended]);
        // The window of a second was read over a span of seventeen.
        let late = CpuTime { softirq_ns: 16_000_000_000, ..cpu("dut", 500_000_000, 0) };
        assert_eq!(warnings_of(500_000, None, &[late]), []);
    }
}
