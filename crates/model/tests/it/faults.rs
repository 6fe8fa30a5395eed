//! Faults in their printed form: `tests/faults/NAME.toml` in, `NAME.txt` out.

use super::{faults, golden, here, load, loader};
use std::fs;

#[test]
fn faulty_files_match_their_golden_text() {
    let mut count = 0;
    for entry in fs::read_dir(here("tests/faults")).expect("the folder exists") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).expect("the file can be read");
            let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
            let all = fwdlab_model::load(name, &text, &loader).expect_err("the file is faulty");
            golden(&path.with_extension("txt"), &all.render(false));
            count += 1;
        }
    }
    assert!(count >= 10, "{count} files");
}

#[test]
fn colour_does_not_change_the_text() {
    let text = fs::read_to_string(here("tests/faults/many.toml")).expect("the file can be read");
    let all = load(&text).expect_err("the file is faulty");
    let mut plain = String::new();
    let coloured = all.render(true);
    let mut rest = coloured.as_str();
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        let end = rest[at..].find('m').expect("an escape sequence ends with m");
        rest = &rest[at + end + 1..];
    }
    plain.push_str(rest);
    assert_eq!(plain, all.render(false));
}

#[test]
fn single_faults_are_reported_with_help() {
    for (text, message, hint) in [
        ("", "version of the format is missing", "version = 1"),
        ("version = 2", "the integer 1", "version 1"),
        ("version = 1\n[dut]\nqueus = 2", "unknown key `queus` in [dut]", "did you mean `queues`?"),
        ("version = 1\n[dut]\nnat = true", "one of \"none\", \"source\", ", "true"),
        ("version = 1\n[dut]\nmasquerade = true", "unknown key `masquerade`", "nat = \"source\""),
        ("version = 1\n[dut]\ndnat = true", "unknown key `dnat`", "nat = \"destination\""),
        ("version = 1\n[dut]\nnat66 = true", "unknown key `nat66`", "nat = \"source\""),
        ("version = 1\n[dut]\nnat64 = true", "unknown key `nat64`", "can't measure"),
        ("version = 1\n[dut]\nnat = \"destination\"", "an address for each", "nat_address"),
        (
            "version = 1\n[dut]\nnat = \"destination\"\nnat_address = \"2001:2::1\"",
            "of the traffic's family",
            "nat_address",
        ),
        ("version = 1\n[dut]\nnat_port = 80", "unless destinations", "nat = \"destination\""),
        ("version = 1\n[dut]\nnat_address = \"x\"", "an IP address", "invalid IP address"),
        ("version = 1\n[traffic]\nvlan = 10", "unknown key `vlan`", "untagged frames"),
        ("version = 1\nconntrack = true", "unknown key `conntrack`", "firewall = \"stateful\""),
        ("version = 1\nthroughput = true", "unknown key `throughput`", "fwdlab new throughput"),
        (
            "version = 1\n[dut]\nkind = \"router\"\nnat = \"source\"",
            "`nat` is for packets",
            "leave it out",
        ),
        (
            "version = 1\n[dut]\nnat = \"source\"\n[traffic]\ndirections = \"both\"",
            "the device chooses their ports",
            "nat = \"destination\"",
        ),
        (
            "version = 1\n[dut]\nnat = \"destination\"\n[[factor]]\nname = \"flows\"\nlevels = [\
             { sources = 100, destinations = 1 }, { sources = 10, destinations = 100 }]",
            "an address for each",
            "nat_address",
        ),
        (
            "version = 1\n[dut]\nnat = \"source\"\n[[factor]]\nname = \"kind\"\n\
             levels = [\"linux\", \"router\"]",
            "`nat` is for packets",
            "levels of the other devices",
        ),
        (
            "version = 1\n[dut]\nnat = \"source\"\n[method]\nkind = \"rfc2544\"",
            "a reset ends translations",
            "without \"reset\"",
        ),
        (
            "version = 1\n[dut]\nnat = \"destination\"\n[traffic]\nflows = { sources = 9, \
             destinations = 1 }\nrate = \"9kpps\"\n[method]\nkind = \"flood\"\nmax_load = \"200kpps\"",
            "65024 sources for each",
            "nat_address",
        ),
        ("version = 1\n[traffic]\nnat = \"source\"", "unknown key `nat`", "belongs in [dut]"),
        ("version = 1\nqueues = 2", "unknown key `queues`", "belongs in [dut]"),
        ("version = 1\n[profile]\nduration = \"0.5s\"", "too short", "1s"),
        ("version = 1\n[profile]\nwindows = 0", "from 1 to 100", "less than 1"),
        ("version = 1\n[profile]\nfrequency = 30000", "from 1 to 20000", "more than 20000"),
        ("version = 1\n[profile]\nevent = \"cpu-clok\"", "one of", "\"cpu-clock\"?"),
        ("version = 1\n[profile]\nsubsystems = \"no.txt\"", "can't be read", "no such file"),
        ("version = 1\n[testbed]\nkind = \"ssh\"", "without the file of its", "lab = \"lab.toml\""),
        ("version = 1\n[testbed]\nlab = \"x\"", "`lab` has no effect", "kind = \"ssh\""),
        ("version = 1\n[testbed]\nkind = \"vm\"", "without a kernel", "linux-image"),
        (
            "version = 1\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"k\"\ndisk = \"d\"",
            "no disk",
            "leave `disk` out",
        ),
        (
            "version = 1\n[testbed]\nkind = \"vm\"\n[dut]\nkind = \"freebsd\"",
            "FreeBSD guest without a disk",
            "freebsd.raw",
        ),
        (
            "version = 1\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"k\"\n[traffic]\nrate = \"1kpps\"",
            "in lockstep",
            "leave it out",
        ),
        (
            "version = 1\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"k\"\n[method]\n\
             kind = \"mlrsearch\"\n[compare]\nfigure = \"instructions\"",
            "time means nothing",
            "leave `figure` out",
        ),
        (
            "version = 1\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"k\"\naccel = \"kvm\"",
            "the CPU itself counts no instructions",
            "figure = \"mean\"",
        ),
        (
            "version = 1\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"k\"\nbatch = 8\n[compare]\n\
             figure = \"mean\"",
            "no effect where a rate is measured",
            "count instructions",
        ),
        (
            "version = 1\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"k\"\n[design]\nstop = \"planned\"\n\
             [[factor]]\nname = \"routes\"\nlevels = [2, 9]",
            "decides by scatter",
            "blocks = 3",
        ),
        (
            "version = 1\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"k\"\n[profile]\nwindows = 2",
            "no profiler samples",
            "leave [profile] out",
        ),
        ("version = 1\n[compare]\nfigure = \"instructions\"", "nobody counts", "kind = \"vm\""),
        ("version = 1\n[vm]\nkernel = \"k\"", "of a virtual machine", "kind = \"vm\""),
        ("version = 1\n[dut]\nkind = \"freebsd\"", "not FreeBSD's", "lab = \"lab.toml\""),
        ("version = 1\n[dut]\nkind = \"command\"", "nothing says how", "start = "),
        ("version = 1\n[dut]\nstart = [\"x\"]", "started by commands", "kind = \"command\""),
        (
            "version = 1\n[dut]\nkind = \"command\"\nstart = [\"x\"]\nstatistics = [\"y\"]\ncounters = { a = \"rx\" }",
            "regular expression with one group",
            "JSON",
        ),
        (
            "version = 1\n[dut]\nkind = \"command\"\nstart = [\"x\"]\nroutes = 9",
            "says nothing to a program",
            "arguments of `start`",
        ),
        ("version = 1\n[dut]\nkind = \"roter\"\nfib = \"radix\"", "one of", "\"router\"?"),
        ("version = 1\n[dut]\nfib = \"radix\"", "setting of the router", "kind = \"router\""),
        ("version = 1\n[dut]\nkind = \"router\"\nfib = \"dir-24-8\"", "one of", "\"dir24_8\"?"),
        ("version = 1\n[dut]\nkind = \"router\"\nlocking = \"rwlok\"", "one of", "\"rwlock\"?"),
        ("version = 1\n[dut]\nkind = \"router\"\npath = \"slow\"", "one of", "\"full\""),
        ("version = 1\n[dut]\nkind = \"router\"\nport = \"xks\"", "one of", "\"xsk\"?"),
        (
            "version = 1\n[dut]\nkind = \"router\"\nfirewall = \"rules:3\"\nstate = \"global\"",
            "without a stateful firewall",
            "firewall = \"stateful\"",
        ),
        (
            "version = 1\n[dut]\nkind = \"router\"\nfirewall = \"stateful\"\nstate_limit = 0",
            "from 1 to 16777216",
            "less than 1",
        ),
        (
            "version = 1\n[dut]\nkind = \"router\"\nrps = \"3\"",
            "setting of the Linux kernel",
            "kind = \"linux\"",
        ),
        (
            "version = 1\n[dut]\nkind = \"router\"\nroutes_file = \"no.mrt\"",
            "the file of routes `no.mrt` can't be read",
            "no such file",
        ),
        ("version = 1\n[dut]\nfirewall = \"rib.mrt\"", "can't be read", "no text"),
        (
            "version = 1\n[testbed]\nkind = \"memory\"",
            "no kernel forwards packets in memory",
            "kind = \"router\" in [dut]",
        ),
        ("version = 1\n[dut]\nqueues = 65", "from 1 to 64", "more than 64"),
        ("version = 1\n[dut]\nqueues = 0", "from 1 to 64", "less than 1"),
        ("version = 1\n[dut]\nqueues = 99999999999999999999", "from 1 to 64", "more than 64"),
        ("version = 1\n[dut]\nqueues = \"4\"", "must be an integer", "the text \"4\""),
        ("version = 1\n[dut]\nroutes = 1", "from 2 to 1048576", "less than 2"),
        ("version = 1\n[dut]\nrps = \"xyz\"", "hexadecimal", "xyz"),
        (
            "version = 1\n[dut]\nfirewall = \"statefull\"",
            "\"stateful\"",
            "did you mean \"stateful\"?",
        ),
        ("version = 1\n[dut]\nfirewall = \"rules:x\"", "rules:N", "from 0 to 10000"),
        ("version = 1\n[dut]\nfirewall = \"other.nft\"", "can't be read", "no such file"),
        ("version = 1\n[dut]\nsysctl = { \"net/../x.y\" = 1 }", "no name of a sysctl", "dots"),
        ("version = 1\n[dut]\nsysctl = { \"a.b\" = true }", "must be an integer", "write 1"),
        ("version = 1\n[traffic]\nframe_size = 60", "64 to 1518", "write 64"),
        ("version = 1\n[traffic]\nframe_size = \"imiks\"", "64 to 1518", "no mix has this name"),
        ("version = 1\n[traffic]\nframe_size = \"genome:ah\"", "genome:aafg", "`h` is no size"),
        (
            "version = 1\n[traffic]\nframe_size = \"imix\"\ngenerator = \"trex\"\n[testbed]\nkind = \"sim\"",
            "can be a mix where",
            "a list of them",
        ),
        (
            "version = 1\n[traffic]\ngenerator = \"pkt-gen\"\n[testbed]\nkind = \"sim\"\n[method]\nkind = \"system-recovery\"",
            "keeps one rate",
            "leave `generator` out",
        ),
        ("version = 1\n[traffic]\nframe_size = []", "at least one", "empty"),
        ("version = 1\n[traffic]\nflows = 2000", "a table", "the integer 2000"),
        ("version = 1\n[traffic]\nflows = { sources = 65001 }", "from 1 to 65000", "more"),
        (
            "version = 1\n[traffic]\nflows = { sources = 2000, destinations = 2000 }",
            "at most 1000000",
            "4000000",
        ),
        ("version = 1\n[traffic]\nrate = \"10GB\"", "1Gbit/s", "10Mpps"),
        ("version = 1\n[traffic]\nprotocol = \"tcp\"", "no protocol \"tcp\"", "udp"),
        ("version = 1\n[trial]\nduration = 2", "with its unit", "\"2s\""),
        ("version = 1\n[trial]\nslice = \"1ms\"", "too short", "5ms"),
        ("version = 1\n[trial]\ninterval = \"50ms\"", "multiple of `slice`", "sums"),
        ("version = 1\n[trial]\nduration = \"50ms\"", "at least three slices", "60ms"),
        ("version = 1\n[testbed]\nsenders = 2", "one sender", "closed"),
        ("version = 1\n[compare]\nmargin = 2", "percentage", "\"2%\""),
        ("version = 1\n[compare]\nconfidence = 96", "99.5", "96"),
        ("version = 1\n[compare]\nbaseline = { queues = 1 }", "no factor", "no [[factor]]"),
        ("version = 1\n[design]\nalternate = \"170ms\"", "nothing to alternate", "[[factor]]"),
        (
            "version = 1\n[traffic]\nrate = \"1kpps\"\n[compare]\nfigure = \"p90\"",
            "packets come at a rate",
            "remove `figure`",
        ),
        (
            "version = 1\n[design]\nalternate = \"250ms\"\n[trial]\nduration = \"4s\"\n[[factor]]\n\
             name = \"firewall\"\nlevels = [\"none\", \"stateless\"]",
            "keeps step with the seconds",
            "170ms",
        ),
        ("version = 1\n[testbed.sim]\ncontamination = 0.6", "from 0 to 0.5", "more than 0.5"),
        ("version = 1\n[testbed.sim]\ncontamination_depth = 1", "from 0 to 0.99", "more"),
        ("version = 1\n[design]\nmax_blocks = 10", "only beside `stop`", "blocks = 10"),
        ("version = 1\n[design]\nstop = \"open\"", "nothing is compared", "[[factor]]"),
        ("version = 1\n[design]\nstop = \"opne\"\nmax_blocks = 9", "one of", "\"open\"?"),
        ("version = 1\n[compare]\nadjust = \"bonferroni\"", "\"holm\"", "bonferroni"),
        (
            "version = 1\n[testbed.sim]\neffect = { \"firewal=none\" = 0.5 }",
            "neither",
            "`firewall`",
        ),
        (
            "version = 1\n[testbed.sim]\neffect = { \"firewall=stateful\" = 0.5 }",
            "never applies",
            "none",
        ),
        ("version = 1\n[testbed.sim]\neffect = { \"firewall=none\" = 0 }", "above 0", "80 %"),
    ] {
        let got = faults(text);
        assert!(
            got.contains(message) && got.contains(hint),
            "{text}\nwants {message}, {hint}\n{got}"
        );
        assert!(got.ends_with("1 fault in test.toml\n"), "{text}\n{got}");
    }
}

#[test]
fn factor_faults_are_reported() {
    let factor = |body: &str| format!("version = 1\n[[factor]]\n{body}");
    for (body, message, hint) in [
        ("levels = [1]", "factor without name", "name ="),
        ("name = \"queues\"", "factor without levels", "levels ="),
        ("name = \"queues\"\nlevels = []", "at least one level", "empty"),
        (
            "name = \"queus\"\nlevels = [1, 2]",
            "is no setting",
            "did you mean the setting `queues`?",
        ),
        ("name = \"protocol\"\nlevels = [\"udp\"]", "can't be varied", "two experiments"),
        ("name = \"kind\"\nlevels = [\"sim\"]", "one of \"linux\", \"router\"", "\"sim\""),
        ("name = \"a b\"\nlevels = [{ label = \"x\" }]", "can't be the name", "letters"),
        ("name = \"x\"\nlevels = [{ queues = 1 }]", "without label", "label ="),
        (
            "name = \"x\"\nlevels = [{ label = \"y\", capacity = 1 }]",
            "unknown key `capacity`",
            "[testbed.sim]",
        ),
        (
            "name = \"x\"\nlevels = [{ label = \"y\", \"a.b\" = 1 }]",
            "unknown key `a.b`",
            "sysctl = {",
        ),
        ("name = \"queues\"\nlevels = [1, 1]", "two levels of `queues`", "A/A"),
        ("name = \"rate\"\nlevels = [[1]]", "must be \"max\"", "a list"),
        (
            "name = \"queues\"\nlevels = [1, 2]\n[compare]\nbaseline = { queues = 3 }",
            "`3` is no level",
            "1, 2",
        ),
        (
            "name = \"queues\"\nlevels = [1, 2]\n[compare]\nbaseline = { queue = 1 }",
            "which is no factor",
            "did you mean `queues`?",
        ),
        (
            "name = \"queues\"\nlevels = [1, 2]\n[[factor]]\nname = \"q\"\nlevels = [{ label = \"a\", queues = 2 }]",
            "varied by two factors, `queues` and `q`",
            "one factor",
        ),
        (
            "name = \"queues\"\nlevels = [1, 2]\n[[factor]]\nname = \"queues\"\nlevels = [3]",
            "two factors are called",
            "rename",
        ),
    ] {
        let got = faults(&factor(body));
        assert!(
            got.contains(message) && got.contains(hint),
            "{body}\nwants {message}, {hint}\n{got}"
        );
    }
}

#[test]
fn too_many_variants_and_runs_are_refused() {
    let bundle = |name: &str| {
        let levels: Vec<String> = (0..70).map(|i| format!("{{ label = \"{i}\" }}")).collect();
        format!("[[factor]]\nname = \"{name}\"\nlevels = [{}]\n", levels.join(", "))
    };
    let got = faults(&format!("version = 1\n{}{}", bundle("a"), bundle("b")));
    assert!(got.contains("4900 variants"), "{got}");
    let got = faults(&format!(
        "version = 1\n[design]\nblocks = 10000\n{}[[factor]]\nname = \"queues\"\nlevels = [1, 2]",
        bundle("a")
    ));
    assert!(got.contains("1400000 runs"), "{got}");
}

#[test]
fn truncated_files_do_not_panic() {
    for path in ["tests/faults/many.toml", "../../experiments/sim.toml"] {
        let text = fs::read_to_string(here(path)).expect("the file can be read");
        for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
            for cut in [&text[..at], &text[at..]] {
                if let Err(all) = load(cut) {
                    assert!(!all.list.is_empty() && !all.render(false).is_empty());
                }
            }
        }
    }
}
