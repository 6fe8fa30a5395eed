//! Writes the two files as text, with comments on everything that is not translated.

use super::rack::{Machine, Rack};
use super::script::Script;
use super::traffic::Traffic;
use crate::lab::Role;

/// Returns a name for laboratory and experiment: the file's, without folders and extension.
pub(super) fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.strip_suffix(".config").unwrap_or(file);
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = stem.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() { "bench-lab".to_owned() } else { name.to_owned() }
}

/// Writes `lab.toml`.
pub(super) fn lab(name: &str, rack: &Rack, script: &Script, remarks: &[String]) -> String {
    let mut out =
        format!("# Laboratory of {name}, imported from a configuration of bench-lab.sh.\n");
    out += &comments(script.comments.iter().filter(|(at, _)| *at == 0));
    out += &remarked(remarks);
    out += &format!("version = 1\nname = {}\n", quoted(name));
    let all = rack.machines.iter().flat_map(|machine| &machine.ports);
    let mut addresses = all.flat_map(|port| &port.addresses);
    if addresses.any(|address| !address.is_for_benchmarks()) {
        out += "# Not all addresses are those that are set aside for benchmarks.\n";
        out += "allow_addresses = true\n";
    }
    for machine in &rack.machines {
        out += &host(machine);
    }
    for cable in &rack.cables {
        let (far, dut) = (&cable.far, &cable.dut);
        out += &format!(
            "\n[[cable]]\na = {}\nb = {}\n",
            quoted(&format!("{}:{}", far.0, far.1)),
            quoted(&format!("{}:{}", dut.0, dut.1))
        );
        if let Some(switch) = &cable.switch {
            out += &format!("switch = {}\n", quoted(switch));
        }
    }
    out
}

fn host(machine: &Machine) -> String {
    let roles: Vec<String> = machine.roles.iter().map(|role| quoted(role.name())).collect();
    let mut out = format!(
        "\n[[host]]\nname = {}\nroles = [{}]\nssh = {}\nsystem = \"freebsd\"\n",
        quoted(&machine.name),
        roles.join(", "),
        quoted(&format!("root@{}", machine.admin))
    );
    if let Some(seconds) = machine.reboot_timeout_s {
        out += &format!("reboot_timeout = \"{seconds}s\"\n");
    }
    if !machine.online.is_empty() {
        out += &format!("online = [{}]\n", list(&machine.online));
    }
    let needs_side = machine.roles.len() > 1 || machine.roles.contains(&Role::Dut);
    for port in &machine.ports {
        out += &format!("[[host.interface]]\nname = {}\n", quoted(&port.name));
        if needs_side {
            out += &format!("side = {}\n", quoted(port.side.name()));
        }
        if let Some(mac) = port.mac {
            out += &format!("mac = \"{mac}\"\n");
        }
        if !port.addresses.is_empty() {
            let addresses: Vec<String> = port.addresses.iter().map(ToString::to_string).collect();
            out += &format!("addresses = [{}]\n", list(&addresses));
        }
    }
    out
}

/// Writes `experiment.toml`.
pub(super) fn experiment(
    name: &str,
    traffic: &Traffic,
    script: &Script,
    remarks: &[String],
    overlays: &[String],
) -> String {
    let mut out =
        format!("# Experiment of {name}, imported from a configuration of bench-lab.sh.\n");
    out += &comments(script.comments.iter().filter(|(at, _)| *at > 0));
    out += &remarked(remarks);
    out += &format!(
        "version = 1\ntitle = {}\n\n[testbed]\nkind = \"ssh\"\nlab = \"lab.toml\"\n\n",
        quoted(&format!("Forwarding performance in {name}"))
    );
    out += "[dut]\nkind = \"freebsd\"\n# The harness rebooted the DUT before every run.\n";
    out += "reboot = \"always\"\nverify = \"uname -v\"\n";
    if !overlays.is_empty() {
        out += "\n[[factor]]\nname = \"config\"\nlevels = [\n";
        for overlay in overlays {
            let label = overlay.trim_end_matches('/').rsplit('/').next().unwrap_or(overlay);
            out += &format!("  {{ label = {}, overlay = {} }},\n", quoted(label), quoted(overlay));
        }
        out += "]\n";
    }
    out += "\n[traffic]\ngenerator = \"pkt-gen\"\n";
    if traffic.is_inet6 {
        out += "family = \"inet6\"\n";
    }
    if let Some(size) = traffic.frame_size {
        out += &format!("frame_size = {size}\n");
    }
    if let Some((sources, destinations)) = traffic.flows {
        out += &format!("flows = {{ sources = {sources}, destinations = {destinations} }}\n");
    }
    if let Some(rate) = traffic.rate_pps {
        out += &format!("rate = {rate}\n");
    }
    if !traffic.options.is_empty() {
        out += &format!("generator_options = [{}]\n", list(&traffic.options));
    }
    for (name, command) in &traffic.commands {
        out += &commented(&format!("{name}: {command}"));
    }
    out += "\n[trial]\nwarmup = \"5s\"\nduration = \"20s\"\ndrain = \"1s\"\ninterval = \"1s\"\n";
    out += "slice = \"1s\"\n\n[design]\nblocks = 5\n";
    out
}

/// Writes comments of the original.
fn comments<'a>(comments: impl Iterator<Item = &'a (usize, String)>) -> String {
    let text: String = comments.map(|(_, comment)| commented_bare(comment)).collect();
    if text.is_empty() { text } else { format!("#\n# Its comments:\n{text}") }
}

fn remarked(remarks: &[String]) -> String {
    let text: String = remarks.iter().map(|remark| commented(&format!("- {remark}"))).collect();
    if text.is_empty() { text } else { format!("#\n# Not translated, or assumed:\n{text}") }
}

/// Returns a one-line comment; characters that TOML forbids in comments become blanks.
fn commented(text: &str) -> String {
    text.lines().map(|line| commented_bare(&format!(" {line}"))).collect()
}

fn commented_bare(line: &str) -> String {
    let clean: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("#{}\n", clean.trim_end())
}

fn list(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ")
}

/// Returns text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
