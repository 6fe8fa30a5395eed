//! Divides a profile into work of the device under test, idle time and harness.

use super::pattern::{Pattern, any, table};
use super::stacks::{Frame, Stacks, share};
use serde::Serialize;

/// Functions of an idle CPU.
const IDLE: &[&str] = &[
    // Linux: kernel/sched/idle.c, drivers/cpuidle, drivers/idle, arch/*/kernel/process.c.
    "do_idle",
    "cpu_startup_entry",
    "cpuidle_*",
    "call_cpuidle*",
    "default_idle*",
    "arch_cpu_idle*",
    "poll_idle",
    "cpu_idle_poll*",
    "intel_idle*",
    "mwait_idle*",
    "acpi_idle*",
    "acpi_processor_ffh_cstate_enter",
    "acpi_safe_halt",
    "native_safe_halt",
    "pv_native_safe_halt",
    "default_enter_idle",
    "cpu_do_idle",
    "psci_enter_idle*",
    // FreeBSD: sys/kern/sched_ule.c, sys/x86/x86/cpu_machdep.c, sys/dev/acpica/acpi_cpu.c.
    "sched_idletd",
    "cpu_idle",
    "cpu_idle_*",
    "acpi_cpu_idle*",
    "acpi_cpu_c1",
];

/// Functions that start an interrupt or its deferred work. Their callees are not idle, and do not
/// belong to the interrupted process.
const ENTRY: &[&str] = &[
    // Linux.
    "asm_common_interrupt",
    "common_interrupt",
    "asm_sysvec_*",
    "sysvec_*",
    "ret_from_intr",
    "el1_irq",
    "el1h_64_irq*",
    "gic_handle_irq",
    "irq_exit*",
    "do_softirq*",
    "__do_softirq",
    "handle_softirqs",
    "net_rx_action",
    "net_tx_action",
    "napi_threaded_poll*",
    // FreeBSD.
    "Xapic_isr*",
    "Xtimerint*",
    "Xipi_*",
    "lapic_handle_*",
    "intr_execute_handlers",
    "intr_event_handle",
    "ithread_loop",
    "swi_net",
    "gtaskqueue_run_locked",
    "taskqueue_run_locked",
];

/// Processes of profilers and of fwdlab.
const HARNESS: &[&str] = &["perf", "perf-*", "pmcstat", "dtrace", "bpftrace", "fwdlab*"];

/// Category of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Work of the device under test: everything that is not idle or harness.
    Work,
    /// Idle CPUs.
    Idle,
    /// Profiler, sender, receiver.
    Harness,
}

/// Distinguishes work from idle time and the harness.
///
/// The innermost context decides. A softirq that interrupts the idle loop is work, and so is one
/// within a call of the sender: with the closed arrangement, all forwarding happens there.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    idle: Vec<Pattern>,
    entry: Vec<Pattern>,
    harness_processes: Vec<Pattern>,
    harness_frames: Vec<Pattern>,
    harness_paths: Vec<Vec<Pattern>>,
}

impl Default for Filter {
    /// Idle loops of Linux and FreeBSD; processes of profilers and of fwdlab.
    fn default() -> Filter {
        Filter {
            idle: table(IDLE),
            entry: table(ENTRY),
            harness_processes: table(HARNESS),
            harness_frames: Vec::new(),
            harness_paths: Vec::new(),
        }
    }
}

impl Filter {
    /// Counts processes (or kernel threads) of this name, the root frame, as harness unless they
    /// are interrupted.
    #[must_use]
    pub fn harness_process(mut self, name: Pattern) -> Filter {
        self.harness_processes.push(name);
        self
    }

    /// Counts every stack with this frame as harness, also in interrupts: the driver of a receiver
    /// on the same machine.
    #[must_use]
    pub fn harness_frame(mut self, name: Pattern) -> Filter {
        self.harness_frames.push(name);
        self
    }

    /// Counts every stack as harness in which frames of these names occur in this order from the
    /// root on, with or without others between them: a receiver that runs the same functions as the
    /// device, but with a different caller.
    #[must_use]
    pub fn harness_path(mut self, names: Vec<Pattern>) -> Filter {
        self.harness_paths.push(names);
        self
    }

    /// Category of a stack, root first; names are in their normal form.
    pub fn class(&self, frames: &[Frame]) -> Class {
        let last = |patterns: &[Pattern]| frames.iter().rposition(|frame| any(patterns, frame));
        let matches_path = |path: &Vec<Pattern>| {
            let mut frames = frames.iter();
            path.iter().all(|name| frames.any(|frame| name.matches(frame)))
        };
        if last(&self.harness_frames).is_some() || self.harness_paths.iter().any(matches_path) {
            return Class::Harness;
        }
        let (idle, entry) = (last(&self.idle), last(&self.entry));
        // `None` is less than any position.
        if idle > entry {
            return Class::Idle;
        }
        let harness = frames.first().is_some_and(|root| any(&self.harness_processes, root));
        if harness && entry.is_none() { Class::Harness } else { Class::Work }
    }

    /// Divides a profile.
    pub fn split(&self, stacks: &Stacks) -> Split {
        let mut split = Split::default();
        for (frames, count) in stacks.iter() {
            let part = match self.class(frames) {
                Class::Work => &mut split.work,
                Class::Idle => &mut split.idle,
                Class::Harness => &mut split.harness,
            };
            part.add(frames.to_vec(), count);
        }
        split
    }
}

/// A profile divided by the category of its samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Work.
    pub work: Stacks,
    /// Idle CPUs.
    pub idle: Stacks,
    /// Profiler, sender, receiver.
    pub harness: Stacks,
}

impl Split {
    /// Number of samples in all three parts.
    pub fn total(&self) -> u64 {
        [&self.work, &self.idle, &self.harness]
            .iter()
            .fold(0, |sum, part| sum.saturating_add(part.total()))
    }

    /// Share of the work (0 to 1).
    pub fn work_share(&self) -> f64 {
        share(self.work.total(), self.total())
    }

    /// Share of idle CPUs (0 to 1).
    pub fn idle_share(&self) -> f64 {
        share(self.idle.total(), self.total())
    }

    /// Share of the harness (0 to 1).
    pub fn harness_share(&self) -> f64 {
        share(self.harness.total(), self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::super::stacks::stacks;
    use super::*;

    fn class(filter: &Filter, stack: &str) -> Class {
        let frames: Vec<Frame> = stack.split(';').map(Frame::from).collect();
        filter.class(&frames)
    }

    #[test]
    fn filter_uses_the_innermost_context() {
        let filter = Filter::default();
        for (stack, expected) in [
            ("swapper;do_idle;cpuidle_enter;mwait_idle_with_hints", Class::Idle),
            ("swapper;do_idle;schedule_idle", Class::Idle),
            ("swapper;do_idle;asm_common_interrupt;__do_softirq;ip_rcv", Class::Work),
            ("ksoftirqd/0;run_ksoftirqd;ip_rcv", Class::Work),
            ("fork_exit;sched_idletd;cpu_idle;cpu_idle_acpi;acpi_cpu_c1", Class::Idle),
            ("fork_exit;sched_idletd;cpu_idle;Xapic_isr1;ip_input", Class::Work),
            ("acpi_cpu_c1", Class::Idle),
            ("perf;read", Class::Harness),
            ("fwdlab;bpf_test_run_xdp_live;xdp_do_redirect", Class::Harness),
            ("fwdlab;bpf_test_run_xdp_live;do_softirq;net_rx_action;ip_rcv", Class::Work),
            ("nginx;perf", Class::Work),
        ] {
            assert_eq!(class(&filter, stack), expected, "{stack}");
        }
    }

    #[test]
    fn filter_accepts_custom_harness_names() {
        let filter = Filter::default()
            .harness_process(Pattern::new("kpktgend_*"))
            .harness_frame(Pattern::new("receiver_poll"))
            .harness_path(["net_rx_action", "poll", "drop*"].map(Pattern::new).into());
        for (stack, expected) in [
            ("napi/d0;net_rx_action;poll;x;drop_frame", Class::Harness),
            ("napi/d0;poll;net_rx_action;drop_frame", Class::Work),
            ("napi/d0;net_rx_action;poll", Class::Work),
        ] {
            assert_eq!(class(&filter, stack), expected, "{stack}");
        }
        assert_eq!(class(&filter, "kpktgend_3;pktgen_thread_worker"), Class::Harness);
        assert_eq!(class(&filter, "swapper;do_softirq;receiver_poll;memcpy"), Class::Harness);
    }

    #[test]
    fn split_shares_sum_to_one() {
        let all = stacks(&[("swapper;do_idle", 5), ("perf;read", 1), ("a;ip_rcv", 4)]);
        let split = Filter::default().split(&all);
        assert_eq!(
            (split.work_share(), split.idle_share(), split.harness_share()),
            (0.4, 0.5, 0.1)
        );
        assert_eq!((split.total(), Split::default().work_share()), (10, 0.0));
    }
}
