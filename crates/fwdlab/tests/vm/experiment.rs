//! Experiments with a QEMU machine, from the file to the report.

use fwdlab_testdata::guests::{self, kernel, left, machines};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// An experiment of one kernel with these factors, in blocks.
pub(super) fn experiment(kernel: &Path, vm: &str, blocks: u32, factor: &str) -> String {
    format!(
        "version = 1\ntitle = \"guest\"\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"{}\"\n{vm}\
         [traffic]\nflows = {{ sources = 1, destinations = 32 }}\n\
         [trial]\nwarmup = \"200ms\"\nduration = \"1500ms\"\n[design]\nblocks = {blocks}\n{factor}",
        kernel.display()
    )
}

/// fwdlab on an experiment in `directory`.
pub(super) fn fwdlab(directory: &Path, text: &str) -> Command {
    guests::command(env!("CARGO_BIN_EXE_fwdlab"), directory, text)
}

#[test]
fn experiment_measures_a_known_change_exactly() {
    let Some(kernel) = kernel() else { return };
    let directory = tempfile::tempdir().unwrap();
    let demux = "[[factor]]\nname = \"early_demux\"\nlevels = [\
                 { label = \"on\", sysctl = { \"net.ipv4.ip_early_demux\" = 1 } }, \
                 { label = \"off\", sysctl = { \"net.ipv4.ip_early_demux\" = 0 } }]\n";
    let text = experiment(&kernel, "calls = true\ncaches = true\n", 1, demux);
    let output = fwdlab(directory.path(), &text).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(left(directory.path()), Vec::<String>::new());

    let results = directory.path().join("out/results.json");
    let results: Value =
        serde_json::from_slice(&std::fs::read(results).expect("results")).expect("JSON");
    assert_eq!(results["figure"], "instructions");
    assert_eq!(results["testbed"]["kind"], "vm");
    let functions = &results["comparisons"][0]["outcome"]["counted"]["functions"];
    let differing = functions["differing"].as_array().expect("functions that differ");
    let of = |name: &str| {
        let row = differing.iter().find(|row| row["name"] == name);
        row.unwrap_or_else(|| panic!("{name} does not differ: {functions:#}"))
    };
    let demux = of("udp_v4_early_demux");
    assert_eq!(demux["after"], 0.0, "{demux:#}");
    assert!(demux["before"].as_f64().unwrap() > 50.0, "{demux:#}");
    // The function that calls it saves a little; forwarding itself is the same.
    assert!(of("ip_rcv_finish_core")["difference"].as_f64().unwrap() < -5.0, "{functions:#}");
    assert!(!differing.iter().any(|row| row["name"] == "ip_forward"), "{functions:#}");
    let out = directory.path().join("out");
    let page = std::fs::read_to_string(out.join("README.md")).unwrap();
    assert!(page.contains("Instructions are not time"), "{page}");
    // Call stacks of both variants, which sum to the costs of the functions, and both in one
    // picture.
    for variant in results["counts"]["variants"].as_array().expect("variants") {
        let calls = &variant["calls"];
        assert_eq!(calls["unaccounted"], 0, "{calls:#}");
        assert!(calls["unknown_share"].as_f64().unwrap() < 0.02, "{calls:#}");
        let svg = std::fs::read_to_string(out.join(calls["file"].as_str().unwrap())).unwrap();
        assert!(svg.contains("ip_route_input_slow"), "{calls:#}");
        let missed = &variant["caches"]["total"];
        assert!(missed["data"].as_f64().unwrap() > 0.0, "{missed:#}");
    }
    let picture = functions["calls"].as_str().expect("a picture of both");
    // A function that disappears has no width there; one that saves a little has.
    assert!(std::fs::read_to_string(out.join(picture)).unwrap().contains("ip_rcv_finish_core"));
}

#[test]
fn profiles_are_refused_before_any_boot() {
    let directory = tempfile::tempdir().unwrap();
    let text = experiment(Path::new("no-such.deb"), "", 1, "");
    let output = fwdlab(directory.path(), &text).arg("--profile").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("no profiler samples a virtual machine"), "{stderr}");
    assert!(stderr.contains("leave it out"), "{stderr}");
    assert!(!directory.path().join("out").exists(), "nothing was begun");
}

/// Waits for a condition, for as long as a boot on a busy machine takes.
fn until(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(240);
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// True if the console of the latest machine contains `words`.
pub(super) fn has_said(directory: &Path, words: &str) -> bool {
    let log = directory.join("cache/fwdlab/console.log");
    std::fs::read(log).is_ok_and(|text| String::from_utf8_lossy(&text).contains(words))
}

/// A moment to wait for.
type Moment<'a> = (&'a str, &'a dyn Fn(&Path) -> bool);

#[test]
fn killed_program_leaves_no_machine_and_the_next_start_removes_its_files() {
    let Some(kernel) = kernel() else { return };
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let moments: [Moment<'_>; 3] = [
        ("a machine", &|directory| !machines(directory).is_empty()),
        ("modules", &|directory| has_said(directory, "modules are loaded")),
        ("a connection", &|directory| {
            machines(directory).iter().any(|machine| has_socket(&machine.directory))
        }),
    ];
    let text = experiment(&kernel, "", 1, "");
    for (name, has_come) in moments {
        // The output of an earlier machine does not count.
        let _ = std::fs::remove_file(directory.join("cache/fwdlab/console.log"));
        let mut child = fwdlab(directory, &text)
            .arg("--fresh")
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert!(until(|| has_come(directory)), "{name} did not come");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(until(|| machines(directory).is_empty()), "QEMU outlived fwdlab: {name}");
    }
    assert!(!left(directory).is_empty(), "nothing was left, so nothing is shown");
    // The files remain until the next start, for which a plan that cannot run is enough.
    std::fs::write(directory.join("cache/fwdlab/unpacking-4194999-x.deb"), "").unwrap();
    let text = experiment(Path::new("no-such.deb"), "", 1, "");
    let output = fwdlab(directory, &text).arg("--fresh").output().unwrap();
    assert!(!output.status.success());
    assert_eq!(left(directory), Vec::<String>::new());
    let cache = std::fs::read_dir(directory.join("cache/fwdlab")).unwrap();
    let names = cache.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.filter(|name| name.starts_with("unpacking")).collect();
    assert_eq!(names, Vec::<String>::new());
}

/// True if ssh has a connection to the machine with these files.
fn has_socket(machine: &Path) -> bool {
    let entries = std::fs::read_dir(machine).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path().join("s")).any(|socket| socket.exists())
}
