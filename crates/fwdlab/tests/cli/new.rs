//! `fwdlab new`: every file that it writes can be planned, and runs where a test can run it.

use crate::support::{Lab, is_root, machine, values_per_variant};

/// Names of the questions, as `fwdlab new` lists them.
fn questions(lab: &Lab) -> Vec<String> {
    let listed = lab.fwdlab(&["new"]).expect(0).stdout;
    let names = listed.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn new_writes_valid_files_for_every_question() {
    let lab = Lab::new("");
    lab.write("old.deb", "");
    lab.write("new.deb", "");
    let questions = questions(&lab);
    for expected in ["rules", "nat", "vlan", "forwarder", "kernel", "kernels", "throughput"] {
        assert!(questions.iter().any(|question| question == expected), "{expected}: {questions:?}");
    }
    for question in &questions {
        // In a subdirectory: paths must be relative to the file.
        let file = format!("some/where/{question}.toml");
        let kernels: &[&str] = match question.as_str() {
            "kernel" => &["--kernel", "new.deb"],
            "kernels" => &["--kernel", "old.deb", "--kernel", "new.deb"],
            _ => &[],
        };
        lab.fwdlab(&[&["new", question, &file], kernels].concat()).expect(0);
        let plan = lab.fwdlab(&["plan", &file, "--json"]).expect(0).json();
        assert!(plan["variants"].as_array().is_some_and(|all| all.len() > 1), "{question}");
        assert_eq!(plan["missing"].as_array().map(Vec::len), Some(0), "{question}");
        if kernels.is_empty() {
            let out = format!("results/{question}");
            let rehearsed = [
                &["run", &file, "--testbed", "sim", "--blocks", "2", "--quiet", "--no-report"][..],
                &["--no-profile", "--out", &out],
            ];
            lab.fwdlab(&rehearsed.concat()).carried_out();
        }
    }
}

#[test]
fn new_finds_fetched_kernels() {
    let lab = Lab::new("");
    let missing = lab.fwdlab(&["new", "kernels"]).expect(3).stderr;
    assert!(
        missing.contains("fwdlab kernels --fetch kernels --series host --take ends"),
        "{missing}"
    );
    std::fs::create_dir(lab.path("kernels")).expect("a directory");
    for release in ["6.1.0-9", "6.1.0-47", "6.1.0-50"] {
        lab.write(&format!("kernels/linux-image-{release}-cloud-amd64_1_amd64.deb"), "");
    }
    lab.fwdlab(&["new", "kernels", "below/x.toml"]).expect(0);
    let written = std::fs::read_to_string(lab.path("below/x.toml")).expect("a file");
    let level = |release: &str| {
        format!(
            "label = \"{release}-cloud-amd64\", kernel = \
             \"../kernels/linux-image-{release}-cloud-amd64_1_amd64.deb\""
        )
    };
    assert!(
        written.contains(&level("6.1.0-9")) && written.contains(&level("6.1.0-50")),
        "{written}"
    );
    assert!(!written.contains("6.1.0-47"), "{written}");
}

#[test]
fn missing_files_are_named_by_plan_and_refused_by_run() {
    let lab = Lab::new(
        "version = 1\n[testbed]\nkind = \"vm\"\n[[factor]]\nname = \"revision\"\nlevels = [\n\
         { label = \"old\", kernel = \"none/old.deb\" },\n\
         { label = \"new\", kernel = \"none/new.deb\" },\n]\n",
    );
    let plan = lab.fwdlab(&["plan", "x.toml"]).expect(0).stdout;
    assert!(plan.contains("none/old.deb") && plan.contains("none/new.deb"), "{plan}");
    assert!(plan.contains("files that do not exist"), "{plan}");
    let run = lab.fwdlab(&["run", "x.toml"]).expect(3).stderr;
    assert!(run.contains("none/old.deb, none/new.deb"), "{run}");
    assert!(!lab.path("results/x").exists());
}

/// Writes the file of a question with short trials.
fn write_short(lab: &Lab, question: &str, file: &str, blocks: &str) {
    let short = ["--set", "trial.warmup=100ms", "--set", "trial.duration=300ms", "--set", blocks];
    lab.fwdlab(&[&["new", question, file], &short[..]].concat()).expect(0);
}

#[test]
fn namespace_files_run_unchanged() {
    if !is_root("files that `fwdlab new` writes are run in namespaces as root") {
        return;
    }
    let _alone = machine();
    for question in ["rules", "nat", "dnat", "forwarder"] {
        let lab = Lab::new("");
        let file = format!("{question}.toml");
        write_short(&lab, question, &file, "design.blocks=1");
        let run = ["run", &file, "--no-calibration", "--no-report", "--json"];
        let result = lab.fwdlab(&run).carried_out().json();
        let values = values_per_variant(&result);
        assert!(values.len() > 1 && values.iter().all(|&n| n == 1), "{question}: {values:?}");
        for variant in result["variants"].as_array().expect("variants") {
            let rate = variant["values"][0].as_f64().expect("a rate");
            let is_starved = variant["warnings"].to_string().contains("cpu-contended");
            assert!(rate > 500.0 || is_starved, "{question}: {variant:#}");
        }
        assert!(!result.to_string().contains("damaged\""), "{question}: {result:#}");
    }
}

/// Not every kernel has VLANs: then plan and run report that instead.
#[test]
fn vlan_file_is_measured_or_refused_by_name() {
    if !is_root("the file that `fwdlab new vlan` writes is run in namespaces as root") {
        return;
    }
    let _alone = machine();
    let lab = Lab::new("");
    write_short(&lab, "vlan", "vlan.toml", "design.blocks=1");
    let plan = lab.fwdlab(&["plan", "vlan.toml", "--json"]).expect(0).json();
    let lacking = plan["lacking"].as_array().expect("a list");
    let run = lab.fwdlab(&["run", "vlan.toml", "--no-calibration", "--no-report", "--json"]);
    if !lacking.is_empty() {
        let refused = run.expect(3).stderr;
        let refused = refused.split_whitespace().collect::<Vec<_>>().join(" ");
        for lacking in lacking {
            let lacking = lacking.as_str().expect("text");
            let (what, next) = lacking.split_once("; next step: ").expect("a next step");
            assert!(what.contains("(CONFIG_"), "{lacking}");
            assert!(refused.contains(what) && refused.contains(next), "{lacking} in {refused}");
        }
        assert!(!lab.path("results/vlan").exists());
        return;
    }
    let result = run.carried_out().json();
    assert_eq!(values_per_variant(&result), [1, 1], "{result:#}");
    for variant in result["variants"].as_array().expect("variants") {
        assert!(variant["values"][0].as_f64().expect("a rate") > 500.0, "{variant:#}");
    }
    assert!(!result.to_string().contains("damaged\""), "{result:#}");
}

#[test]
fn report_names_unexpected_address_translation() {
    if !is_root("translation is seen in namespaces as root") {
        return;
    }
    let _alone = machine();
    let lab = Lab::new("");
    write_short(&lab, "nat", "nat.toml", "design.blocks=2");
    let text = std::fs::read_to_string(lab.path("nat.toml")).expect("written");
    lab.write("nat.toml", &text.replace(", nat = \"source\"", ""));
    let run = lab.fwdlab(&["run", "nat.toml", "--no-calibration"]).expect(4);
    let output = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains("every packet arrived with another source address"), "{output}");
    assert!(output.contains("nat = \"source\""), "{output}");
    assert!(output.contains("so there is nothing to compare"), "{output}");
    assert!(!output.contains("has no ratio"), "{output}");
}
