//! Which samples of the DUT's CPUs are the DUT's work: that of a kernel, or of the
//! software router's workers.

use super::filter::Filter;
use super::pattern::Pattern;
use super::stacks::Stacks;

/// Names of the kernel's own threads (Linux), of the idle task, of the simulated device,
/// and of the software router's workers.
const DUT_THREADS: [&str; 14] = [
    "router/",
    "simulated",
    "napi/",
    "ksoftirqd/",
    "kworker",
    "swapper",
    "irq/",
    "migration/",
    "rcu",
    "cpuhp/",
    "kcompactd",
    "kswapd",
    "ktimers/",
    "idle_inject/",
];

/// What other programs do on the DUT's CPUs is none of its work, except for the packets
/// that interrupts handle meanwhile.
pub fn of_dut(windows: &[Stacks]) -> Filter {
    let mut programs: Vec<&str> = windows
        .iter()
        .flat_map(|stacks| stacks.iter())
        .filter_map(|(frames, _)| frames.first().map(AsRef::as_ref))
        .filter(|name| !DUT_THREADS.iter().any(|thread| name.starts_with(thread)))
        .collect();
    programs.sort_unstable();
    programs.dedup();
    programs
        .into_iter()
        .fold(Filter::default(), |filter, name| filter.harness_process(Pattern::new(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::unfold;

    #[test]
    fn other_programs_are_set_apart_and_their_interrupts_are_not() {
        let stacks = unfold(
            "napi/d0;napi_poll;ip_rcv 6\nrustc;main;parse 3\nrustc;main;asm_sysvec_apic;net_rx_action;ip_rcv 1\n",
        );
        let split = of_dut(std::slice::from_ref(&stacks)).split(&stacks);
        assert_eq!((split.work.total(), split.harness.total()), (7, 3));
        let stacks = unfold("router/0;fwdlab_router::worker::forward 4\nfwdlab;main 2\n");
        let split = of_dut(std::slice::from_ref(&stacks)).split(&stacks);
        assert_eq!((split.work.total(), split.harness.total()), (4, 2));
    }
}
