//! Experiments with a machine of QEMU, from the file to the report.

use super::kernel;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// An experiment of one kernel with these factors, in blocks.
fn experiment(kernel: &Path, vm: &str, blocks: u32, factor: &str) -> String {
    format!(
        "version = 1\ntitle = \"guest\"\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"{}\"\n{vm}\
         [traffic]\nflows = {{ sources = 1, destinations = 32 }}\n\
         [trial]\nwarmup = \"200ms\"\nduration = \"1500ms\"\n[design]\nblocks = {blocks}\n{factor}",
        kernel.display()
    )
}

/// fwdlab on an experiment in `directory`, with its files there.
fn fwdlab(directory: &Path, text: &str) -> Command {
    let file = directory.join("guest.toml");
    std::fs::write(&file, text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fwdlab"));
    command
        .arg("run")
        .arg(&file)
        .arg("--out")
        .arg(directory.join("out"))
        .env("XDG_CACHE_HOME", directory.join("cache"))
        .env("TMPDIR", directory);
    command
}

/// What machines have left in `directory`.
fn left(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("fwdlab-vm-")).collect()
}

#[test]
fn an_experiment_finds_a_known_change_to_the_instruction() {
    let Some(kernel) = kernel() else { return };
    let directory = tempfile::tempdir().unwrap();
    let demux = "[[factor]]\nname = \"early_demux\"\nlevels = [\
                 { label = \"on\", sysctl = { \"net.ipv4.ip_early_demux\" = 1 } }, \
                 { label = \"off\", sysctl = { \"net.ipv4.ip_early_demux\" = 0 } }]\n";
    let text = experiment(&kernel, "", 2, demux);
    let output = fwdlab(directory.path(), &text).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
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
    // The function that asks for it saves a little; forwarding itself is the same.
    assert!(of("ip_rcv_finish_core")["difference"].as_f64().unwrap() < -5.0, "{functions:#}");
    assert!(!differing.iter().any(|row| row["name"] == "ip_forward"), "{functions:#}");
    let page = std::fs::read_to_string(directory.path().join("out/README.md")).unwrap();
    assert!(page.contains("Instructions are not time"), "{page}");
}

#[test]
fn a_guest_that_does_not_boot_is_named_and_the_others_are_measured() {
    let Some(kernel) = kernel() else { return };
    let directory = tempfile::tempdir().unwrap();
    // A kernel that is none stands for one that panics before it says anything.
    std::fs::write(directory.path().join("broken.deb"), "no package").unwrap();
    let factor = format!(
        "[[factor]]\nname = \"revision\"\nlevels = [{{ label = \"good\", kernel = \"{}\" }}, \
         {{ label = \"broken\", kernel = \"broken.deb\" }}]\n",
        kernel.display()
    );
    let output = fwdlab(directory.path(), &experiment(&kernel, "", 1, &factor)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("broken.deb"), "{said}");
    let page = std::fs::read_to_string(directory.path().join("out/README.md")).unwrap();
    assert!(page.contains("good"), "{page}");
    assert_eq!(left(directory.path()), Vec::<String>::new());
}

#[test]
fn profiles_are_refused_before_anything_boots() {
    let directory = tempfile::tempdir().unwrap();
    let text = experiment(Path::new("no-such.deb"), "", 1, "");
    let output = fwdlab(directory.path(), &text).arg("--profile").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no profiler samples a virtual machine"), "{said}");
    assert!(said.contains("leave it out"), "{said}");
    assert!(!directory.path().join("out").exists(), "nothing was begun");
}

#[test]
fn a_killed_program_leaves_no_machine_and_the_next_start_removes_its_files() {
    let Some(kernel) = kernel() else { return };
    let directory = tempfile::tempdir().unwrap();
    let text = experiment(&kernel, "", 1, "");
    let mut child = fwdlab(directory.path(), &text)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    let of_machine = || left(directory.path()).into_iter().next();
    let is_running = || qemu(directory.path()).is_some();
    while !is_running() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(is_running(), "no machine was started: {:?}", of_machine());
    child.kill().unwrap();
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while is_running() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(!is_running(), "QEMU outlived fwdlab");
    // The files are there until somebody starts again; a plan that can't run is enough.
    let text = experiment(Path::new("no-such.deb"), "", 1, "");
    let output = fwdlab(directory.path(), &text).arg("--fresh").output().unwrap();
    assert!(!output.status.success());
    assert_eq!(left(directory.path()), Vec::<String>::new());
}

/// The process whose command line names files of machines in `directory`.
fn qemu(directory: &Path) -> Option<String> {
    let wanted = directory.join("fwdlab-vm-").display().to_string();
    let processes = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let mut lines = processes.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.starts_with("qemu") && line.contains(&wanted)).then_some(line)
    });
    lines.next()
}
