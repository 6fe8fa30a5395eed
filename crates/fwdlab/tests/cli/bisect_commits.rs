//! `fwdlab bisect` over commits that are built, and over files: repositories with a simulated speed
//! for each commit.

use crate::support::{Ended, Lab, plan, store};
use fwdlab_results::store::Store;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn git(lab: &Lab, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(lab.path("repo"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .expect("git starts");
    Ended::from(output).expect(0).stdout.trim().to_owned()
}

/// The level that represents all commits; commits from index `planted` on are slower.
fn experiment(commits: &[String], planted: usize, more: &str) -> String {
    let slow: Vec<String> =
        commits[planted..].iter().map(|c| format!("\"commit={}\" = 0.96", &c[..12])).collect();
    format!(
        "version = 1\ntitle = \"A router's history\"\n[testbed]\nkind = \"sim\"\n[testbed.sim]\n\
         noise = 0.005\njitter = 0.0\n{more}effect = {{ {} }}\n[[factor]]\nname = \"commit\"\n\
         levels = [{{ label = \"{{name}}\", setup = [\"{{build}}/router\"] }}]\n[design]\nblocks = 12\n",
        slow.join(", ")
    )
}

/// A repository with a commit for each index up to `count`, of which `broken` does not build.
fn repository(count: usize, broken: usize) -> (Lab, Vec<String>) {
    let lab = Lab::new("");
    let lab = {
        let cache = lab.path("cache").display().to_string();
        lab.with("XDG_CACHE_HOME", &cache)
    };
    fs::create_dir(lab.path("repo")).expect("a directory");
    git(&lab, &["init", "-q", "-b", "main"]);
    let commits = (0..count).map(|number| {
        lab.write("repo/number", &number.to_string());
        lab.write("repo/builds", if number == broken { "no" } else { "yes" });
        git(&lab, &["add", "."]);
        git(&lab, &["commit", "-q", "-m", &format!("Change {number}")]);
        git(&lab, &["rev-parse", "HEAD"])
    });
    let commits = commits.collect();
    (lab, commits)
}

const BUILD: &str = "sh -c 'grep yes builds && cp number router'";

fn bisect(lab: &Lab, commits: &[String], build: &str, more: &[&str]) -> Ended {
    lab.fwdlab(&[&arguments(commits, build)[..], more].concat())
}

fn arguments<'a>(commits: &'a [String], build: &'a str) -> [&'a str; 8] {
    ["bisect", "x.toml", "--repo", "repo", "--good", &commits[0], "--build", build]
}

/// Build directories of commits in the cache.
fn places(lab: &Lab) -> Vec<PathBuf> {
    let list = |path: PathBuf| {
        let entries = fs::read_dir(path).expect("a directory");
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let all = list(lab.path("cache/fwdlab/builds"));
    assert_eq!(all.len(), 1, "one repository, one command");
    let is_commit = |path: &PathBuf| path.file_name().is_some_and(|name| name.len() == 40);
    list(all[0].clone()).into_iter().filter(is_commit).collect()
}

#[test]
fn bisect_convicts_the_commit_and_leaves_the_checkout_untouched() {
    let (lab, commits) = repository(16, 7);
    lab.write("x.toml", &experiment(&commits, 11, ""));
    lab.write("repo/number", "what somebody is about to change");
    let found = bisect(&lab, &commits, BUILD, &["--json"]).expect(0);
    let json = found.json();
    assert_eq!(json["outcome"], "convicted", "{json}");
    assert_eq!(json["set"][0].as_str(), Some(&commits[11][..12]));
    let about = json["candidates"][11]["about"].as_str().expect("a text");
    assert!(about.starts_with("Change 11 (T, "), "{about}");
    // The commit that does not build is in the middle of the search, and reports why.
    let skipped = json["candidates"][7]["skipped"].as_str().expect("it was asked for");
    assert!(skipped.contains("does not build (exit status: 1)"), "{skipped}");
    assert!(found.stderr.contains("building "), "{}", found.stderr);

    let built = places(&lab).iter().filter(|path| path.join("built").exists()).count();
    let measured = json["candidates"].as_array().expect("a list");
    let measured = measured.iter().filter(|one| one["runs"].as_u64() > Some(0)).count();
    assert_eq!(built, measured, "what is not asked for is not built");
    assert_eq!(git(&lab, &["status", "--porcelain"]), "M number");
    assert_eq!(git(&lab, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&lab, &["branch", "--show-current"]), "main");

    // Nothing is built or measured again, even after HEAD has moved.
    git(&lab, &["commit", "-qam", "Change 16"]);
    let again = bisect(&lab, &commits, BUILD, &["--bad", &commits[15], "--quiet"]).expect(0);
    assert!(again.stdout.contains("Change 11 (T, "), "{}", again.stdout);
    assert!(again.stdout.contains(&format!("convicted: {}", &commits[11][..12])));
    assert_eq!(places(&lab).len(), built + 1);
}

#[test]
fn bisect_reports_a_range_around_commits_that_do_not_build() {
    let (lab, commits) = repository(8, 4);
    lab.write("x.toml", &experiment(&commits, 4, ""));
    let json = bisect(&lab, &commits, BUILD, &["--json", "--quiet"]).expect(0).json();
    let set: Vec<&str> =
        json["set"].as_array().expect("a list").iter().filter_map(|c| c.as_str()).collect();
    assert_eq!(set, [&commits[4][..12], &commits[5][..12]], "{json}");
    assert_eq!(json["confirmed"][0]["before"].as_str(), Some(&commits[3][..12]));
    assert_eq!(json["confirmed"][0]["convicted"], true);
}

#[test]
fn bisect_killed_during_build_or_run_continues() {
    let (lab, commits) = repository(8, 99);
    let text = experiment(&commits, 3, "realtime = true\n").replace("blocks = 12", "blocks = 6");
    let trial = "[trial]\nwarmup = \"10ms\"\nduration = \"60ms\"\ndrain = \"20ms\"\n\
                 interval = \"20ms\"\nslice = \"5ms\"\n";
    lab.write("x.toml", &(text + trial));
    // A build in two halves, so that a kill eventually hits between them.
    let build = "sh -c 'touch first; sleep 0.4; mv first second'";
    let arguments = arguments(&commits, build);
    let path = lab.path("results/x-bisect/run.sqlite");
    let stored = || match path.exists() {
        true => Store::open_read_only(&path).and_then(|store| store.runs()).map_or(0, |r| r.len()),
        false => 0,
    };
    for after in [300, 1500, 2400] {
        let mut command = lab.command(&arguments);
        let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(after));
        kill_process(Pid::from_child(&child), Signal::KILL).expect("a living child");
        child.wait().expect("its end");
    }
    let before = stored() as u64;
    let json = bisect(&lab, &commits, build, &["--json"]).expect(0).json();
    assert_eq!(json["outcome"], "convicted", "{json}");
    assert_eq!(json["set"][0].as_str(), Some(&commits[3][..12]));
    let runs = json["runs"].as_u64().expect("a number");
    assert_eq!(json["measured_now"].as_u64(), Some(runs - before), "finished runs are kept");
    for place in places(&lab) {
        assert!(place.join("built").exists() && place.join("tree/second").exists(), "{place:?}");
        assert!(!place.join("tree/first").exists(), "{place:?} is of two builds");
    }
}

#[test]
fn bisect_interrupted_during_a_build_ends_it_and_prints_the_next_command() {
    let (lab, commits) = repository(4, 99);
    lab.write("x.toml", &experiment(&commits, 2, ""));
    let build = "sh -c 'sleep 60; touch never'";
    let mut command = lab.command(&arguments(&commits, build));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(700));
    let interrupted = Instant::now();
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a living child");
    let ended = Ended::from(child.wait_with_output().expect("its end")).expect(130);
    assert!(interrupted.elapsed() < Duration::from_secs(20), "the build is not waited for");
    // HEAD may move: the command names the commit.
    assert!(ended.stderr.contains(&format!("--bad {}", commits[3])), "{}", ended.stderr);
    for place in places(&lab) {
        assert!(!place.join("failed").exists(), "nothing was learnt of the commit");
    }
}

#[test]
fn bisect_orders_files_naturally() {
    let lab = Lab::new("");
    fs::create_dir(lab.path("kernels")).expect("a directory");
    let names: Vec<String> = (0..12).map(|k| format!("k{k}.deb")).collect();
    names.iter().for_each(|name| lab.write(&format!("kernels/{name}"), ""));
    let slow: Vec<String> = (9..12).map(|k| format!("\"kernel=k{k}.deb\" = 0.95")).collect();
    let text = format!(
        "version = 1\n[testbed]\nkind = \"sim\"\n[testbed.sim]\nnoise = 0.005\njitter = 0.0\n\
         effect = {{ {} }}\n[[factor]]\nname = \"kernel\"\n\
         levels = [{{ label = \"{{name}}\", setup = [\"use {{build}}\"] }}]\n[design]\nblocks = 8\n",
        slow.join(", ")
    );
    lab.write("x.toml", &text);
    let json = lab.fwdlab(&["bisect", "x.toml", "--candidates", "kernels", "--json", "--quiet"]);
    let json = json.expect(0).json();
    assert_eq!((&json["outcome"], &json["set"][0]), (&"convicted".into(), &"k9.deb".into()));
    let labels = json["candidates"].as_array().expect("a list").iter();
    assert!(labels.zip(&names).all(|(one, name)| one["label"] == name.as_str()), "{json}");
    // Listed individually, in another order.
    let few = ["bisect", "x.toml", "--quiet", "--candidates", "kernels/k2.deb", "kernels/k0.deb"];
    let refused = lab.fwdlab(&few).expect(2).stderr;
    assert!(refused.contains("there are 2 candidates"), "{refused}");
}

#[test]
fn invalid_candidates_are_refused_by_name() {
    let (lab, commits) = repository(4, 99);
    lab.write("x.toml", &experiment(&commits, 2, ""));
    let refused = |arguments: &[&str], expected: &str| {
        let output = lab.fwdlab(&[&["bisect", "x.toml"], arguments].concat()).expect(2).stderr;
        assert!(output.contains(expected), "{expected}:\n{output}");
    };
    let good = &commits[3];
    refused(
        &["--repo", "repo", "--good", good, "--bad", &commits[0], "--build", "true"],
        "does not come before",
    );
    refused(&["--repo", "repo", "--good", "v9", "--build", "true"], "--good v9: git failed");
    refused(&["--repo", "nowhere", "--good", good, "--build", "true"], "--repo nowhere: ");
    refused(&["--repo", "repo", "--good", good, "--build", "a && b"], "needs a shell");
    refused(&["--repo", "repo", "--good", good], "--build");
    refused(&[], "stands for many candidates");
    lab.write("x.toml", "version = 1\n[testbed]\nkind = \"sim\"\n");
    refused(
        &["--repo", "repo", "--good", &commits[0], "--build", "true"],
        "no level of the experiment stands for the candidates",
    );
}

#[test]
fn bisect_skips_levels_that_fail() {
    // A store with three runs of the middle candidate, which have no result.
    let levels: Vec<String> = (0..5).map(|k| format!("{{ label = \"r{k}\" }}")).collect();
    let text = format!(
        "version = 1\n[testbed]\nkind = \"sim\"\n[testbed.sim]\nnoise = 0.005\njitter = 0.0\n\
         effect = {{ \"revision=r3\" = 0.9, \"revision=r4\" = 0.9 }}\n[[factor]]\n\
         name = \"revision\"\nlevels = [{}]\n[design]\nblocks = 153\n",
        levels.join(", ")
    );
    let lab = Lab::new(&text);
    let plan = plan(&text);
    let mut store = store(&lab.path("results/x-bisect/run.sqlite"), &plan, "sim");
    for run in plan.runs.iter().filter(|run| run.variants[0] == 2 && run.block < 3) {
        let mut record = crate::support::simulated(&plan, run);
        record.trial.window.forwarded = 0;
        record.trial.total.forwarded = 0;
        store.insert_run(&record).expect("stored");
    }
    drop(store);
    let found = lab.fwdlab(&["bisect", "x.toml", "--json", "--no-confirm"]).expect(0);
    let json = found.json();
    assert!(json["candidates"][2]["skipped"].is_string(), "{json}\n{}", found.stderr);
    assert_eq!(json["set"], serde_json::json!(["r2", "r3"]), "{json}");
}
