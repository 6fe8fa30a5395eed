//! Tests of the history, with counts of known steps.

use super::catalogue::{self, Feature};
use super::document::document;
use super::findings::Findings;
use super::history::{Change, PLAIN};
use super::parquet;
use super::store::{KernelFile, Outcome, Plain, PriceList};
use fwdlab_model::record::{Executed, ExecutedFunction};
use fwdlab_results::document::FORMS;

const CATALOGUE: &str = r#"
[[feature]]
name = "vlan"
group = "Links"
question = "What does a tag cost?"
set_up = "tag"
undo = "untag"
[[feature]]
name = "flowtable"
group = "Filters"
question = "What does the short path cost?"
set_up = "offload"
undo = "flush"
"#;

fn features() -> Vec<Feature> {
    catalogue::read(CATALOGUE, "test").unwrap()
}

/// Counts of functions, each with its instructions in the three bursts.
fn executed(functions: &[(&str, [f64; 3])]) -> Executed {
    let function = |(name, bursts): &(&str, [f64; 3])| ExecutedFunction {
        name: (*name).to_owned(),
        bursts: bursts.to_vec(),
        ..ExecutedFunction::default()
    };
    let functions = functions.iter().map(function).collect();
    Executed { packets: vec![100; 3], batch: 32, functions, ..Executed::default() }
}

/// A kernel: instructions of plain forwarding, of a VLAN's function, and of the path that the
/// flowtable replaces. `None` if the kernel lacks VLANs.
#[derive(Clone, Copy)]
struct Costs {
    plain: f64,
    vlan: Option<f64>,
    flow: f64,
    /// Instructions by which plain forwarding scatters between bursts.
    scatter: f64,
}

const COSTS: Costs = Costs { plain: 1000.0, vlan: Some(200.0), flow: 300.0, scatter: 0.0 };

fn list(number: usize, costs: Costs) -> PriceList {
    let file = KernelFile { name: format!("linux image 6.{number}.deb"), ..KernelFile::default() };
    let mut list = PriceList::new(file, "--family inet --frame-size 64".to_owned());
    list.release = format!("6.{number}");
    let Costs { plain, vlan, flow, scatter } = costs;
    let scattered = |value: f64| [value, value + scatter, value - scatter];
    let first = executed(&[("ip_forward", scattered(plain)), ("fib_lookup", [500.0; 3])]);
    list.boots.push(Plain::new(&first, (300, 0)));
    let mut add = |feature: &Feature, functions: &[(&str, [f64; 3])]| {
        let (plain, executed) = (Box::new(first.clone()), Box::new(executed(functions)));
        list.add(feature, Outcome::Counted { plain, executed, sent: 300, lost: 0 });
    };
    let [tag, flowtable] = [0, 1].map(|at| features()[at].clone());
    // The short path executes neither function of plain forwarding.
    add(&flowtable, &[("nf_flow", [flow; 3])]);
    match vlan {
        Some(vlan) => add(
            &tag,
            &[
                ("ip_forward", scattered(plain)),
                ("fib_lookup", [500.0; 3]),
                ("vlan_xmit", [vlan; 3]),
                ("vlan_mac", [20.0; 3]),
            ],
        ),
        None => list.add(&tag, Outcome::Absent { why: "Unknown device type".to_owned() }),
    }
    list
}

fn lists(kernels: &[Costs]) -> Vec<PriceList> {
    kernels.iter().enumerate().map(|(number, costs)| list(number, *costs)).collect()
}

fn findings(kernels: &[Costs]) -> Findings {
    Findings::new(&lists(kernels), &features(), &[], 0.02)
}

/// Each step as `FEATURE FROM TO KIND DIFFERENCE`.
fn steps(found: &Findings) -> Vec<String> {
    let history = found.history.as_ref().expect("three kernels");
    let text = |step: &super::history::Step| {
        let size = step.difference().map_or("-".to_owned(), |d| format!("{:+.0}", d.difference));
        format!("{} {} {} {} {size}", step.feature, step.from, step.to, step.change.name())
    };
    history.steps.iter().map(text).collect()
}

fn ranges(found: &Findings) -> Vec<(&str, &str, usize)> {
    let history = found.history.as_ref().expect("three kernels");
    history.ranges.iter().map(|r| (r.from.as_str(), r.to.as_str(), r.kernels)).collect()
}

fn rendered(found: &Findings, form: &str) -> String {
    let form = FORMS.into_iter().find(|known| known.name == form).expect("a form");
    (form.render)(&document(found), 200).expect("a document")
}

#[test]
fn change_of_plain_forwarding_is_no_step_of_features() {
    let more = Costs { plain: 1100.0, ..COSTS };
    let found = findings(&[COSTS, more, more]);
    // The flowtable saves 100 instructions more, since it skips the path that grew.
    assert_eq!(
        steps(&found),
        ["plain forwarding 6.0 6.1 step +100", "flowtable 6.0 6.1 step -100"]
    );
    let history = found.history.as_ref().unwrap();
    let plain = history.of(PLAIN).next().unwrap().difference().unwrap();
    assert_eq!((plain.before, plain.after, plain.of_price), (1500.0, 1600.0, None));
    assert!((plain.change - 100.0 / 1500.0).abs() < 1e-9);
    assert_eq!(plain.functions[0].name, "ip_forward");
    assert_eq!(ranges(&found), [("6.1", "6.2", 2)]);
}

#[test]
fn step_of_a_feature_is_the_difference_of_its_price() {
    let dearer = Costs { plain: 1100.0, vlan: Some(260.0), flow: 300.0, scatter: 0.0 };
    let found = findings(&[COSTS, COSTS, dearer]);
    let history = found.history.as_ref().unwrap();
    let step = history.of("vlan").next().unwrap();
    let difference = step.difference().unwrap();
    assert_eq!((difference.before, difference.after, difference.difference), (220.0, 280.0, 60.0));
    assert!((difference.change - 60.0 / 1720.0).abs() < 1e-9, "{difference:?}");
    assert!(difference.of_price.is_some_and(|of| (of - 60.0 / 220.0).abs() < 1e-9));
    let functions: Vec<_> =
        difference.functions.iter().map(|f| (f.name.as_str(), f.difference)).collect();
    assert_eq!(functions, [("vlan_xmit", 60.0)]);
    assert_eq!(ranges(&found), [("6.0", "6.1", 2)]);
    // 60 of 1720 instructions are less than 5 %.
    let lists = lists(&[COSTS, COSTS, dearer]);
    let found = Findings::new(&lists, &features(), &[], 0.05);
    assert!(found.history.unwrap().of("vlan").next().is_none());
}

#[test]
fn scatter_of_plain_forwarding_hides_a_step() {
    let loud = Costs { scatter: 40.0, vlan: Some(260.0), ..COSTS };
    let found = findings(&[COSTS, loud, loud]);
    assert!(steps(&found).iter().all(|step| !step.starts_with("plain")), "{:?}", steps(&found));
    // Both counts of the feature scatter in the same way here: their difference does not.
    assert!(steps(&found).contains(&"vlan 6.0 6.1 step +60".to_owned()), "{:?}", steps(&found));
    let mut lists = lists(&[COSTS, loud, loud]);
    let Outcome::Counted { executed, mut plain, .. } =
        lists[1].row(&features()[0]).unwrap().outcome.clone()
    else {
        panic!("it was counted")
    };
    plain.functions[0].bursts.reverse();
    lists[1].add(&features()[0], Outcome::Counted { plain, executed, sent: 300, lost: 0 });
    let found = Findings::new(&lists, &features(), &[], 0.02);
    assert!(!steps(&found).contains(&"vlan 6.0 6.1 step +60".to_owned()), "{:?}", steps(&found));
    assert!(found.history.unwrap().inconclusive_steps > 0);
}

#[test]
fn drift_is_reported_from_the_last_step() {
    let drifting = [1000.0, 1020.0, 1040.0, 1060.0, 1300.0, 1310.0];
    let kernels = drifting.map(|plain| Costs { plain, ..COSTS });
    let found = findings(&kernels);
    let plain: Vec<String> =
        steps(&found).into_iter().filter(|step| step.starts_with("plain")).collect();
    assert_eq!(plain, ["plain forwarding 6.0 6.2 drift +40", "plain forwarding 6.3 6.4 step +240"]);
    let history = found.history.as_ref().unwrap();
    assert!(matches!(history.of(PLAIN).next().unwrap().change, Change::Drift(_)));
}

#[test]
fn absent_feature_is_a_dash_with_its_reason() {
    let without = Costs { vlan: None, ..COSTS };
    let dearer = Costs { vlan: Some(300.0), ..COSTS };
    let found = findings(&[COSTS, without, without, dearer, dearer]);
    let expected = ["vlan 6.0 6.1 lost -", "vlan 6.0 6.3 step +100", "vlan 6.2 6.3 gained -"];
    assert_eq!(steps(&found), expected);
    assert_eq!(ranges(&found), [("6.1", "6.2", 2), ("6.3", "6.4", 2)]);
    let csv = rendered(&found, "csv");
    let line = "vlan,6.0,6.1,lost,,,,,,,Unknown device type,";
    assert!(csv.lines().any(|found| found == line), "{csv}");
    assert!(csv.contains("vlan,6.0,6.3,step,220,320,100,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&rendered(&found, "json")).unwrap();
    assert_eq!(json["steps"][0]["kind"], "lost");
    assert_eq!(json["steps"][0]["why"], "Unknown device type");
    assert!(json["steps"][0].get("difference").is_none());
    assert_eq!(json["steps"][1]["functions"][0]["name"], "vlan_xmit");
    assert_eq!(json["ranges"][1]["kernels"], 2);
    // A kernel without counts ends a range; a feature that was not counted yet is no loss.
    let mut lists = lists(&[COSTS; 5]);
    lists[2].boots.clear();
    lists[3].features.clear();
    let found = Findings::new(&lists, &features(), &[], 0.02);
    assert_eq!(steps(&found), Vec::<String>::new());
    assert_eq!(ranges(&found), [("6.0", "6.1", 2), ("6.3", "6.4", 2)]);
}

#[test]
fn page_draws_only_features_with_a_step() {
    let dearer = Costs { vlan: Some(300.0), ..COSTS };
    let found = findings(&[COSTS, COSTS, dearer]);
    let html = rendered(&found, "html");
    assert!(html.contains("Price of vlan by kernel") && !html.contains("Price of flowtable"));
    assert!(html.contains("Plain forwarding, instructions per packet</title>"), "{html}");
    let command =
        "fwdlab prices &#39;linux image 6.2.deb&#39; --only vlan --family inet --frame-size 64";
    assert!(html.contains(command), "{html}");
    assert!(html.contains("vlan_xmit +100.0"), "{html}");
    let text = rendered(&found, "mail").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the largest is +100.0 of vlan from 6.1 to 6.2."), "{text}");
    let flat = rendered(&findings(&[COSTS; 3]), "text");
    assert!(flat.contains("No price has a step of more than 2.0 %"), "{flat}");
    assert!(findings(&[COSTS, dearer]).history.is_none(), "two kernels are compared");
}

#[test]
fn three_kernels_have_short_names_and_one_table_of_changes() {
    let dearer = Costs { vlan: Some(300.0), ..COSTS };
    let mut lists = lists(&[COSTS, dearer, dearer]);
    for (at, list) in lists.iter_mut().enumerate() {
        list.release = format!("6.1.0-4{at}-cloud-amd64");
        list.build = format!("#1 SMP PREEMPT_DYNAMIC Debian 6.1.19{at}-1 (2026-09-30)");
    }
    let mut found = Findings::new(&lists, &features(), &[], 0.02);
    let names: Vec<&str> = found.kernels.iter().map(|kernel| kernel.label.as_str()).collect();
    assert_eq!(names, ["6.1.190", "6.1.191", "6.1.192"]);
    let csv = rendered(&found, "csv");
    let changes = csv.split("\n\n").find(|table| table.starts_with("kernel_and_feature"));
    assert_eq!(changes.map(|table| table.lines().count()), Some(2), "{csv}");
    assert!(changes.is_some_and(|table| table.contains("6.1.192 vlan")), "{csv}");
    assert!(rendered(&found, "text").contains("6.1.0-40-cloud-amd64"), "release of a version");
    // A kernel of a FreeBSD disk boots with the disk only.
    found.repeat.kernels = Some("disk.qcow2 --kernel 'my kernel'".to_owned());
    found.repeat.options = " --catalogue mine.toml".to_owned();
    let markdown = rendered(&found, "markdown");
    let command = "fwdlab prices disk.qcow2 --kernel 'my kernel' --only vlan --catalogue mine.toml \
                   --family inet --frame-size 64";
    assert!(markdown.contains(command), "{markdown}");
    let pair = Findings::new(&lists[..2], &features(), &[], 0.02);
    assert_eq!(pair.kernels[0].label, "6.1.0-40-cloud-amd64");
}

#[test]
fn parquet_files_contain_each_count_function_and_step() {
    let without = Costs { vlan: None, ..COSTS };
    let found = findings(&[COSTS, without, Costs { vlan: Some(300.0), ..COSTS }]);
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("new");
    parquet::write(&directory, &found).unwrap();
    let read = |name: &str| parquet::read(&directory, name).unwrap();
    // Plain forwarding and two features of three kernels.
    let prices = read("prices");
    assert_eq!(prices.rows(), 9);
    let text = format!("{prices:?}");
    assert!(text.contains("1720.0") && text.contains("[220.0, "), "{text}");
    // Two functions of the tag in two kernels, three of the short path in three.
    assert_eq!(read("functions").rows(), 13);
    assert_eq!(read("steps").rows(), found.history.unwrap().steps.len());
}
