//! The reader, the tables of keys and the schema are consistent.

use super::{faults, load, plan};
use fwdlab_model::plan::Adjust;
use fwdlab_model::schema::schema;
use fwdlab_model::settings::Settings;
use fwdlab_model::spec::format_ns;
use fwdlab_model::spec::keys::{self, Key, SECTIONS, Section, Vary};
use serde_json::Value;

/// Returns the settings that a key of `[dut]`, or a level of it, requires to have an effect.
fn device_of(key: &Key, value: &str) -> &'static str {
    match key.name {
        "firewall_program" if ["\"nft\"", "\"iptables\""].contains(&value) => {
            "firewall = \"stateful\"\n"
        }
        "firewall_program" => "kind = \"freebsd\"\nfirewall = \"stateful\"\n",
        "nat" if ["\"destination\"", "\"both\""].contains(&value) => {
            "nat_address = \"203.0.113.0\"\n"
        }
        "nat_address" => "nat = \"destination\"\n",
        "nat_port" => "nat = \"destination\"\nnat_address = \"203.0.113.0\"\n",
        "loader" | "rc" | "harvest_mask" => "kind = \"freebsd\"\n",
        "kind" if value == "\"command\"" => "start = [\"x\"]\n",
        "start" => "kind = \"command\"\n",
        "counters" => "kind = \"command\"\nstart = [\"x\"]\nstatistics = [\"y\"]\n",
        "ready" | "stop" | "statistics" | "rewrites" => "kind = \"command\"\nstart = [\"x\"]\n",
        "image" => "upgrade = \"cat\"\n",
        "upgrade" => "image = \"image.xz\"\n",
        "expect" => "verify = \"uname -a\"\n",
        "state" | "state_limit" => "kind = \"router\"\nfirewall = \"stateful\"\n",
        "fib" | "locking" | "path" | "entropy_harvest" | "port" | "routes_file" => {
            "kind = \"router\"\n"
        }
        _ => "",
    }
}

/// Returns the testbed of a laboratory or a virtual machine, if a key has no effect elsewhere.
fn testbed_of(key: &Key, value: &str) -> &'static str {
    match key.name {
        "firewall_program" | "loader" | "rc" | "harvest_mask" | "bind_interrupts" | "overlay"
        | "reboot" | "install" | "image" | "upgrade" | "verify" | "expect" | "generator"
        | "generator_server" | "generator_options" => {
            "[testbed]\nkind = \"ssh\"\nlab = \"lab.toml\"\n"
        }
        "kernel" | "disk" | "accel" | "cpus" | "memory" | "nic" | "batch" | "calls" | "caches" => {
            "[testbed]\nkind = \"vm\"\n[dut]\nkind = \"freebsd\"\n"
        }
        "kind" if value == "\"freebsd\"" => "[testbed]\nkind = \"ssh\"\nlab = \"lab.toml\"\n",
        _ => "",
    }
}

/// Returns the settings that a key of `[traffic]` requires to have an effect.
fn generator_of(key: &Key) -> &'static str {
    match key.name {
        "generator_server" => "generator = \"trex\"\n",
        "generator_options" => "generator = \"pkt-gen\"\n",
        // Without it, the device has one address.
        "nat_address" => "flows = { sources = 2000, destinations = 1 }\n",
        _ => "",
    }
}

/// Methods of devices that keep connections.
const STATEFUL: [&str; 4] =
    ["\"establishment-rate\"", "\"tear-down-rate\"", "\"table-capacity\"", "\"rfc9693\""];

/// Returns a file with one key.
pub(super) fn writing(section: &Section, key: &Key, value: &str) -> String {
    let line = format!("{} = {value}\n", key.name);
    let factor = "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2, 4, 8]\n";
    match (section.path, key.name) {
        ("", "version") => line,
        ("", _) => format!("version = 1\n{line}"),
        ("factor", "name") => factor.to_owned(),
        ("factor", _) => format!("version = 1\n[[factor]]\nname = \"queues\"\n{line}"),
        // A single build gives no information.
        ("factor.level", "build_of") => {
            let level = |label: &str| format!("{{ label = \"{label}\", {} }}", line.trim_end());
            let levels = ["1", "2"].map(level).join(", ");
            format!("version = 1\n[[factor]]\nname = \"x\"\nlevels = [{levels}]\n")
        }
        ("factor.level", _) => {
            format!("version = 1\n[[factor]]\nname = \"x\"\nlevels = [{{ {} }}]\n", line.trim_end())
        }
        ("testbed", "senders") => {
            format!("version = 1\n[testbed]\narrangement = \"closed\"\n{line}")
        }
        ("testbed", "kind") if value == "\"ssh\"" => {
            format!("version = 1\n[testbed]\n{line}lab = \"lab.toml\"\n")
        }
        ("testbed", "lab") => format!("version = 1\n[testbed]\nkind = \"ssh\"\n{line}"),
        ("testbed", "kind") if value == "\"memory\"" => {
            format!("version = 1\n[testbed]\n{line}[dut]\nkind = \"router\"\n")
        }
        ("testbed", "kind") if value == "\"vm\"" => {
            format!("version = 1\n[testbed]\n{line}[vm]\nkernel = \"kernel.deb\"\n")
        }
        ("vm", "accel") if value == "\"kvm\"" => {
            silent(section, key, value) + &line + "[compare]\nfigure = \"mean\"\n"
        }
        ("vm", "disk") => silent(section, key, value).replace("disk = \"x\"\n", &line),
        ("dut" | "traffic" | "vm", _) => silent(section, key, value) + &line,
        ("design", "alternate") => format!(
            "version = 1\n[design]\n{line}[[factor]]\nname = \"firewall\"\nlevels = [\"none\", \"stateful\"]\n"
        ),
        ("method", "kind") if ["\"fixed\"", "\"soak\""].contains(&value) => {
            format!("version = 1\n[traffic]\nrate = 1000\n[method]\n{line}")
        }
        ("method", "kind") if value == "\"flood\"" => {
            format!("version = 1\n[traffic]\nrate = 1000\n[method]\nmax_load = 1000\n{line}")
        }
        ("method", "kind") if STATEFUL.contains(&value) => {
            let many = "flows = { sources = 100, destinations = 100 }";
            let device = "[dut]\nfirewall = \"stateful\"\n";
            format!("version = 1\n{device}[traffic]\n{many}\n[method]\n{line}")
        }
        ("method", "kind") => format!("version = 1\n[method]\n{line}"),
        ("method" | "method.goal", _) => silent(section, key, value) + &line,
        ("design", "stop") => format!("{factor}[design]\n{line}"),
        ("design", "max_blocks") => format!("{factor}[design]\nstop = \"planned\"\n{line}"),
        ("compare", "baseline") => format!("{factor}[compare]\n{line}"),
        ("compare", "figure") if value == "\"instructions\"" => format!(
            "version = 1\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"kernel.deb\"\n[compare]\n{line}"
        ),
        (path, _) => format!("version = 1\n[{path}]\n{line}"),
    }
}

/// Returns the same file without that key, for keys of `[dut]` and `[traffic]`.
fn silent(section: &Section, key: &Key, value: &str) -> String {
    let (testbed, device) = (testbed_of(key, value), device_of(key, value));
    match section.path {
        "vm" => format!("version = 1\n{testbed}[vm]\ndisk = \"x\"\n"),
        "dut" => format!("version = 1\n{testbed}[dut]\n{device}"),
        "method" if key.name == "step" => {
            "version = 1\n[method]\nkind = \"loss-curve\"\n".to_owned()
        }
        "method" if ["tests", "repeats", "max_frames", "overload"].contains(&key.name) => {
            "version = 1\n[method]\nkind = \"rfc2544\"\n".to_owned()
        }
        "method" if key.name == "shares" => {
            "version = 1\n[method]\nkind = \"latency\"\n".to_owned()
        }
        "method" => "version = 1\n[method]\nkind = \"mlrsearch\"\n".to_owned(),
        "method.goal" => {
            let name = if key.name == "name" { "" } else { "name = \"x\"\n" };
            format!("version = 1\n[method]\nkind = \"mlrsearch\"\n[[method.goal]]\n{name}")
        }
        _ => format!("version = 1\n{testbed}[traffic]\n{}", generator_of(key)),
    }
}

fn all_keys() -> impl Iterator<Item = (&'static Section, &'static Key)> {
    SECTIONS.iter().flat_map(|section| section.keys.iter().map(move |key| (section, key)))
}

#[test]
fn examples_are_accepted_and_defaults_change_nothing() {
    for (section, key) in all_keys() {
        if !key.example.is_empty() {
            plan(&writing(section, key, key.example));
        }
        if !key.default.is_empty() && key.name != "senders" {
            let written = plan(&writing(section, key, key.default));
            let silent = match section.path {
                "profile" => plan("version = 1\n[profile]\n"),
                "dut" | "traffic" | "vm" | "method" | "method.goal" => {
                    plan(&silent(section, key, key.default))
                }
                _ => plan("version = 1\n"),
            };
            assert_eq!(written, silent, "default of {} {}", key.name, section.place());
        }
    }
}

#[test]
fn keys_have_a_description_and_an_example() {
    for (section, key) in all_keys() {
        assert!(key.doc.ends_with('.'), "{} {}", key.name, section.place());
        assert_ne!(key.example, key.default, "{} {}", key.name, section.place());
    }
}

#[test]
fn settings_can_be_levels_alone_and_in_a_bundle() {
    for key in keys::settings() {
        let testbed = match testbed_of(key, key.example) {
            "" => "[testbed]\narrangement = \"closed\"\n",
            laboratory => laboratory,
        };
        let device = match key.name {
            // Both levels require it.
            "start" => "kind = \"command\"\nstart = [\"x\"]\n",
            _ => device_of(key, key.example),
        };
        let device = match key.owner {
            keys::Owner::Vm => "[vm]\ndisk = \"x\"\n".to_owned(),
            _ => format!("[traffic]\n{}[dut]\n{device}", generator_of(key)),
        };
        let head = format!("version = 1\n{testbed}{device}[[factor]]\n");
        let bundle = format!(
            "{head}name = \"x\"\nlevels = [{{ label = \"a\" }}, {{ label = \"b\", {} = {} }}]\n",
            key.name, key.example
        );
        let plan_ = if key.name == "arrangement" {
            plan(&bundle.replace("arrangement = \"closed\"\n", ""))
        } else {
            plan(&bundle)
        };
        assert_ne!(plan_.variants[0].settings, plan_.variants[1].settings, "{}", key.name);
        assert_eq!(plan_.factors[0].levels[1].changes.len(), 1, "{}", key.name);
        assert_eq!(plan_.factors[0].levels[1].changes[0].live, key.vary == Vary::Live);

        if !matches!(key.name, "sysctl" | "loader" | "rc" | "counters") {
            let single = format!("{head}name = \"{}\"\nlevels = [{}]\n", key.name, key.example);
            assert_eq!(plan(&single).factors[0].levels.len(), 1, "{}", key.name);
        }
    }
}

/// Walks the schema and the tables: the same names in the same places.
#[test]
fn schema_has_exactly_the_keys_of_the_reader() {
    let schema = schema();
    let names = |value: &Value| -> Vec<String> {
        assert_eq!(value["additionalProperties"], false, "{value}");
        value["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    };
    let expected = |section: &Section| -> Vec<String> {
        section.keys.iter().map(|key| key.name.to_owned()).collect()
    };
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    for section in SECTIONS {
        let (place, more): (&Value, Vec<&str>) = match section.path {
            "" => (
                &schema,
                vec![
                    "testbed", "dut", "factor", "traffic", "trial", "method", "design", "compare",
                    "profile", "vm",
                ],
            ),
            "testbed" => (&schema["properties"]["testbed"], vec!["sim"]),
            "method" => (&schema["properties"]["method"], vec!["goal"]),
            "method.goal" => {
                (&schema["properties"]["method"]["properties"]["goal"]["items"], vec![])
            }
            "testbed.sim" => (&schema["properties"]["testbed"]["properties"]["sim"], vec![]),
            "traffic.flows" => (&schema["properties"]["traffic"]["properties"]["flows"], vec![]),
            "factor" => (&schema["properties"]["factor"]["items"], vec![]),
            "factor.level" => (
                &schema["properties"]["factor"]["items"]["properties"]["levels"]["items"]["anyOf"]
                    [2],
                keys::settings().map(|key| key.name).collect(),
            ),
            path => (&schema["properties"][path], vec![]),
        };
        let mut expected = expected(section);
        expected.extend(more.iter().map(|name| (*name).to_owned()));
        assert_eq!(sorted(names(place)), sorted(expected.clone()), "{}", section.place());

        // The reader refuses other names, and only those.
        let stranger = Key { name: "zzzzzzzzzz", ..section.keys[0] };
        let text = match section.path {
            "factor.level" => {
                "version = 1\n[[factor]]\nname = \"x\"\nlevels = [{ label = \"a\", zzzzzzzzzz = 1 }]".to_owned()
            }
            "factor" => writing(section, &section.keys[1], "[1]") + "zzzzzzzzzz = 1",
            "" => "version = 1\nzzzzzzzzzz = 1".to_owned(),
            _ => writing(section, &stranger, "1"),
        };
        let got = faults(&text);
        assert!(got.contains("unknown key `zzzzzzzzzz`"), "{}: {got}", section.place());
        for name in expected {
            assert!(got.contains(&name), "`{name}` is not offered {}: {got}", section.place());
        }
    }
}

/// The ranges and words of the schema are those that the reader enforces.
#[test]
fn schema_bounds_match_the_reader() {
    let schema = schema();
    for section in SECTIONS {
        let properties = match section.path {
            "" | "factor" | "factor.level" | "traffic.flows" => continue,
            "testbed.sim" => &schema["properties"]["testbed"]["properties"]["sim"]["properties"],
            "method.goal" => {
                &schema["properties"]["method"]["properties"]["goal"]["items"]["properties"]
            }
            path => &schema["properties"][path]["properties"],
        };
        for key in section.keys {
            let property = &properties[key.name];
            let accepts = |value: &str| load(&writing(section, key, value)).is_ok();
            for word in property["enum"].as_array().into_iter().flatten() {
                assert!(accepts(&word.to_string()), "{} = {word}", key.name);
            }
            if property["type"] == "integer" {
                let min = property["minimum"].as_i64().expect("a minimum");
                assert!(accepts(&min.to_string()), "{} = {min}", key.name);
                assert!(!accepts(&(min - 1).to_string()), "{} below {min}", key.name);
                if let Some(max) = property["maximum"].as_i64() {
                    assert!(accepts(&max.to_string()), "{} = {max}", key.name);
                    assert!(!accepts(&(max + 1).to_string()), "{} above {max}", key.name);
                }
            }
            if property["type"] == "boolean" {
                assert!(accepts("true") && accepts("false") && !accepts("1"), "{}", key.name);
            }
        }
    }
}

#[test]
fn empty_experiment_has_the_documented_defaults() {
    let plan = plan("version = 1\n");
    assert_eq!(plan.base, Settings::default());
    assert_eq!((plan.name.as_str(), plan.title.as_str()), ("test", "test"));
    assert_eq!((plan.variants.len(), plan.variants[0].label.as_str()), (1, "all"));
    assert_eq!((plan.design.blocks, plan.design.seed, plan.design.alternate_ns), (5, 1, None));
    assert_eq!((plan.compare.confidence, plan.compare.margin), (95.0, 0.02));
    assert_eq!(plan.compare.figure, None);
    assert_eq!((plan.design.stop, plan.compare.adjust), (None, Adjust::Holm));
    let trial = plan.trial;
    let phases =
        [trial.warmup_ns, trial.duration_ns, trial.drain_ns, trial.interval_ns, trial.slice_ns];
    assert_eq!(phases.map(format_ns).join(" "), "300ms 1s 200ms 100ms 20ms");
}
