//! Plans: variants, order, alternation, comparison.

use super::{faults, golden, here, plan};
use fwdlab_model::Plan;
use fwdlab_model::plan::Stop;
use proptest::prelude::*;
use std::collections::BTreeSet;

const TWO_FACTORS: &str = "version = 1
[[factor]]
name = \"firewall\"
levels = [\"none\", \"stateful\"]
[[factor]]
name = \"queues\"
levels = [1, 2, 4]
";

/// Returns one line for each variant and block.
fn summary(plan: &Plan) -> String {
    let mut out = format!("{} {}\n", plan.name, plan.hash);
    for variant in &plan.variants {
        out.push_str(&format!(
            "variant {} {} {:?}\n",
            variant.index, variant.label, variant.levels
        ));
    }
    for run in &plan.runs {
        out.push_str(&format!(
            "run {} block {} variants {:?} id {:08x}\n",
            run.index,
            run.block,
            run.variants,
            plan.run_id(run.index)
        ));
    }
    out
}

#[test]
fn plan_is_stable_between_versions() {
    golden(&here("tests/golden/blocks.txt"), &summary(&plan(TWO_FACTORS)));
    let alternating =
        TWO_FACTORS.replace("queues", "icmp_redirect").replace("1, 2, 4", "false, true")
            + "[design]\nalternate = \"100ms\"\nblocks = 6\n";
    golden(&here("tests/golden/alternation.txt"), &summary(&plan(&alternating)));
}

#[test]
fn cycles_of_an_alternation_have_separate_orders() {
    let alternating =
        TWO_FACTORS.replace("queues", "icmp_redirect").replace("1, 2, 4", "false, true")
            + "[design]\nalternate = \"100ms\"\nblocks = 2\n";
    let plan = plan(&alternating);
    let run = &plan.runs[1];
    assert_eq!(plan.cycle(run, 0), run.variants);
    let firsts: Vec<usize> = (1..200).map(|number| plan.cycle(run, number)[0]).collect();
    for variant in 0..4 {
        let share = firsts.iter().filter(|first| **first == variant).count();
        assert!((25..=75).contains(&share), "{variant} begins {share} of 199 cycles");
    }
    for number in 0..20 {
        let cycle = plan.cycle(run, number);
        let mut mirrored = cycle.clone();
        mirrored.reverse();
        assert_eq!(cycle, mirrored);
        let mut half = cycle[..4].to_vec();
        half.sort_unstable();
        assert_eq!(half, [0, 1, 2, 3]);
    }
}

#[test]
fn variants_are_the_full_product_in_the_order_of_the_file() {
    let plan = plan(TWO_FACTORS);
    let labels: Vec<&str> = plan.variants.iter().map(|v| v.label.as_str()).collect();
    let expected = ["none, 1", "none, 2", "none, 4", "stateful, 1", "stateful, 2", "stateful, 4"];
    assert_eq!(labels, expected);
    assert_eq!(plan.variants[4].settings.dut.queues, 2);
    assert_eq!(plan.variants[4].settings.dut.firewall.to_string(), "stateful");
    assert!(plan.factors[1].is_numeric() && !plan.factors[0].is_numeric());
}

proptest! {
    #[test]
    fn every_block_is_a_permutation_of_all_variants(
        blocks in 1_u32..40, seed in 0_i64..i64::MAX, queues in 1_usize..9, firewalls in 1_usize..4,
    ) {
        let queues: Vec<String> = (1..=queues).map(|q| q.to_string()).collect();
        let firewalls = &["\"none\"", "\"stateless\"", "\"stateful\""][..firewalls];
        let text = format!(
            "version = 1\n[design]\nblocks = {blocks}\nseed = {seed}\n\
             [[factor]]\nname = \"queues\"\nlevels = [{}]\n\
             [[factor]]\nname = \"firewall\"\nlevels = [{}]\n",
            queues.join(", "), firewalls.join(", "),
        );
        let first = plan(&text);
        prop_assert_eq!(&first, &plan(&text));
        let variants = queues.len() * firewalls.len();
        prop_assert_eq!(first.variants.len(), variants);
        prop_assert_eq!(first.runs.len(), variants * blocks as usize);
        for (block, runs) in first.runs.chunks(variants).enumerate() {
            prop_assert!(runs.iter().all(|run| run.block as usize == block));
            let seen: BTreeSet<usize> = runs.iter().flat_map(|run| run.variants.clone()).collect();
            prop_assert_eq!(seen, (0..variants).collect::<BTreeSet<_>>());
        }
        for (index, run) in first.runs.iter().enumerate() {
            prop_assert_eq!((run.index as usize, run.variants.len()), (index, 1));
        }
        let ids: BTreeSet<u32> = first.runs.iter().map(|run| first.run_id(run.index)).collect();
        prop_assert_eq!(ids.len(), first.runs.len());
        prop_assert!(!ids.contains(&0));
    }

    #[test]
    fn every_stream_is_a_permutation_and_its_mirror_image(
        blocks in 1_u32..20, seed in 0_i64..1_000_000, levels in 2_usize..7,
    ) {
        let rules: Vec<String> = (0..levels).map(|n| format!("\"rules:{n}\"")).collect();
        let text = format!(
            "version = 1\n[trial]\nduration = \"10s\"\n\
             [design]\nblocks = {blocks}\nseed = {seed}\nalternate = \"200ms\"\n\
             [[factor]]\nname = \"firewall\"\nlevels = [{}]\n", rules.join(", "),
        );
        let plan = plan(&text);
        prop_assert_eq!(plan.runs.len(), blocks as usize);
        for (stream, run) in plan.runs.iter().enumerate() {
            prop_assert_eq!(run.block as usize, stream);
            let mirror: Vec<usize> = run.variants.iter().rev().copied().collect();
            prop_assert_eq!(&mirror, &run.variants);
            let half: BTreeSet<usize> = run.variants[..levels].iter().copied().collect();
            prop_assert_eq!(half, (0..levels).collect::<BTreeSet<_>>());
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "(version = 1\n)?[a-z\\[\\]{}\"'=., \n0-9#]{0,120}") {
        if let Err(all) = super::load(&text) {
            prop_assert!(!all.list.is_empty());
            prop_assert!(!all.render(true).is_empty());
        }
    }
}

#[test]
fn other_seeds_give_other_orders_of_the_same_runs() {
    let order = |seed: u32| -> Vec<usize> {
        let plan = plan(&format!("{TWO_FACTORS}[design]\nblocks = 20\nseed = {seed}\n"));
        plan.runs.iter().flat_map(|run| run.variants.clone()).collect()
    };
    assert_ne!(order(1), order(2));
    // Each variant is first in some block: order and variant are independent.
    let firsts: BTreeSet<usize> = order(1).chunks(6).map(|block| block[0]).collect();
    assert!(firsts.len() >= 4, "{firsts:?}");
}

#[test]
fn alternation_refuses_settings_that_need_a_restart() {
    for name in [
        "queues",
        "routes",
        "napi",
        "offloads",
        "bind_queues",
        "family",
        "frame_size",
        "flows",
        "rate",
        "timestamps",
        "senders",
        "engine",
        "arrangement",
    ] {
        let key = fwdlab_model::spec::keys::setting(name).expect("a setting");
        let text = format!(
            "version = 1\n[trial]\nduration = \"10s\"\n[design]\nalternate = \"170ms\"\n[[factor]]\nname = \"x\"\nlevels = [{{ label = \"a\" }}, {{ label = \"b\", {name} = {} }}]\n",
            key.example
        );
        let got = faults(&text);
        assert!(got.contains(&format!("level `b` of `x` can't alternate: `{name}`")), "{got}");
    }
    for level in [
        "firewall = \"stateful\"",
        "rps = \"3\"",
        "icmp_redirect = true",
        "sysctl = { \"a.b\" = 1 }",
    ] {
        plan(&format!(
            "version = 1\n[trial]\nduration = \"10s\"\n[design]\nalternate = \"170ms\"\n[[factor]]\nname = \"x\"\nlevels = [{{ label = \"a\" }}, {{ label = \"b\", {level} }}]\n"
        ));
    }
}

#[test]
fn alternations_must_fit_their_times() {
    let factor = "[[factor]]\nname = \"firewall\"\nlevels = [\"none\", \"stateful\"]\n";
    let got = faults(&format!("version = 1\n{factor}[design]\nalternate = \"300ms\"\n"));
    assert!(got.contains("whole cycle") && got.contains("1200ms"), "{got}");
    let got = faults(&format!("version = 1\n{factor}[design]\nalternate = \"50ms\"\n"));
    assert!(got.contains("only 10ms would be counted"), "{got}");
}

#[test]
fn baselines_are_selected_per_factor() {
    let baseline = |names: &[&str], written: &str| {
        let mut text = "version = 1\n".to_owned();
        for name in names {
            let levels = match *name {
                "family" => "[\"inet\", \"inet6\"]",
                "frame_size" => "[84, 128]",
                "firewall" => "[\"none\", \"stateful\"]",
                _ => "[1, 2]",
            };
            text.push_str(&format!("[[factor]]\nname = \"{name}\"\nlevels = {levels}\n"));
        }
        plan(&format!("{text}[compare]\n{written}\n")).compare.baseline
    };
    assert_eq!(baseline(&[], ""), []);
    assert_eq!(baseline(&["family"], ""), [Some(0)]);
    assert_eq!(baseline(&["queues", "firewall"], ""), [Some(0), None]);
    assert_eq!(baseline(&["family", "frame_size", "queues"], ""), [None, None, Some(0)]);
    assert_eq!(baseline(&["family", "frame_size"], ""), [None, Some(0)]);
    assert_eq!(
        baseline(&["queues", "family"], "baseline = { family = \"inet6\" }"),
        [None, Some(1)]
    );
    assert_eq!(
        baseline(&["queues", "firewall"], "baseline = { queues = 2, firewall = \"stateful\" }"),
        [Some(1), Some(1)]
    );
}

#[test]
fn levels_show_what_they_change_against_the_base() {
    let plan = plan(
        "version = 1\n[dut]\nqueues = 2\nsysctl = { net.core.dev_weight = 64 }\n[[factor]]\nname = \"x\"\nlevels = [\n{ label = \"same\", queues = 2 },\n{ label = \"other\", queues = 4, sysctl = { \"net.core.dev_weight\" = 128, \"net.ipv4.tcp_fack\" = 1 } },\n]\n",
    );
    assert_eq!(plan.variants[0].settings.dut.sysctl["net.core.dev_weight"], "64");
    let same = plan.differences(0, 0);
    assert!(same.len() == 1 && same[0].is_same());
    let other: Vec<(String, String, Option<String>)> = plan
        .differences(0, 1)
        .into_iter()
        .map(|d| (d.change.setting, d.change.value, d.base))
        .collect();
    let row =
        |a: &str, b: &str, c: Option<&str>| (a.to_owned(), b.to_owned(), c.map(str::to_owned));
    assert_eq!(
        other,
        [
            row("queues", "4", Some("2")),
            row("sysctl net.core.dev_weight", "128", Some("64")),
            row("sysctl net.ipv4.tcp_fack", "1", None),
        ]
    );
}

#[test]
fn a_factor_may_be_named_after_a_sysctl() {
    let plan = plan(
        "version = 1\n[[factor]]\nname = \"net.core.dev_weight\"\nlevels = [64, 128]\n[compare]\nbaseline = { \"net.core.dev_weight\" = 128 }\n",
    );
    assert!(plan.factors[0].is_numeric());
    assert_eq!(plan.variants[1].settings.dut.sysctl["net.core.dev_weight"], "128");
    assert_eq!(plan.compare.baseline, [Some(1)]);
}

#[test]
fn frame_sizes_sweep_and_inet6_is_raised_with_a_note() {
    let plan =
        plan("version = 1\n[traffic]\nfamily = \"inet6\"\nframe_size = [64, 83, 84, 1518]\n");
    let sizes: Vec<u16> =
        plan.variants.iter().map(|v| v.settings.traffic.frame_size.most()).collect();
    assert_eq!(sizes, [84, 84, 84, 1518]);
    assert_eq!(plan.factors[0].name, "frame_size");
    assert_eq!(plan.notes.len(), 2);
    assert!(plan.notes[0].contains("frames of 64 bytes raised to 84 bytes"), "{:?}", plan.notes);
}

#[test]
fn a_simulated_capacity_is_the_base_times_the_effects() {
    let plan = plan(
        "version = 1\n[testbed.sim]\ncapacity = 1e6\neffect = { \"firewall=stateful\" = 0.8, \"x=b\" = 0.5, \"routes=2\" = 0.9 }\n[[factor]]\nname = \"firewall\"\nlevels = [\"none\", \"stateful\"]\n[[factor]]\nname = \"x\"\nlevels = [{ label = \"a\" }, { label = \"b\" }]\n",
    );
    let capacities: Vec<f64> = (0..4).map(|v| (plan.sim_capacity_pps(v) / 1e3).round()).collect();
    assert_eq!(capacities, [900.0, 450.0, 720.0, 360.0]);
}

#[test]
fn duration_estimates_add_up() {
    let text = "version = 1\n[testbed]\nkind = \"netns\"\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n";
    let estimate = plan(text).estimate();
    // 300 ms of warm-up, a window of 1 s, 450 ms around them; one ceiling.
    assert_eq!((estimate.runs, estimate.run_ns), (10, 1_750_050_000));
    assert_eq!((estimate.once_ns, estimate.total_ns), (2_400_000_000, 19_900_500_000));
    assert_eq!((estimate.of_runs(0), estimate.of_runs(1)), (0, 4_150_050_000));
    let sim = plan(&text.replace("netns", "sim")).estimate();
    assert_eq!((sim.total_ns, sim.or_more()), (0, ""));
    let search = "[method]\nkind = \"mlrsearch\"\n";
    assert_eq!(plan(&format!("{text}{search}")).estimate().or_more(), " or more");
    let guests = "version = 1\n[testbed]\nkind = \"vm\"\n[[factor]]\nname = \"kernel\"\nlevels = [\"a.deb\", \"b.deb\", \"c.deb\"]\n[design]\nblocks = 3\n";
    let boots = |text: &str| plan(text).estimate().once_ns / 10_000_000_000;
    assert_eq!(boots(guests), 9, "three don't stay up: each run boots");
    assert_eq!(boots(&guests.replace(", \"c.deb\"", "")), 2);
}

#[test]
fn changes_are_in_file_notation() {
    use fwdlab_model::settings::{Firewall, Rate};
    for written in ["max", "10Mpps", "7%", "0.5%", "1.5Gbit/s", "850pps", "1.488095Mpps"] {
        let plan = plan(&format!("version = 1\n[traffic]\nrate = \"{written}\"\n"));
        assert_eq!(plan.base.traffic.rate.to_string(), written);
    }
    assert_eq!(Rate::Pps(10e6).to_string(), "10Mpps");
    for written in ["none", "stateless", "stateful", "rules:0", "rules:100", "edge.nft"] {
        let plan = plan(&format!("version = 1\n[dut]\nfirewall = \"{written}\"\n"));
        assert_eq!(plan.base.dut.firewall.to_string(), written);
    }
    assert_eq!(Firewall::Rules(5).to_string(), "rules:5");
}

#[test]
fn stopping_rule_plans_the_maximum_blocks() {
    let stopping = |design: &str| plan(&format!("{TWO_FACTORS}[design]\n{design}"));
    let planned = stopping("stop = \"planned\"");
    assert_eq!((planned.design.stop, planned.design.blocks), (Some(Stop::Planned), 20));
    assert_eq!(planned.runs.len(), 20 * 6);
    let open = stopping("stop = \"open\"");
    assert_eq!((open.design.stop, open.design.blocks), (Some(Stop::Open), 100));
    let fewer = stopping("stop = \"open\"\nmax_blocks = 7");
    assert_eq!((fewer.design.blocks, fewer.runs.len()), (7, 7 * 6));
    // The order is that of the same number of blocks with a fixed design.
    let fixed = stopping("blocks = 20");
    assert_eq!(planned.runs, fixed.runs);
    assert_ne!(planned.hash, fixed.hash);
    assert_ne!(planned.hash, stopping("stop = \"open\"\nmax_blocks = 20").hash);

    let extents = [&planned, &fewer, &fixed].map(|plan| plan.design.extent());
    let expected = [
        "up to 20 blocks, at most 5 looks (O'Brien-Fleming)",
        "up to 7 blocks, a look after each (e-process)",
        "20 blocks",
    ];
    assert_eq!(extents, expected);
}

#[test]
fn too_many_runs_under_a_rule_point_at_max_blocks() {
    let levels: Vec<String> = (1..=101).map(|n| format!("\"rules:{n}\"")).collect();
    let text = format!(
        "version = 1\n[design]\nstop = \"open\"\nmax_blocks = 10000\n[[factor]]\nname = \"firewall\"\nlevels = [{}]\n",
        levels.join(", ")
    );
    let got = faults(&text);
    assert!(got.contains("1010000 runs") && got.contains("test.toml:4:14"), "{got}");
}
