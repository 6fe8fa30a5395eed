//! Separates the DUT's work on its CPUs: the work of a kernel, or of the software router's workers.
//! Excluded is the receiver of a testbed on the same machine, which polls its interface r0, counts,
//! and returns the frames.

use super::filter::Filter;
use super::pattern::Pattern;
use super::stacks::Stacks;

/// Thread names of the kernel (Linux; FreeBSD's begin with `kernel/`), the idle task, the simulated
/// device, and the software router's workers.
const DUT_THREADS: [&str; 15] = [
    "router/",
    "kernel/",
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

/// Call paths of the receiver in a testbed of namespaces: its own polling thread; its counting
/// program, and the frames that this program drops (nothing else drops frames within the driver's
/// receive function).
const RECEIVER: [&[&str]; 7] = [
    &["napi/r0*"],
    &["bpf_prog_*_receive_packet"], // name in older profiles
    &["bpf_prog_*_receive_inet*"],
    &["bpf_prog_*_receive_stamps"],
    &["veth_xdp_rcv_skb", "sk_skb_reason_drop"],
    &["veth_xdp_rcv_skb", "kfree_skb*"],
    &["veth_xdp_rcv_skb", "consume_skb"],
];

/// Additional path if a thread polls d0: all polling of a veth in softirqs, because then only r0 is
/// polled there.
const SOFTIRQ_OF_RECEIVER: [&str; 2] = ["net_rx_action", "veth_poll"];

/// Filter for the DUT's work: other programs on its CPUs are excluded, except for the packets that
/// interrupts handle during them; so is the receiver.
pub fn of_dut(windows: &[Stacks]) -> Filter {
    let mut programs: Vec<&str> = windows
        .iter()
        .flat_map(|stacks| stacks.iter())
        .filter_map(|(frames, _)| frames.first().map(AsRef::as_ref))
        .filter(|name| !DUT_THREADS.iter().any(|thread| name.starts_with(thread)))
        .collect();
    programs.sort_unstable();
    programs.dedup();
    let mut paths: Vec<&[&str]> = RECEIVER.to_vec();
    let mut roots = windows.iter().flat_map(|stacks| stacks.iter()).filter_map(|s| s.0.first());
    if roots.any(|root| root.starts_with("napi/d0")) {
        paths.push(&SOFTIRQ_OF_RECEIVER);
    }
    let filter = programs
        .into_iter()
        .fold(Filter::default(), |filter, name| filter.harness_process(Pattern::new(name)));
    paths.into_iter().fold(filter, |filter, path| {
        filter.harness_path(path.iter().map(|name| Pattern::new(name)).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unfold;

    #[test]
    fn of_dut_excludes_other_programs_but_not_their_interrupts() {
        let stacks = unfold(
            "napi/d0;napi_poll;ip_rcv 6\nrustc;main;parse 3\nrustc;main;asm_sysvec_apic;net_rx_action;ip_rcv 1\n",
        );
        let split = of_dut(std::slice::from_ref(&stacks)).split(&stacks);
        assert_eq!((split.work.total(), split.harness.total()), (7, 3));
        let stacks = unfold("router/0;fwdlab_router::worker::forward 4\nfwdlab;main 2\n");
        let split = of_dut(std::slice::from_ref(&stacks)).split(&stacks);
        assert_eq!((split.work.total(), split.harness.total()), (4, 2));
    }

    #[test]
    fn of_dut_excludes_the_receivers_polling() {
        // As perf prints them: d0 in its thread, r0 in the following softirq; r0 in its own thread;
        // and a forwarding kernel that itself drops a packet.
        let threaded = unfold(
            "napi/d0;kthread;napi_threaded_poll;veth_poll;ip_forward;veth_xmit 5\n\
             napi/d0;kthread;napi_threaded_poll;veth_poll;ip_forward;sk_skb_reason_drop 1\n\
             napi/d0;kthread;napi_threaded_poll;__local_bh_enable_ip;do_softirq;net_rx_action;\
             __napi_poll;veth_poll;veth_xdp_rcv_skb;sk_skb_reason_drop;page_pool_put_netmem 2\n\
             ksoftirqd/1;handle_softirqs;net_rx_action;__napi_poll;veth_poll 4\n\
             napi/r0;kthread;napi_threaded_poll;veth_poll 8\n",
        );
        let split = of_dut(std::slice::from_ref(&threaded)).split(&threaded);
        assert_eq!((split.work.total(), split.harness.total()), (6, 14));
        // Both in softirqs: only functions specific to the receiver are distinguishable.
        let softirq = unfold(
            "swapper;net_rx_action;veth_poll;veth_xdp_rcv_skb;bpf_prog_0123456789abcdef_receive_inet6 2\n\
             swapper;net_rx_action;veth_poll;veth_xdp_rcv_skb;sk_skb_reason_drop;kmem_cache_free 3\n\
             swapper;net_rx_action;veth_poll;veth_xdp_rcv_skb;veth_xdp_rcv_one 1\n\
             swapper;net_rx_action;veth_poll;ip_rcv;sk_skb_reason_drop 7\n",
        );
        let split = of_dut(std::slice::from_ref(&softirq)).split(&softirq);
        assert_eq!((split.work.total(), split.harness.total()), (8, 5));
    }
}
