//! Instruction counts of QEMU guests that forward: a known change of a real kernel is found
//! exactly.
//!
//! Needs QEMU and a Debian kernel (`linux-image-*.deb`) in the directory `FWDLAB_KERNELS`; `make
//! kernels` fetches one. See `bsd::count` for what guests with FreeBSD
//! need.

mod bsd;
mod experiment;
mod faults;
mod kernels;

use fwdlab_packet::address::flow_address;
use fwdlab_packet::{Family, Side};
use fwdlab_testdata::guests::kernel;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Runs a command of the program with `--json`; returns the JSON and the progress.
fn fwdlab(command: &str, arguments: &[&str]) -> Result<(Value, String), String> {
    let cache = tempfile::tempdir().map_err(|error| error.to_string())?;
    let output = Command::new(env!("CARGO_BIN_EXE_fwdlab"))
        .arg(command)
        .args(arguments)
        .arg("--json")
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .map_err(|error| error.to_string())?;
    let progress = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(progress);
    }
    let found = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    Ok((found, progress))
}

fn count(arguments: &[&str]) -> Result<Value, String> {
    fwdlab("count", arguments).map(|(found, _)| found)
}

/// Instructions per packet of a function in each kernel.
fn of(found: &Value, function: &str) -> Vec<f64> {
    let functions = found["functions"].as_array().expect("functions");
    let row = functions.iter().find(|row| row["name"] == function).unwrap_or(&Value::Null);
    let instructions = row["instructions"].as_array().cloned().unwrap_or_default();
    instructions.iter().filter_map(Value::as_f64).collect()
}

/// The kernel unchanged, without early demultiplexing, and then with a separate route for each
/// destination: one boot for several tests, with call stacks and modelled caches.
fn counted() -> Option<&'static (Value, tempfile::TempDir)> {
    static COUNTED: OnceLock<(Value, tempfile::TempDir)> = OnceLock::new();
    let kernel = kernel()?;
    Some(COUNTED.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        let routes = (0..4 * FLOWS).map(|n| {
            let destination = flow_address(Family::Inet, Side::Receiver, n);
            format!("route replace {destination}/32 via 198.19.0.2\n")
        });
        std::fs::write(path("routes"), routes.collect::<String>()).unwrap();
        let (graphs, routes, flows) = (path("graphs"), path("routes"), FLOWS.to_string());
        let mut arguments = vec![kernel.to_string_lossy().into_owned()];
        arguments.extend(["--calls", &graphs, "--caches", "--flows", &flows].map(String::from));
        arguments
            .extend(["--packets", "640", "--bursts", "3", "--input", &routes].map(String::from));
        let demux = "sysctl -w net.ipv4.ip_early_demux=0";
        arguments.extend(["--change", demux, "--change", "ip -batch -"].map(String::from));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let found = count(&arguments).unwrap_or_else(|error| panic!("{error}"));
        (found, directory)
    }))
}

/// Number of destinations: their leaves of the tree, two lines each, exceed the lines of the L1D
/// cache (512).
const FLOWS: u32 = 1000;

#[test]
fn count_finds_a_known_change_exactly() {
    let Some((found, _)) = counted() else { return };
    let kernels = found["kernels"].as_array().expect("kernels");
    assert_eq!(kernels.len(), 3, "{found:#}");
    for row in kernels {
        assert_eq!((&row["lost"], &row["packets"]), (&0.into(), &1920.into()), "{row:#}");
        let (lowest, highest) = (row["least"].as_f64().unwrap(), row["most"].as_f64().unwrap());
        // The clock's share of a burst depends on the burst's duration, which call and cache
        // tracing lengthens on a busy machine; the functions below are exact all the same.
        assert!(lowest > 1000.0 && highest / lowest < 1.5, "{row:#}");
        // Locks are taken as on a machine with several CPUs.
        assert!(row["atomics"].as_f64().unwrap() > 5.0, "{row:#}");
    }
    // Untouched functions cost exactly the same; the one that was switched off costs nothing any
    // more.
    let forward = of(found, "ip_forward");
    assert!(forward[0] > 50.0 && (forward[0] - forward[1]).abs() < 0.1, "{forward:?}");
    let demux = of(found, "udp_v4_early_demux");
    assert!(demux[0] > 50.0 && demux[1].abs() < 0.1, "{demux:?}");
    let compared = &found["comparisons"][0]["outcome"]["counted"];
    let difference = compared["difference"].as_f64().unwrap();
    assert!((-250.0..-60.0).contains(&difference), "{difference}");
    // The cost of the clock depends on the duration of a burst: it is not a cost of packets.
    let functions = found["functions"].as_array().expect("functions");
    let clock = functions.iter().find(|row| row["name"] == "timekeeping_advance");
    assert!(clock.is_none_or(|row| row["background"] == true), "{clock:?}");
}

/// From the same run: stacks have the sums of the flat counts, and callers match the kernel's
/// sources (net/ipv4/ip_input.c, ip_forward.c, ip_output.c, net/core/dev.c).
#[test]
fn call_stacks_match_the_sources_and_the_flat_counts() {
    let Some((found, _)) = counted() else { return };
    let drawn = &found["calls"][0];
    assert_eq!(drawn["unaccounted"], 0, "block by block the same: {drawn:#}");
    assert!(drawn["unknown_share"].as_f64().unwrap() < 0.02, "{drawn:#}");
    let file = PathBuf::from(drawn["file"].as_str().expect("a file"));
    assert!(std::fs::read_to_string(&file).unwrap().contains("ip_forward_finish"));
    let folded = std::fs::read_to_string(file.with_extension("svg.folded")).unwrap();
    let stacks: Vec<(Vec<&str>, f64)> = folded
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(path, n)| (path.split(';').collect(), n.parse::<f64>().unwrap() / 1000.0))
        .collect();
    for function in ["ip_forward", "ip_rcv_core", "fib_table_lookup", "__dev_queue_xmit"] {
        let own = stacks.iter().filter(|(path, _)| path.last() == Some(&function));
        let (own, flat) = (own.map(|(_, n)| n).sum::<f64>(), of(found, function)[0]);
        assert!(flat > 50.0 && (own - flat).abs() < 0.1, "{function}: {own}, flat {flat}");
    }
    // Nearly all executions of each function are calls by the other, through thunks or not.
    for (caller, function) in [
        ("ip_list_rcv", "ip_rcv_core"),
        // ip_forward ends with a jump to it, which takes over its frame.
        ("ip_sublist_rcv", "ip_forward_finish"),
        ("ip_finish_output2", "__dev_queue_xmit"),
        ("ip_route_input_slow", "fib_table_lookup"),
        ("net_rx_action", "__napi_poll"),
    ] {
        let all: f64 = cost_in(&stacks, function, |_| true);
        // A compiler may inline the last part of the caller, which has its own name:
        // `ip_sublist_rcv_finish`.
        let is_caller = |frame: &&str| frame.starts_with(caller);
        let below: f64 = cost_in(&stacks, function, |path| path.iter().any(is_caller));
        assert!(all > 0.0 && below > 0.95 * all, "{function} by {caller}: {below} of {all}");
    }
    // Functions called one after the other do not nest.
    for (before, after) in [("ip_rcv_core", "ip_forward"), ("fib_table_lookup", "ip_forward")] {
        let below: f64 = cost_in(&stacks, after, |path| path.contains(&before));
        assert_eq!(below, 0.0, "{after} below {before}");
    }
}

/// From the same run. With two routes every packet walks the same few lines. With a route for each
/// destination it reads a leaf last read a thousand packets before, and two thousand other lines of
/// leaves since: none of it can be in 512 lines.
#[test]
fn modelled_caches_miss_evicted_lines() {
    let Some((found, _)) = counted() else { return };
    let caches = &found["caches"];
    assert!(caches["model"].as_str().unwrap().contains("L1D 32 KiB 8-way"), "{caches:#}");
    let functions = caches["functions"].as_array().expect("functions");
    let walk = functions.iter().find(|row| row["name"] == "fib_table_lookup").expect("a walk");
    let of = |kernel: usize, level: &str| walk["kernels"][kernel][level].as_f64().unwrap();
    assert!(of(2, "l1d") - of(1, "l1d") > 1.5, "leaf and alias of each destination: {walk:#}");
    assert!((of(1, "l1d") - of(0, "l1d")).abs() < 0.75, "the same two routes: {walk:#}");
    // Some of what fits into L2 was read there before; how much depends on the kernel's other
    // accesses between two packets of one destination.
    assert!(of(2, "l2") < 0.75 * of(2, "l1d"), "{walk:#}");
    // No function reads less than it misses.
    let kernels = caches["kernels"].as_array().expect("kernels");
    for row in kernels {
        let of = |name: &str| row[name].as_f64().unwrap();
        assert!(of("references") > of("l1d") && of("l1d") > 0.0 && of("l1i") > 0.0, "{row:#}");
    }
}

/// Instructions per packet of a function in the stacks that `matches` selects.
fn cost_in(stacks: &[(Vec<&str>, f64)], function: &str, matches: impl Fn(&[&str]) -> bool) -> f64 {
    let of = stacks.iter().filter(|(path, _)| path.last() == Some(&function) && matches(path));
    of.map(|(_, instructions)| instructions).sum()
}

/// The guest's kernel requests the modules of a ruleset: none of them are loaded before.
#[test]
fn ruleset_with_nat_is_counted() {
    let Some(kernel) = kernel() else { return };
    let kernel = kernel.to_string_lossy();
    let ruleset = "nft 'add table ip nat; add chain ip nat out { type nat hook postrouting \
                   priority 100; }; add rule ip nat out masquerade'";
    let unloaded = "! grep -qE '^(nf_nat|nft_masq|nft_chain_nat) ' /proc/modules";
    let arguments = ["--packets", "64", "--bursts", "2", "--flows", "32"];
    let states: [&str; 5] = [&kernel, "--under", unloaded, "--change", ruleset];
    let found = count(&[&states[..], &arguments].concat());
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    let kernels = found["kernels"].as_array().expect("kernels");
    assert_eq!(kernels.len(), 2, "{found:#}");
    assert!(kernels.iter().all(|row| row["lost"] == 0), "{kernels:#?}");
    // Exported, so no kernel inlines it; part of the translation of each packet.
    let translation = of(&found, "nf_nat_inet_fn");
    assert!(translation[0].abs() < 0.1 && translation[1] > 10.0, "{translation:?}");
}

/// Identical rules cost the same each, and a stored list is not counted again.
#[test]
fn prices_are_linear_in_rules_and_stored() {
    let Some(kernel) = kernel() else { return };
    let (kernel, directory) = (kernel.to_string_lossy(), tempfile::tempdir().unwrap());
    let mut arguments = vec![&*kernel, "--out", directory.path().to_str().expect("a name")];
    for feature in ["nft-rules 1", "nft-rules 10", "nft-rules 100", "masquerade", "vlan"] {
        arguments.extend(["--only", feature]);
    }
    let prices = || fwdlab("prices", &arguments).unwrap_or_else(|error| panic!("{error}"));
    let (found, progress) = prices();
    assert!(progress.contains("booting"), "{progress}");
    let price = |at: usize| {
        let price = &found["features"][at]["prices"][0];
        assert_eq!(price["lost"], 0, "{price:#}");
        price["price"].as_f64().unwrap_or_else(|| panic!("{price:#}"))
    };
    let few = (price(1) - price(0)) / 9.0;
    let many = (price(2) - price(1)) / 90.0;
    // Few rules cost little more than what the scheduler adds on a busy machine.
    let all = (price(2) - price(0)) / 99.0;
    assert!(few > 50.0 && (few / many - 1.0).abs() < 0.1, "{few} {many}");
    assert!((all / many - 1.0).abs() < 0.02, "{all} {many}");
    assert!((1000.0..4000.0).contains(&price(3)), "{}", price(3));
    assert!((100.0..1500.0).contains(&price(4)), "{}", price(4));
    // Packets of established flows are translated, and no longer set up.
    let translation = found["features"][3]["prices"][0]["functions"].as_array().expect("functions");
    let executes = |name: &str| translation.iter().any(|f| f["name"] == name && f["before"] == 0.0);
    assert!(executes("nf_nat_manip_pkt") && !executes("nf_nat_setup_info"), "{translation:#?}");
    let (again, progress) = prices();
    assert!(!progress.contains("booting"), "{progress}");
    assert_eq!(again["features"], found["features"]);
}

#[test]
fn review_counts_only_builds_whose_code_differs() {
    let Some(newest) = kernel() else { return };
    let old = newest.with_file_name("oldest.deb").to_string_lossy().into_owned();
    let new = newest.to_string_lossy().into_owned();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().expect("a name");
    let arguments = [&*old, &old, &new, "--family", "inet", "--out", out];
    let (found, _) = fwdlab("review", &arguments).unwrap_or_else(|error| panic!("{error}"));
    let [same, other] = [0, 1].map(|at| &found["steps"][at]["outcome"]);
    assert_eq!((&same["kind"], &same["moved"]), (&"equal".into(), &0.into()), "{same:#}");
    assert_eq!(same["counted"].as_array().map(Vec::len), Some(0), "{same:#}");
    assert!(found["functions"].as_u64() > Some(100), "{found:#}");
    assert_eq!(other["kind"], "changed", "{other:#}");
    assert_eq!(other["counted"].as_array().map(Vec::len), Some(1), "{other:#}");
    // Equal functions can differ as well, if others call them more often, but not alone.
    let changed = other["functions"].as_array().expect("functions");
    let changed: Vec<&str> = changed.iter().filter_map(|f| f["name"].as_str()).collect();
    let differing = other["counted"][0]["outcome"]["counted"]["functions"]["differing"].clone();
    let differing = differing.as_array().expect("functions");
    let is_changed = |function: &Value| changed.iter().any(|name| function["name"] == *name);
    assert!(differing.is_empty() || differing.iter().any(is_changed), "{other:#}");
}

#[test]
fn guest_that_does_not_forward_is_reported() {
    let Some(kernel) = kernel() else { return };
    let kernel = kernel.to_string_lossy();
    let change = "sysctl -w net.ipv4.ip_forward=0";
    let error = count(&[&kernel, "--change", change, "--packets", "64", "--bursts", "2"]);
    let error = error.expect_err("a guest that forwards nothing");
    assert!(error.contains("the guest forwards nothing"), "{error}");
}

#[test]
fn invalid_kernel_is_reported_with_the_next_step() {
    let directory = tempfile::tempdir().unwrap();
    let error = count(&[&directory.path().to_string_lossy()]).expect_err("no kernel");
    assert!(error.contains("make bzImage modules"), "{error}");
}
