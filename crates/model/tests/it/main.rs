//! Integration tests of the crate: files in, plans or faults out.

mod bench_lab;
mod faults;
mod files;
mod hash;
mod keys;
mod laboratory;
mod labs;
mod log_conformance;
mod log_properties;
mod plans;
mod profile;
mod shell;

use fwdlab_model::{Diagnostics, Plan};
use std::path::{Path, PathBuf};

/// A loader with one ruleset, one table of subsystems, two files of routes, one of which is not
/// text, and some directories.
fn loader(path: &str) -> Result<Vec<u8>, String> {
    match path {
        "subsystems.txt" => Ok("nf_* firewall\n".into()),
        "edge.nft" => Ok("table inet filter { }\n".into()),
        "routes.txt" => Ok("default via 198.19.0.1\n".into()),
        "rib.mrt" => Ok(vec![0xff, 0, 13]),
        // A path that ends with a slash lists the files below it.
        "configs/base/" | "configs/other/" => Ok("boot/loader.conf\0etc/rc.conf\0".into()),
        "configs/base/etc/rc.conf" => Ok("harvest_mask=\"351\"\n".into()),
        "configs/other/etc/rc.conf" => Ok("harvest_mask=\"511\"\n".into()),
        "configs/base/boot/loader.conf" | "configs/other/boot/loader.conf" => {
            Ok("hw.em.rxd=\"4096\"\n".into())
        }
        "configs/bare/" => Ok("README\0".into()),
        "configs/binary/" => Ok("boot/kernel/if_em.ko\0".into()),
        "configs/binary/boot/kernel/if_em.ko" => Ok(vec![0x7f, 0x45, 0x4c, 0x46, 0xff]),
        "configs/huge/" => Ok("etc/huge\0".into()),
        "configs/huge/etc/huge" => Ok(vec![b'x'; 300_000]),
        "configs/empty/" => Ok(Vec::new()),
        _ => Err("no such file".to_owned()),
    }
}

fn load(text: &str) -> Result<Plan, Diagnostics> {
    fwdlab_model::load("test.toml", text, &loader)
}

/// Returns the plan of a valid file.
fn plan(text: &str) -> Plan {
    load(text).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Returns the faults of an invalid file, as text without colour.
fn faults(text: &str) -> String {
    match load(text) {
        Ok(plan) => panic!("no fault found; planned {} runs", plan.runs.len()),
        Err(faults) => faults.to_string(),
    }
}

/// Returns a path inside the crate.
fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares with a committed file; with UPDATE=1 in the environment writes it.
fn golden(path: &Path, got: &str) {
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(path, got).expect("the golden file can be written");
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        expected == got,
        "{} differs (UPDATE=1 cargo test -p fwdlab-model refreshes it); now:\n{got}",
        path.display()
    );
}
