//! A FreeBSD booted from its disk, and counted.
//!
//! Needs `freebsd-13.2-fwdlab.raw.zst` in the directory `FWDLAB_FREEBSD`, or in `../shared/freebsd`
//! next to the workspace, and QEMU. The numbers hold for that image.

use crate::{count, of};
use fwdlab_testdata::guests::freebsd_image;

#[test]
fn routing_algorithms_and_a_firewall_have_their_known_costs() {
    let Some(image) = freebsd_image() else { return };
    let image = image.to_string_lossy();
    let algorithm = |name| format!("sysctl net.route.algo.inet.algo={name}");
    let changes = [
        algorithm("radix4"),
        algorithm("radix4_lockless"),
        format!("kldload dpdk_lpm4; {}", algorithm("dpdk_lpm4")),
        "kldload pf; pfctl -e; echo pass all no state | pfctl -f -".to_owned(),
    ];
    let directory = tempfile::tempdir().unwrap();
    let graphs = directory.path().to_string_lossy();
    let mut arguments = vec![&*image, "--packets", "640", "--bursts", "5", "--calls", &*graphs];
    changes.iter().for_each(|change| arguments.extend(["--change", change]));
    let found = count(&arguments).unwrap_or_else(|error| panic!("{error}"));
    let kernels = found["kernels"].as_array().expect("kernels");
    assert_eq!(kernels.len(), 5, "{found:#}");
    for row in kernels {
        assert_eq!((&row["lost"], &row["packets"]), (&0.into(), &3200.into()), "{row:#}");
        assert_eq!(row["release"], "13.2-RELEASE FWDLAB", "{row:#}");
    }
    let total = kernels[0]["instructions"].as_f64().unwrap();
    assert!((2800.0..3000.0).contains(&total), "{total}");
    // The guest's background work is subtracted from all functions, and gets more time on a busy
    // machine: locks are then up to 3 % too low.
    let near = |function: &str, expected: [f64; 4]| {
        let found = of(&found, function);
        let is_near = |(found, expected): (&f64, f64)| (found / expected - 1.0).abs() < 0.05;
        let all = found.iter().zip(expected).all(is_near);
        assert!(all, "{function}: {found:?}");
    };
    // The image's own algorithm for few routes, then the three selected ones.
    near("ip_input", [79.0; 4]);
    near("ether_output", [151.0; 4]);
    near("_rm_rlock", [35.0, 70.0, 35.0, 35.0]);
    near("_rm_runlock", [21.0, 42.0, 21.0, 21.0]);
    let tree = of(&found, "rn_match");
    assert!(tree[1] > 100.0 && (tree[1] - tree[2]).abs() < 5.0, "{tree:?}");
    assert!(tree[0].abs() < 0.5 && tree[3].abs() < 0.5, "{tree:?}");
    // Functions of a loaded module are known by name.
    assert!(of(&found, "pf_test")[4] > 400.0, "{found:#}");
    assert!(of(&found, "pf_test")[3].abs() < 0.5);
    // Stacks of an interrupt thread begin where threads do, and add up to the flat counts.
    let drawn = found["calls"].as_array().expect("graphs");
    assert_eq!(drawn.len(), 5);
    for row in drawn {
        assert_eq!(row["unaccounted"], 0, "{row:#}");
        assert!(row["unknown_share"].as_f64().unwrap() < 0.02, "{row:#}");
    }
    let folded = format!("{}.folded", drawn[4]["file"].as_str().expect("a file"));
    let folded = std::fs::read_to_string(folded).expect("stacks");
    let calls = "fork_trampoline;fork_exit;ithread_loop;";
    let by_pf = |line: &&str| line.starts_with(calls) && line.contains(";pf_test");
    assert!(folded.lines().any(|line| by_pf(&line)), "{folded}");
}
