//! Guests of QEMU that forward, counted: a known change of a real kernel is found to the
//! instruction.
//!
//! Needs QEMU and a Debian kernel (`linux-image-*.deb`) in the directory that
//! `FWDLAB_KERNELS` names; `make kernels` fetches one. See `freebsd` for what that needs.

mod experiment;
mod faults;
mod freebsd;
mod freebsd_guest;
mod rate;

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A kernel to boot; none where there is none, which is said aloud and fails in CI.
fn kernel() -> Option<PathBuf> {
    let found = find();
    if let Err(why) = &found {
        let in_ci = std::env::var_os("FWDLAB_CI").is_some_and(|ci| ci == "1");
        assert!(!in_ci, "{why}");
        eprintln!("SKIPPED: no guest is booted: {why}");
    }
    found.ok()
}

fn find() -> Result<PathBuf, String> {
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    qemu.map_err(|error| format!("qemu-system-x86_64: {error}; install qemu-system-x86"))?;
    let named = std::env::var_os("FWDLAB_KERNELS");
    let named = named.ok_or("FWDLAB_KERNELS names no directory; `make kernels` fills one")?;
    // As the workspace's root sees it.
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = root.join(named);
    let entries = std::fs::read_dir(&directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut packages: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .collect();
    packages.sort();
    packages.into_iter().next().ok_or_else(|| format!("{}: no package", directory.display()))
}

fn count(arguments: &[&str]) -> Result<Value, String> {
    let cache = tempfile::tempdir().map_err(|error| error.to_string())?;
    let output = Command::new(env!("CARGO_BIN_EXE_fwdlab"))
        .arg("count")
        .args(arguments)
        .arg("--json")
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// Instructions a packet of a function in each kernel.
fn of(found: &Value, function: &str) -> Vec<f64> {
    let functions = found["functions"].as_array().expect("functions");
    let row = functions.iter().find(|row| row["name"] == function).unwrap_or(&Value::Null);
    let instructions = row["instructions"].as_array().cloned().unwrap_or_default();
    instructions.iter().filter_map(Value::as_f64).collect()
}

#[test]
fn a_known_change_is_found_to_the_instruction() {
    let Some(kernel) = kernel() else { return };
    let change = "sysctl -w net.ipv4.ip_early_demux=0";
    let kernel = kernel.to_string_lossy();
    let arguments = [&kernel, "--change", change, "--packets", "640", "--bursts", "3"];
    let found = count(&arguments).unwrap_or_else(|error| panic!("{error}"));
    let kernels = found["kernels"].as_array().expect("kernels");
    assert_eq!(kernels.len(), 2, "{found:#}");
    for row in kernels {
        assert_eq!((&row["lost"], &row["packets"]), (&0.into(), &1920.into()), "{row:#}");
        let (least, most) = (row["least"].as_f64().unwrap(), row["most"].as_f64().unwrap());
        assert!(least > 1000.0 && most / least < 1.02, "{row:#}");
        // Locks are taken as on a machine of several CPUs.
        assert!(row["atomics"].as_f64().unwrap() > 5.0, "{row:#}");
    }
    // Untouched functions cost the same to the instruction; the one that was switched off
    // costs nothing any more.
    let forward = of(&found, "ip_forward");
    assert!(forward[0] > 50.0 && (forward[0] - forward[1]).abs() < 0.1, "{forward:?}");
    let demux = of(&found, "udp_v4_early_demux");
    assert!(demux[0] > 50.0 && demux[1].abs() < 0.1, "{demux:?}");
    let difference = kernels[1]["difference"].as_f64().unwrap();
    assert!((-250.0..-60.0).contains(&difference), "{difference}");
    // What the clock costs depends on how long a burst takes: it is no cost of packets.
    let functions = found["functions"].as_array().expect("functions");
    let clock = functions.iter().find(|row| row["name"] == "timekeeping_advance");
    assert!(clock.is_none_or(|row| row["background"] == true), "{clock:?}");
}

#[test]
fn what_does_not_forward_is_told() {
    let Some(kernel) = kernel() else { return };
    let kernel = kernel.to_string_lossy();
    let change = "sysctl -w net.ipv4.ip_forward=0";
    let error = count(&[&kernel, "--change", change, "--packets", "64", "--bursts", "2"]);
    let error = error.expect_err("a guest that forwards nothing");
    assert!(error.contains("the guest forwards nothing"), "{error}");
}

#[test]
fn what_is_no_kernel_is_told_with_the_next_step() {
    let directory = tempfile::tempdir().unwrap();
    let error = count(&[&directory.path().to_string_lossy()]).expect_err("no kernel");
    assert!(error.contains("make bzImage modules"), "{error}");
}
