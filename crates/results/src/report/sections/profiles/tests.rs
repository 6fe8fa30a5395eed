use super::*;
use crate::report::Analysis;
use crate::store::StoredProfile;
use fwdlab_model::RunRecord;
use fwdlab_model::record::{
    Counts, DeviceTime, ProfileRecord, ProfileWindow, ReceiverPlace, TrialRecord,
};
use fwdlab_model::settings::Rate;

/// One million packets per second, slightly more in each later block.
const RATE: u64 = 1_000_000;

/// A profile run of one second at `rate`, in two parts, in which the firewall takes `firewall`
/// samples of `60 + firewall`.
fn profile(variant: usize, start: u16, rate: u64, firewall: u64) -> StoredProfile {
    let window = |n: u64| ProfileWindow {
        from_ns: n * 500_000_000,
        to_ns: (n + 1) * 500_000_000,
        offered: rate,
        forwarded: rate / 2,
    };
    let folded =
        format!("napi/d0;veth_poll;ip_rcv 60\nnapi/d0;veth_poll;nft_do_chain {firewall}\n");
    StoredProfile {
        record: ProfileRecord {
            variant,
            start,
            windows: vec![window(0), window(1)],
            ..ProfileRecord::default()
        },
        unit: "ns".to_owned(),
        per_sample: 500_000.0,
        windows: vec![folded.clone(), folded],
        outside: String::new(),
    }
}

/// Analyses five measured blocks of two variants with these profiles.
fn analysed(profiles: Vec<StoredProfile>) -> Profiles {
    let contents = Contents { profiles, ..contents(&|_| DeviceTime::default()) };
    Analysis::of(&contents).profiles.expect("profiles")
}

/// Five measured blocks of two variants, whose runs have this CPU time account.
fn contents(device: &dyn Fn(&fwdlab_model::PlannedRun) -> DeviceTime) -> Contents {
    let text = "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n\
                [design]\nblocks = 5\n[compare]\nbaseline = { queues = 1 }\n";
    let plan = fwdlab_model::load("x.toml", text, &|_| Ok(Vec::new()))
        .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let run = |planned: &fwdlab_model::PlannedRun| RunRecord {
        run: planned.index,
        block: planned.block,
        variants: planned.variants.clone(),
        trial: TrialRecord {
            window_ns: 1_000_000_000,
            window: Counts { offered: 3 * RATE, forwarded: RATE + 1000 * u64::from(planned.block) },
            device: device(planned),
            ..TrialRecord::default()
        },
        ..RunRecord::default()
    };
    Contents {
        runs: plan.runs.iter().map(run).collect(),
        run_invocations: vec![1; plan.runs.len()],
        plan,
        experiment: String::new(),
        invocations: Vec::new(),
        calibrations: Vec::new(),
        import: None,
        profiles: Vec::new(),
    }
}

/// The samples of a measured run, in which the firewall takes `firewall` of `60 + firewall`.
fn samples_of(run: &RunRecord, firewall: u64) -> StoredProfile {
    let mut profile = profile(run.variants[0], 0, 2 * run.trial.window.forwarded, firewall);
    profile.windows.truncate(1);
    profile.record.windows.truncate(1);
    profile.record.windows[0].forwarded = run.trial.window.forwarded;
    profile.record.run = Some(run.run);
    profile
}

/// The cost of a sample follows from the kernel's account, not from the sampling period.
#[test]
fn profile_differences_by_block_sum_to_cpu_time_account() {
    let account = |planned: &fwdlab_model::PlannedRun| {
        let packets = RATE + 1000 * u64::from(planned.block);
        // 600 and 800 ns per packet, 50 more in each later block; in two blocks the difference is
        // 210.
        let apart_ns = 200 + 10 * u64::from(planned.block % 2);
        let cost_ns = 600 + apart_ns * planned.variants[0] as u64 + 50 * u64::from(planned.block);
        DeviceTime {
            ran_ns: Some(cost_ns * packets),
            receiver: ReceiverPlace::Sender,
            ..DeviceTime::default()
        }
    };
    let mut contents = contents(&account);
    let samples = contents.runs.iter().map(|run| samples_of(run, 20 * run.variants[0] as u64));
    contents.profiles = samples.collect();
    let analysis = Analysis::of(&contents);
    let found = analysis.profiles.expect("profiles");
    assert_eq!(
        found.variants.iter().map(|v| (v.kind, v.starts)).collect::<Vec<_>>(),
        [(ProfileKind::Runs, 5), (ProfileKind::Runs, 5)]
    );
    let [difference] = found.differences.as_slice() else { panic!("{:?}", found.notes) };
    assert_eq!((difference.kind, difference.unit.as_str()), (ProfileKind::Runs, "ns"));
    assert!(difference.scope.contains("over blocks"), "{}", difference.scope);
    let whole = &difference.functions.whole;
    assert!((whole.difference - 204.0).abs() < 1e-9, "{whole:?}");
    let alone = &analysis.device.expect("an account").effects[0];
    assert!((alone.difference_ns - whole.difference).abs() < 1e-9, "{alone:?}");
    let (low, high) = whole.interval.expect("an interval");
    assert!((alone.interval_ns.0 - low).abs() < 1e-9 && (alone.interval_ns.1 - high).abs() < 1e-9);
    let parts: Vec<(&str, f64)> =
        difference.functions.parts.iter().map(|p| (p.name.as_str(), p.difference)).collect();
    // A quarter of the mean of 904 ns, and three quarters of it minus 700.
    assert_eq!(parts.len(), 2, "{parts:?}");
    assert!(parts[0].0 == "nft_do_chain" && (parts[0].1 - 226.0).abs() < 1e-9, "{parts:?}");
    assert!(parts[1].0 == "ip_rcv" && (parts[1].1 + 22.0).abs() < 1e-9, "{parts:?}");

    // Samples of a run without an account are not used.
    contents.runs[3].trial.device = DeviceTime::default();
    let found = Analysis::of(&contents).profiles.expect("profiles");
    assert_eq!(found.variants.iter().map(|variant| variant.starts).sum::<usize>(), 9);
}

/// Without an account, a sample costs the time between two samples.
#[test]
fn samples_without_account_cost_the_sampling_interval() {
    let mut contents = contents(&|_| DeviceTime::default());
    let samples = contents.runs.iter().map(|run| samples_of(run, 20 * run.variants[0] as u64));
    contents.profiles = samples.collect();
    let found = Analysis::of(&contents).profiles.expect("profiles");
    let [difference] = found.differences.as_slice() else { panic!("{:?}", found.notes) };
    let firewall = &difference.functions.parts[0];
    // 20 samples of 500 us over 1.002 million packets.
    assert!((firewall.difference - 10.0 / 1.002).abs() < 0.01, "{firewall:?}");
    assert!(difference.scope.contains("time that its event stands for"), "{}", difference.scope);
}

#[test]
fn profiles_of_different_loads_claim_no_difference() {
    // A tenth of the measured runs' load; `offered` and `rate` are for both halves together.
    let stated = |variant, forwarded: u64, offered: u64| {
        let mut profile = profile(variant, 0, forwarded, 20);
        profile.record.rate = Some(Rate::Pps(100_000.0));
        profile.record.windows.iter_mut().for_each(|window| window.offered = offered / 2);
        profile
    };
    let alike = analysed(vec![stated(0, 100_000, 100_000), stated(1, 99_000, 100_000)]);
    assert_eq!(alike.differences.len(), 1, "{:?}", alike.notes);
    let load = alike.variants[1].load.as_ref().expect("a load");
    assert_eq!((load.offered_pps, load.forwarded_pps), (100_000.0, 99_000.0));
    assert_eq!(load.stated.as_deref(), Some("100kpps"));
    // Neither marked nor compared with runs at full load.
    assert!(alike.variants.iter().all(|v| !v.is_marked && v.agreements.is_empty()));
    for (forwarded, offered) in [(80_000, 100_000), (90_000, 90_000)] {
        let found = analysed(vec![stated(0, 100_000, 100_000), stated(1, forwarded, offered)]);
        assert!(found.differences.is_empty());
        assert!(found.notes.iter().any(|note| note.contains("different loads")), "{found:?}");
    }
    let found = analysed(vec![profile(0, 0, RATE + 2000, 0), stated(1, RATE + 2000, 3 * RATE)]);
    assert!(found.differences.is_empty(), "one at full load, one at a stated one");
}

#[test]
fn samples_outside_the_traffic_add_a_remark() {
    let mut outside = profile(0, 0, RATE + 2000, 0);
    outside.outside = "napi/d0;veth_poll 60\n".to_owned();
    let found = analysed(vec![outside]);
    let remarks = &found.variants[0].remarks;
    assert!(remarks.iter().any(|r| r.contains("only 67 % of the samples")), "{remarks:?}");
    assert!(analysed(vec![profile(0, 0, RATE + 2000, 0)]).variants[0].remarks.is_empty());
}

#[test]
fn a_marked_profile_claims_no_difference() {
    let agreeing = analysed(vec![profile(0, 0, RATE + 2000, 0), profile(1, 0, RATE + 1000, 20)]);
    let [difference] = agreeing.differences.as_slice() else { panic!("{:?}", agreeing.notes) };
    assert_eq!(difference.functions.parts[0].name, "nft_do_chain");
    assert!(difference.scope.contains("this start"), "{}", difference.scope);
    assert!(agreeing.variants.iter().all(|variant| !variant.is_marked));
    assert_eq!(agreeing.variants[0].agreements[0].slower, 2);

    for (baseline, candidate, words) in [
        (RATE + 2000, RATE * 9 / 10, "ran at 900 kpps, slower than any of the 5"),
        (RATE * 11 / 10, RATE + 1000, "ran at 1.10 Mpps, faster than any of the 5"),
    ] {
        let found = analysed(vec![profile(0, 0, baseline, 0), profile(1, 0, candidate, 20)]);
        assert!(found.differences.is_empty());
        let is_reported = found.notes.iter().any(|note| note.contains(words));
        assert!(is_reported, "{words}: {:?}", found.notes);
        assert_eq!(found.variants.iter().filter(|variant| variant.is_marked).count(), 1);
    }
}

#[test]
fn several_starts_are_replicates_and_are_summed() {
    let starts = |variant, firewall: [u64; 3]| -> Vec<StoredProfile> {
        let each = firewall.into_iter().enumerate();
        each.map(|(n, firewall)| profile(variant, n as u16, RATE + 2000, firewall)).collect()
    };
    let all = [starts(0, [0, 0, 0]), starts(1, [18, 20, 25])].concat();
    let found = analysed(all);
    assert_eq!(found.variants.iter().map(|variant| variant.starts).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(found.variants[1].samples, 2 * (3 * 60 + 18 + 20 + 25));
    assert_eq!(found.variants[1].forwarded, Some(3 * (RATE + 2000)));
    let [difference] = found.differences.as_slice() else { panic!("{:?}", found.notes) };
    assert!(
        difference.scope.contains("over starts of the device (3 and 3"),
        "{}",
        difference.scope
    );
    let firewall = &difference.functions.parts[0];
    assert_eq!(firewall.name, "nft_do_chain");
    // The mean of 36, 40 and 50 samples of 500 us over 1.002e6 packets each, and Welch's interval
    // against three zeros.
    let (low, high) = firewall.interval.expect("an interval over starts");
    let cost = |samples: f64| samples * 500_000.0 / (RATE as f64 + 2000.0);
    assert!((firewall.difference - cost(42.0)).abs() < 1e-9, "{firewall:?}");
    // s = 7.2111, divided by the root of 3: 4.1633; t with 2 degrees of freedom 4.30265.
    let half = 4.302_652_729_911_275 * 4.163_331_998_932_266;
    assert!((low - cost(42.0 - half)).abs() < 1e-6, "{low} {high}");
    assert!((high - cost(42.0 + half)).abs() < 1e-6, "{low} {high}");

    // A single start of one variant has no scatter over starts, so windows are compared.
    let one = [starts(0, [0, 0, 0]), vec![profile(1, 0, RATE + 2000, 20)]].concat();
    let found = analysed(one);
    assert!(found.differences[0].scope.contains("this start"), "{}", found.differences[0].scope);
}
