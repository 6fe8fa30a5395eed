//! A distribution's kernel, with one bit of its code changed.

use super::assembler::flip;
use crate::build::Build;
use crate::callers::callers;
use crate::compare::compare;
use crate::function::Function;
use fwdlab_testdata::Random;
use fwdlab_testdata::guests::kernel;
use fwdlab_vm::kernel::Kernel;

/// Functions that forward packets; static ones may be inlined.
const PATH: [&str; 12] = [
    "ip_rcv",
    "ip_route_input_noref",
    "fib_table_lookup",
    "ip_forward",
    "ip_output",
    "ip6_forward",
    "ipv6_rcv",
    "__netif_receive_skb_core",
    "dev_gro_receive",
    "__dev_queue_xmit",
    "kmem_cache_alloc",
    "nf_hook_slow",
];
const CHANGES: usize = 200;

#[test]
fn compare_of_kernel_with_any_bit_of_code_changed_is_changed() {
    let Some(path) = kernel() else { return };
    let cache = tempfile::tempdir().unwrap();
    let kernel = Kernel::find(&path, cache.path()).unwrap();
    let content = kernel.content().unwrap();
    let load = || Build::new("kernel", &content).unwrap();
    let (old, mut new) = (load(), load());
    let same = compare(&old, &new, PATH);
    assert_eq!((same.changed.as_slice(), same.moved), (&[][..], 0));
    assert!(same.equal.len() > PATH.len() / 2, "{same:?}");
    let called = callers(&old, PATH.into_iter().chain(["ip_list_rcv", "ip_rcv_core"]));
    assert!(called.values().any(|by| by.contains("ip_rcv")), "{called:?}");
    let mut random = Random::of("changed bits of a kernel");
    for _ in 0..CHANGES {
        let name = &same.equal[random.below(same.equal.len() as u64) as usize];
        let function = Function::decode(old.functions(name)[0]).unwrap();
        let step = &function.steps[random.below(function.steps.len() as u64) as usize];
        let at = function.begin() + step.offset + random.below(step.bytes.len() as u64);
        let bit = random.below(8) as u32;
        assert!(flip(&mut new, at, bit));
        let found = compare(&old, &new, [name.as_str()]);
        assert_eq!(found.changed.len(), 1, "{name}, bit {bit} at {at:#x}");
        flip(&mut new, at, bit);
    }
    assert!(compare(&old, &new, PATH).changed.is_empty());
}
