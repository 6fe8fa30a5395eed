//! Tests of the crate from outside: files in, plans or faults out.

mod faults;
mod files;
mod hash;
mod keys;
mod labs;
mod plans;
mod profile;

use fwdlab_model::{Diagnostics, Plan};
use std::path::{Path, PathBuf};

/// A loader that knows one ruleset, one table of subsystems and two files of
/// routes, of which one is no text.
fn loader(path: &str) -> Result<Vec<u8>, String> {
    match path {
        "subsystems.txt" => Ok("nf_* firewall\n".into()),
        "edge.nft" => Ok("table inet filter { }\n".into()),
        "routes.txt" => Ok("default via 198.19.0.1\n".into()),
        "rib.mrt" => Ok(vec![0xff, 0, 13]),
        _ => Err("no such file".to_owned()),
    }
}

fn load(text: &str) -> Result<Plan, Diagnostics> {
    fwdlab_model::load("test.toml", text, &loader)
}

/// The plan of a file that must be right.
fn plan(text: &str) -> Plan {
    load(text).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The faults of a file that must be wrong, as text without colour.
fn faults(text: &str) -> String {
    match load(text) {
        Ok(plan) => panic!("no fault found; planned {} runs", plan.runs.len()),
        Err(faults) => faults.to_string(),
    }
}

/// Path inside the crate.
fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares with a committed file; with UPDATE=1 in the environment writes it.
fn golden(path: &Path, got: &str) {
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(path, got).expect("the golden file can be written");
        return;
    }
    let wanted = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        wanted == got,
        "{} differs (UPDATE=1 cargo test -p fwdlab-model refreshes it); now:\n{got}",
        path.display()
    );
}
