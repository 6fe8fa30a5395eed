//! Types of network interfaces that the commands of an experiment create and this machine's kernel
//! does not support. The kernel has no list of them, so each command is tried in a scratch
//! namespace.

use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Plan, words};
use std::process::Command;

/// Interface of the scratch namespace that replaces the device's.
const PARENT: &str = "fwdlab0";
/// Creates it, then executes the command.
const SCRATCH: &str = "ip link add fwdlab0 type veth peer name fwdlab1 || exit 9; exec \"$@\"";
/// Output of ip(8) if the kernel does not know a type, or one of its options.
const UNSUPPORTED: [&str; 2] = ["Unknown device type", "Operation not supported"];
/// Types that kernels without modules often lack: word of the command, name, kernel options.
const NAMES: [(&str, &str, &str); 5] = [
    ("vlan_filtering", "bridges that filter VLANs", "CONFIG_BRIDGE_VLAN_FILTERING"),
    ("vlan", "VLAN interfaces", "CONFIG_VLAN_8021Q, module 8021q"),
    ("bridge", "bridges", "CONFIG_BRIDGE, module bridge"),
    ("bond", "bonded interfaces", "CONFIG_BONDING, module bonding"),
    ("dummy", "dummy interfaces", "CONFIG_DUMMY, module dummy"),
];

/// Next step if a type is unsupported.
pub(crate) const NEXT_STEP: &str = "load the module with modprobe, or run the experiment on a kernel that was built with the option";

/// Interface types of the plan's commands that this machine's kernel lacks, as text. Guests and
/// other machines are not checked; nor is this machine if it permits no scratch namespace.
pub(crate) fn lacking(plan: &Plan) -> Vec<String> {
    let is_here = matches!(plan.base.testbed.kind, TestbedKind::Auto | TestbedKind::Netns);
    let variants = plan.variants.iter().filter(|_| is_here);
    let mut tried: Vec<Vec<String>> = Vec::new();
    for line in variants.flat_map(|variant| &variant.settings.dut.hooks.setup) {
        let command = words::split(line).ok().and_then(|words| creation(&words));
        tried.extend(command.filter(|command| !tried.contains(command)));
    }
    let mut found: Vec<String> = Vec::new();
    for command in tried.iter().filter(|command| is_unsupported(command)) {
        let text = explain(command);
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// Returns a command that creates an interface, on an interface of the scratch namespace; `None`
/// for other commands.
fn creation(command: &[String]) -> Option<Vec<String>> {
    let place = |word: &str| command.iter().position(|other| other == word);
    let (link, add) = (place("link")?, place("add")?);
    if command.first()? != "ip" || add != link + 1 || place("type").is_none() {
        return None;
    }
    let mut command = command.to_vec();
    if let Some(parent) = command[add..].iter().position(|word| word == "link") {
        *command.get_mut(add + parent + 1)? = PARENT.to_owned();
    }
    Some(command)
}

/// True if the kernel does not support a command that creates an interface.
fn is_unsupported(command: &[String]) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let rights: &[&str] = if is_root { &[] } else { &["--map-root-user"] };
    let tried = Command::new("unshare")
        .arg("--net")
        .args(rights)
        .args(["sh", "-c", SCRATCH, "sh"])
        .args(command)
        .output();
    tried.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stderr);
        output.status.code() != Some(9) && UNSUPPORTED.iter().any(|why| text.contains(why))
    })
}

fn explain(command: &[String]) -> String {
    let known = NAMES.iter().find(|(word, ..)| command.iter().any(|other| other == word));
    let kind = command.iter().skip_while(|word| *word != "type").nth(1);
    match known {
        Some((_, name, option)) => format!("the kernel has no {name} ({option})"),
        None => format!("the kernel has no interfaces of type {}", kind.map_or("", String::as_str)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<String> {
        words::split(line).unwrap()
    }

    #[test]
    fn creation_is_moved_to_the_scratch_interface() {
        let of = |line: &str| creation(&split(line)).map(|words| words.join(" "));
        let vlan = of("ip link add link br0 name br0.10 type vlan id 10");
        assert_eq!(vlan.unwrap(), "ip link add link fwdlab0 name br0.10 type vlan id 10");
        let bridge = "ip link add br0 type bridge vlan_filtering 1";
        assert_eq!(of(bridge).unwrap(), bridge);
        for other in ["ip link set br0 up", "bridge vlan add dev d1 vid 10", "ip route add x"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn unsupported_type_is_named_with_its_kernel_option() {
        let of = |line: &str| explain(&split(line));
        let vlan = of("ip link add link d0 name d0.10 type vlan id 10");
        assert_eq!(vlan, "the kernel has no VLAN interfaces (CONFIG_VLAN_8021Q, module 8021q)");
        let filter = of("ip link add br0 type bridge vlan_filtering 1");
        assert!(filter.contains("CONFIG_BRIDGE_VLAN_FILTERING"), "{filter}");
        assert_eq!(
            of("ip link add x type nonesuch"),
            "the kernel has no interfaces of type nonesuch"
        );
    }

    #[test]
    fn only_unknown_types_are_unsupported() {
        // Namespaces have veth in any case.
        let veth = "ip link add v0 type veth peer name v1";
        assert!(!is_unsupported(&split(veth)));
        // A mistake in a command is reported when it runs.
        assert!(!is_unsupported(&split("ip link add link fwdlab7 name v2 type macvlan")));
        let plan = |kind: &str| {
            let text = format!(
                "version = 1\n[testbed]\nkind = \"{kind}\"\n[[factor]]\nname = \"set\"\nlevels = [\
                 {{ label = \"a\" }}, {{ label = \"b\", setup = [\"{veth}\", \"ip link add n0 type \
                 nonesuch\", \"ip link add n1 type nonesuch\"] }}]\n"
            );
            fwdlab_model::load("x.toml", &text, &|_| Ok(Vec::new()))
                .unwrap_or_else(|faults| panic!("{}", faults.render(false)))
        };
        let is_possible = Command::new("unshare").args(["--net", "true"]).status();
        if !is_possible.is_ok_and(|status| status.success()) {
            return fwdlab_testdata::skip("interfaces are created in a namespace as root");
        }
        assert_eq!(lacking(&plan("netns")), ["the kernel has no interfaces of type nonesuch"]);
        assert!(lacking(&plan("sim")).is_empty());
    }
}
