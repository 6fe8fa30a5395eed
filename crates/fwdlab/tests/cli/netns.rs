//! Kills the program while real namespaces, links and machine-wide settings exist.

use crate::support::{Lab, is_root, machine, values_per_variant};
use fwdlab_results::store::Store;
use std::process::Stdio;
use std::time::Duration;

/// Number of kills before the program may end.
const KILLS: usize = 5;
const BUDGET: &str = "/proc/sys/net/core/netdev_budget";

const REAL: &str = "\
version = 1
title = \"Killed again and again\"
[testbed]
kind = \"netns\"
[[factor]]
name = \"change\"
levels = [
  { label = \"before\" },
  { label = \"after\", sysctl = { \"net.core.netdev_budget\" = 299 } },
]
[trial]
warmup = \"50ms\"
duration = \"200ms\"
drain = \"100ms\"
[design]
blocks = 6
";

fn namespaces_of(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&format!("fwdlab-{pid}-")))
        .collect()
}

#[test]
fn killed_testbed_leaves_nothing_and_loses_no_run() {
    if !is_root("namespaces that outlive a process need root") {
        return;
    }
    let budget = || std::fs::read_to_string(BUDGET).expect("netdev_budget");
    let _alone = machine();
    let before = budget();
    let lab = Lab::new(REAL);
    let arguments = ["run", "x.toml", "--no-calibration"];
    let mut random: u32 = 88_172_645;
    let mut pids = Vec::new();
    for _ in 0..KILLS {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let mut command = lab.command(&arguments);
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = started.expect("the program starts");
        std::thread::sleep(Duration::from_millis(u64::from(100 + random % 1200)));
        pids.push(child.id());
        child.kill().expect("a child, living or ended");
        child.wait().expect("its end");
    }
    lab.fwdlab(&arguments).carried_out();
    for pid in pids {
        assert_eq!(namespaces_of(pid), Vec::<String>::new());
    }
    assert_eq!(budget(), before, "the machine's setting is put back");
    let store = Store::open_read_only(&lab.path("results/x/run.sqlite")).expect("a store");
    let runs: Vec<u32> = store.runs().expect("runs").iter().map(|run| run.run).collect();
    assert_eq!(runs, (0..12).collect::<Vec<_>>(), "every run once");
}

const ROUTER: &str = "\
version = 1
title = \"The router on sockets\"
[testbed]
kind = \"netns\"
[dut]
kind = \"router\"
[[factor]]
name = \"port\"
levels = [\"xsk\", \"packet\"]
[[factor]]
name = \"queues\"
levels = [1, 2]
[traffic]
rate = \"20kpps\"
flows = { sources = 5, destinations = 10 }
[trial]
warmup = \"100ms\"
duration = \"300ms\"
[design]
blocks = 1
";

#[test]
fn router_forwards_between_kernel_devices() {
    if !is_root("AF_XDP in namespaces needs root") {
        return;
    }
    let _alone = machine();
    let lab = Lab::new(ROUTER);
    let arguments = ["run", "x.toml", "--no-calibration", "--json"];
    let result = lab.fwdlab(&arguments).carried_out().json();
    assert_eq!(values_per_variant(&result), [1, 1, 1, 1]);
    for variant in result["variants"].as_array().expect("variants") {
        let value = variant["values"][0].as_f64().expect("a rate");
        // Low, so that debug builds on busy machines also forward this many.
        assert!(value > 1000.0, "{result:#}");
    }
    let text = std::fs::read_to_string(lab.path("results/x/results.json")).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for variant in json["device"]["variants"].as_array().expect("variants") {
        // Known only if all threads of the router were found.
        assert!(variant["per_packet_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{variant}");
    }
    let readme = ["README.md", "DETAILS.md"]
        .map(|name| std::fs::read_to_string(lab.path("results/x").join(name)).expect("a report"))
        .concat();
    assert!(!readme.contains("can't be trusted"), "{readme}");
    assert!(readme.contains("none damaged, none twice, none out of order"), "{readme}");
}

const FIREWALL: &str = "\
version = 1
title = \"What a stateful firewall costs, and where\"
[testbed]
kind = \"netns\"
[[factor]]
name = \"firewall\"
levels = [\"none\", \"stateful\"]
[trial]
warmup = \"100ms\"
duration = \"200ms\"
[design]
blocks = 2
[compare]
baseline = { firewall = \"none\" }
[profile]
starts = 1
duration = \"3s\"
";

const SHAPER: &str = "\
version = 1
title = \"A device of known throughput\"
[testbed]
kind = \"netns\"
[dut]
firewall = \"shaper.nft\"
[trial]
warmup = \"50ms\"
duration = \"250ms\"
[method]
kind = \"mlrsearch\"
max_load = \"200kpps\"
max_trials = 80
[[method.goal]]
name = \"ndr\"
initial_trial = \"250ms\"
final_trial = \"250ms\"
duration_sum = \"1750ms\"
width = \"1%\"
[design]
blocks = 1
";

/// 100,000 packets per second, and a bucket of 2 ms.
const RULES: &str = "\
table inet shaper {
	chain forward {
		type filter hook forward priority 0; policy accept;
		limit rate over 100000/second burst 200 packets drop
	}
}
";

/// Whatever else the machine does during the test: no rate is found but the right one.
#[test]
fn search_finds_the_shaper_rate_or_reports_why_not() {
    let lab = Lab::new(SHAPER);
    lab.write("shaper.nft", RULES);
    let _alone = machine();
    if !is_root("a shaper in a namespace needs root") {
        return;
    }
    lab.fwdlab(&["run", "x.toml", "--no-calibration"]).carried_out();
    let text = std::fs::read_to_string(lab.path("results/x/results.json")).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let run = &json["method"]["runs"][0];
    let found = &run["found"][0];
    match found["irregular"].as_str() {
        None => {
            let rate = found["throughput"].as_f64().expect("a rate");
            assert!((rate / 100_000.0 - 1.0).abs() < 0.01, "{rate}: {run}");
        }
        Some(why) => {
            eprintln!("the machine was too busy to find it: {why}");
            assert!(why.contains("no valid trial") || why.contains("number of trials"), "{run}");
        }
    }
}

/// `results.json` of an experiment on this machine's kernel; `None`, with a recorded skip, without
/// root.
pub(crate) fn results_as_root(experiment: &str, why: &str) -> Option<serde_json::Value> {
    let _alone = machine();
    is_root(why).then(|| Lab::new(experiment).results(&["--no-calibration"]).0)
}

const TABLES: &str = "\
version = 1
title = \"Tables of known sizes\"
[testbed]
kind = \"netns\"
[dut]
firewall = \"stateful\"
[traffic]
flows = { sources = 100, destinations = 100 }
[trial]
warmup = \"50ms\"
duration = \"100ms\"
[method]
kind = \"table-capacity\"
[design]
blocks = 1
[[factor]]
name = \"table\"
levels = [
  { label = \"kernel\", sysctl = { \"net.netfilter.nf_conntrack_max\" = \"5000\" } },
  { label = \"router\", kind = \"router\", state_limit = 5000 },
]
";

/// Both devices are configured with the number of connections that they may hold.
#[test]
fn table_capacity_equals_its_configured_limit() {
    let why = "connections in a namespace need root";
    let Some(json) = results_as_root(TABLES, why) else { return };
    for row in json["method"]["held"].as_array().expect("a row a variant") {
        match row["connections"]["median"].as_f64() {
            Some(median) => assert!((4_990.0..=5_001.0).contains(&median), "{row}"),
            None => eprintln!("the machine was too busy to find it: {row}"),
        }
        let states = row["most_states"].as_u64().expect("the device tells");
        assert!((4_990..=5_001).contains(&states), "{row}");
    }
}

const BURSTS: &str = "\
version = 1
title = \"A device of a known ring\"
[testbed]
kind = \"netns\"
[trial]
warmup = \"50ms\"
duration = \"200ms\"
[method]
kind = \"rfc2544\"
tests = [\"back-to-back\", \"reset\"]
repeats = 3
max_frames = 1000000
[design]
blocks = 1
";

/// The ring of a veth holds 256 frames. A burst of that length passes unless another program has
/// the CPU at that moment, so the longest of three counts.
#[test]
fn burst_fills_the_veth_ring_and_reset_interrupts_forwarding() {
    let Some(json) = results_as_root(BURSTS, "a kernel that is reset in a namespace needs root")
    else {
        return;
    };
    let parts = &json["method"]["parts"];
    match parts[0]["bursts"][0]["frames"]["max"].as_f64() {
        Some(frames) => assert!(frames >= 250.0, "{}", parts[0]["bursts"]),
        None => eprintln!("the machine was too busy for a burst: {}", parts[0]["bursts"]),
    }
    let resets = parts[1]["runs"][0]["interruptions"].as_array().expect("resets");
    assert_eq!(resets.len(), 3, "{}", parts[1]);
    for reset in resets {
        assert!(
            reset["reset"][0].as_str().is_some_and(|how| how.contains("interfaces")),
            "{reset}"
        );
        assert!(reset["lost"].as_u64() > Some(0), "{reset}");
        assert!(reset["seconds"].as_f64() < Some(10.0), "{reset}");
    }
}

const LATENCY: &str = "\
version = 1
title = \"How long packets take\"
[testbed]
kind = \"netns\"
[trial]
warmup = \"50ms\"
duration = \"200ms\"
[method]
kind = \"latency\"
shares = [\"5%\", \"50%\"]
min_load = \"1kpps\"
max_load = \"20kpps\"
repeats = 2
[[method.goal]]
name = \"half\"
loss_ratio = 0.5
initial_trial = \"100ms\"
final_trial = \"100ms\"
duration_sum = \"300ms\"
width = \"20%\"
[design]
blocks = 1
";

/// The device adds to the path of the instrument alone: no packet can be faster with it, whatever
/// the machine does.
#[test]
fn latency_through_the_kernel_exceeds_the_instrument() {
    // While others use the device's CPU, fwdlab reports that no trial is valid.
    const ATTEMPTS: usize = 5;
    let why = "packets are timed by BPF programs, which need root";
    if !is_root(why) {
        return;
    }
    let mut found = serde_json::Value::Null;
    let attempt = |_| {
        let json = results_as_root(LATENCY, why)?;
        let parts = json["method"]["parts"].as_array().expect("parts");
        found = parts[0]["runs"][0]["found"].clone();
        parts[1]["timed"].as_array().is_some_and(|rows| !rows.is_empty()).then_some(json)
    };
    let Some(json) = (0..ATTEMPTS).find_map(attempt) else {
        return fwdlab_testdata::skip(&format!("the machine was too busy for a rate: {found}"));
    };
    let parts = json["method"]["parts"].as_array().expect("parts");
    let rows = parts[1]["timed"].as_array().map_or(&[][..], Vec::as_slice);
    assert_eq!(rows.len(), 2, "{}", parts[1]);
    for row in rows.iter().filter(|row| row["runs"] == 1) {
        let figure = |name: &str| {
            let figures = row["figures"].as_array().expect("figures");
            figures.iter().find(|figure| figure["name"] == name).expect("a figure").clone()
        };
        let minimum = figure("minimum");
        let (seconds, floor) = (minimum["seconds"].as_f64(), minimum["floor"].as_f64());
        assert!(floor > Some(0.0) && seconds > floor, "{row}");
        // The mean is between the ends, and the percentiles rise.
        let rising = ["minimum", "p50", "p90", "p99", "maximum"]
            .map(|name| figure(name)["seconds"].as_f64());
        assert!(rising.iter().flatten().is_sorted(), "{row}");
        let mean = figure("mean")["seconds"].as_f64();
        assert!(rising[0] < mean && mean < rising[4], "{row}");
    }
}

#[test]
fn profile_difference_shows_the_firewall() {
    let has_perf = std::process::Command::new("perf").arg("version").output().is_ok();
    if !rustix::process::geteuid().is_root() || !has_perf {
        return fwdlab_testdata::skip("profiles of the kernel need root and perf (linux-perf)");
    }
    let _alone = machine();
    let lab = Lab::new(FIREWALL);
    lab.fwdlab(&["run", "x.toml", "--no-calibration", "--out", "o"]).carried_out();
    let text = std::fs::read_to_string(lab.path("o/results.json")).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let profiles = &json["profiles"];
    let of_kind = |what: &str, kind: &str| -> Vec<&serde_json::Value> {
        let all = profiles[what].as_array().expect("a list");
        all.iter().filter(|one| one["kind"] == kind).collect()
    };
    let runs = of_kind("variants", "starts");
    let share = |variant: usize, name: &str| runs[variant][name].as_f64();
    for variant in 0..2 {
        // At least nine of ten on an otherwise idle machine; other work delays perf's end.
        assert!(share(variant, "inside_share") >= Some(0.6), "{profiles:#}");
        assert!(share(variant, "resolved_share") >= Some(0.9), "{profiles:#}");
        assert!(share(variant, "per_packet") > Some(0.0), "{profiles:#}");
    }
    // The plain variant spends nothing in functions of the firewall.
    let difference = of_kind("differences", "starts")[0];
    let firewall = |difference: &serde_json::Value| {
        let parts = difference["subsystems"]["parts"].as_array().expect("subsystems");
        let firewall = parts.iter().find(|part| part["name"] == "firewall");
        let firewall = firewall.unwrap_or_else(|| panic!("no firewall in {difference:#}"));
        firewall["difference"].as_f64()
    };
    assert!(firewall(difference) > Some(0.0), "{difference}");
    // The samples of the measured runs explain their difference.
    let measured = of_kind("differences", "runs")[0];
    assert!(firewall(measured) > Some(0.0), "{measured}");
    let whole = measured["functions"]["whole"]["difference"].as_f64().expect("a difference");
    let parts = measured["functions"]["parts"].as_array().expect("functions");
    let sum: f64 = parts.iter().filter_map(|part| part["difference"].as_f64()).sum();
    assert!((sum - whole).abs() < 1e-6, "{sum} {whole}");
    let alone = json["device"]["effects"][0]["difference_ns"].as_f64().expect("a difference");
    assert!((alone - whole).abs() < 1e-6, "{alone} {whole}");
    let tracks = |function: &serde_json::Value| {
        function["name"].as_str().is_some_and(|name| name.contains("nf_conntrack"))
    };
    let parts = difference["functions"]["parts"].as_array().expect("functions");
    let tracking: Vec<&serde_json::Value> = parts.iter().filter(|part| tracks(part)).collect();
    assert!(!tracking.is_empty(), "{difference:#}");
    // Threads of the kernel also serve other tests' firewalls.
    let sum = |name| tracking.iter().filter_map(|part| part[name].as_f64()).sum::<f64>();
    assert!(sum("baseline") < 0.1 * sum("difference"), "{tracking:#?}");
    let table = fwdlab_results::profile::Subsystems::default();
    let is_firewall = |part: &&serde_json::Value| {
        let name = part["name"].as_str().expect("a name");
        table.of_function(name) == Some("firewall")
    };
    let mut risers = parts.iter().filter(|part| part["difference"].as_f64() > Some(0.0)).take(5);
    assert!(risers.any(|part| is_firewall(&part)), "{parts:#?}");

    // The same from the store, by the commands for single profiles.
    let shown = lab.fwdlab(&["profile", "o:stateful", "--function", "nf_conntrack_in"]).expect(0);
    assert!(shown.stdout.contains("nf_hook_slow"), "{}", shown.stdout);
    let drawn = lab.fwdlab(&["flamegraph", "o:none", "o:stateful", "--out", "d.svg"]).expect(0);
    assert!(drawn.stdout.contains("d.svg"), "{}", drawn.stdout);
    let missing = lab.fwdlab(&["profile", "o:stateless"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    assert!(missing.stderr.contains("but of none, stateful"), "{}", missing.stderr);
}

/// The experiment of the repository, once and short.
#[test]
fn forwarding_programs_are_measured_alongside_kernel_and_router() {
    let is_there =
        |program: &str| std::process::Command::new(program).arg("--version").output().is_ok();
    let missing = ["dpdk-testpmd", "ovs-vswitchd", "ovsdb-server"];
    let missing: Vec<&str> = missing.into_iter().filter(|program| !is_there(program)).collect();
    if !rustix::process::geteuid().is_root() || !missing.is_empty() {
        let reason = "forwarders in namespaces need root, dpdk-dev, openvswitch-switch";
        return fwdlab_testdata::skip(reason);
    }
    let text = include_str!("../../../../experiments/forwarders.toml");
    let short = text.replace("duration = \"1s\"", "duration = \"300ms\"\ndrain = \"500ms\"");
    assert_ne!(text, short);
    let _alone = machine();
    let lab = Lab::new(&format!("{short}\n[compare]\nbaseline = {{ forwarder = \"kernel\" }}\n"));
    let arguments = ["run", "x.toml", "--no-calibration", "--blocks", "1", "--json"];
    let result = lab.fwdlab(&arguments).carried_out().json();
    // Eight forwarders, of both families.
    assert_eq!(values_per_variant(&result), [1; 16]);
    for variant in result["variants"].as_array().expect("variants") {
        assert!(variant["values"][0].as_f64().expect("a rate") > 500.0, "{variant:#}");
    }
    let readme = ["README.md", "DETAILS.md"]
        .map(|name| std::fs::read_to_string(lab.path("results/x").join(name)).expect("a report"))
        .concat();
    for name in ["kernel", "fwdlab", "testpmd", "ovs", "ovs, states"] {
        assert!(readme.contains(name), "{name}: {readme}");
    }
    assert!(readme.contains("none damaged"), "{readme}");
    let left = std::fs::read_dir("/tmp").expect("/tmp").flatten();
    let mut left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert_eq!(left.find(|name| name.starts_with("fwdlab-") && name.ends_with("-ovs")), None);
}

#[test]
fn interface_that_no_longer_polls_is_refused_for_live_frames() {
    if !is_root("a testbed of namespaces needs root") {
        return;
    }
    let _alone = machine();
    let text = "version = 1\n[testbed]\nkind = \"netns\"\nengine = \"xdp\"\n[dut]\nsetup = [\"ethtool \
                -K d0 gro off\"]\n[trial]\nwarmup = \"50ms\"\nduration = \"200ms\"\n\
                [design]\nblocks = 1\n";
    let lab = Lab::new(text);
    let refused = lab.fwdlab(&["run", "x.toml", "--no-calibration"]).expect(2);
    assert!(refused.stderr.contains("engine=xsk"), "{}", refused.stderr);
    let run =
        ["run", "x.toml", "--no-calibration", "--set", "testbed.engine=xsk", "--fresh", "--json"];
    let found = lab.fwdlab(&run).expect(0).json();
    let median = found["variants"][0]["median"].as_f64().expect("a rate");
    assert!(median > 0.0, "{found:#}");
}
