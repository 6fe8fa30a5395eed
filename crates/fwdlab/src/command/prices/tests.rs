//! Tests of the evaluation, with counts of known prices.

use super::catalogue::{self, Feature};
use super::document::{FeatureList, document};
use super::findings::Findings;
use super::store::{KernelFile, Outcome, Plain, PriceList, Stored};
use fwdlab_model::record::{Executed, ExecutedFunction};
use fwdlab_results::document::{Document, FORMS};

const CATALOGUE: &str = r#"
[[feature]]
name = "rules"
group = "Filters"
question = "What do $N rules cost?"
values = [1, 10, 100]
set_up = "add $N"
undo = "flush"
[[feature]]
name = "vlan"
group = "Links"
question = "What does a tag cost?"
set_up = "tag"
undo = "untag"
"#;

fn features() -> Vec<Feature> {
    catalogue::read(CATALOGUE, "test").unwrap()
}

/// Counts of these functions, the same in each burst.
pub(super) fn executed(functions: &[(&str, f64)]) -> Executed {
    let function = |(name, instructions): &(&str, f64)| ExecutedFunction {
        name: (*name).to_owned(),
        bursts: vec![*instructions; 3],
        ..ExecutedFunction::default()
    };
    let functions = functions.iter().map(function).collect();
    Executed { packets: vec![100; 3], batch: 32, functions, ..Executed::default() }
}

/// A kernel in which plain forwarding costs `plain`, the chain of rules 50, and each rule 10. It
/// has no VLANs.
fn list(release: &str, plain: f64) -> PriceList {
    let mut list = PriceList::new(KernelFile::default(), "--family inet".to_owned());
    list.release = release.to_owned();
    let first = executed(&[("ip_forward", plain)]);
    let mut boot = Plain::new(&first, (8000, 0));
    assert!(boot.check(&features()[0], &executed(&[("ip_forward", plain + 1.0)])));
    assert!(boot.check(&features()[1], &first));
    list.boots.push(boot);
    for feature in features() {
        let outcome = match feature.size() {
            Some(size) => Outcome::Counted {
                executed: Box::new(executed(&[
                    ("ip_forward", plain),
                    ("nft_do_chain", 50.0 + 10.0 * f64::from(size)),
                ])),
                plain: Box::new(first.clone()),
                sent: 300,
                lost: u64::from(size == 100),
            },
            None => Outcome::Absent { why: "Unknown device type".to_owned() },
        };
        list.add(&feature, outcome);
    }
    list
}

fn rendered(document: &Document<'_>, form: &str) -> String {
    let form = FORMS.into_iter().find(|known| known.name == form).expect("a form");
    (form.render)(document, 100).expect("a document")
}

#[test]
fn prices_and_slopes_are_the_known_ones() {
    let found = Findings::new(&[list("6.1", 1000.0)], &features(), &[], 0.02);
    let prices: Vec<Option<f64>> = found.features.iter().map(|f| f.prices[0].price()).collect();
    assert_eq!(prices, [Some(60.0), Some(150.0), Some(1050.0), None]);
    let [slope] = found.slopes.as_slice() else { panic!("one feature has sizes") };
    assert_eq!((slope.from, slope.to, slope.per_unit[0]), (1, 100, Some(10.0)));
    let text = rendered(&document(&found), "text");
    for part in ["+1050.0", "+105.0 %", "nft_do_chain", "+10.00", "vlan: Unknown device type"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("rules 100, 6.1: 1 of 300 packets were lost"), "{text}");
    assert!(text.contains("Of 3 features rules 100 is the"), "{text}");
    assert!(text.contains("dearest: +1050.0 (+105.0 %)"), "{text}");
    let html = rendered(&document(&found), "html");
    assert!(html.contains("What do 10 rules cost?") && html.contains("add $N"), "{html}");
}

#[test]
fn comparisons_of_kernels_are_tests_in_ktap() {
    let lists = [list("6.1", 1000.0), list("6.2", 1100.0)];
    let found = Findings::new(&lists, &features(), &[], 0.02);
    let ktap = rendered(&document(&found), "ktap");
    assert!(ktap.contains(&format!("1..{}\n", found.comparisons.len())), "{ktap}");
    assert!(ktap.lines().any(|line| line.starts_with("not ok 1 6.2")), "{ktap}");
}

/// A function that is background in plain forwarding alone is part of the price, the scheduler's
/// noise is not.
#[test]
fn price_contains_functions_that_were_background() {
    let feature = &features()[3];
    let mut plain = executed(&[("ip_forward", 1000.0), ("ktime_get", 1.0), ("schedule", 3.0)]);
    plain.functions[1].is_background = true;
    plain.functions[2].is_background = true;
    let mut shaped = executed(&[("ip_forward", 1000.0), ("ktime_get", 40.0), ("schedule", 7.0)]);
    // The idle guest executes them as well.
    shaped.functions[1..].iter_mut().for_each(|function| function.idle = 20.0);
    let mut list = list("6.1", 1000.0);
    let (plain, executed) = (Box::new(plain), Box::new(shaped));
    list.add(feature, Outcome::Counted { plain, executed, sent: 300, lost: 0 });
    let Outcome::Counted { mut executed, mut plain, .. } =
        list.row(feature).unwrap().outcome.clone()
    else {
        panic!("it was counted")
    };
    let found = Findings::new(&[list.clone()], &features(), &[], 0.02);
    assert_eq!(found.features[3].prices[0].price(), Some(39.0));
    // One outlier of five bursts does not hide a difference of 20.
    plain.functions[0].bursts = vec![1000.0; 5];
    executed.functions[0].bursts = vec![1020.0, 1020.0, 1020.0, 1020.0, 990.0];
    list.add(feature, Outcome::Counted { plain, executed, sent: 300, lost: 0 });
    let found = Findings::new(&[list], &features(), &[], 0.02);
    assert_eq!(found.features[3].prices[0].price(), Some(59.0));
}

#[test]
fn kernels_are_compared_with_the_first() {
    let lists = [list("6.1", 1000.0), list("6.2", 1100.0)];
    let found = Findings::new(&lists, &features(), &[], 0.05);
    // Plain forwarding and three features that both kernels have.
    assert_eq!(found.comparisons.len(), 4);
    let text = rendered(&document(&found), "text");
    // 100 of 1000, 1060 and 1150 are more than the margin of 5 %, 100 of 2050 are less.
    assert!(text.contains("Of 4 comparisons with 6.1, 3 are dearer and 0 cheaper"), "{text}");
    let csv = rendered(&document(&found), "csv");
    assert!(csv.contains("rules 10"), "{csv}");
    // A feature that the second kernel lacks is no answer.
    let mut lists = lists;
    let why = "Unknown device type".to_owned();
    lists[1].add(&features()[2], Outcome::Absent { why });
    let found = Findings::new(&lists, &features(), &[], 0.05);
    let answers: Vec<bool> = found.comparisons.iter().map(|c| c.outcome.is_answered()).collect();
    assert_eq!(answers, [true, true, true, false]);
}

#[test]
fn traces_and_uncounted_features_are_reported() {
    let mut dirty = list("6.1", 1000.0);
    let boot = &mut dirty.boots[0];
    assert!(!boot.check(&features()[1], &executed(&[("ip_forward", 1200.0)])));
    dirty.features.remove("vlan");
    let found = Findings::new(&[dirty], &features(), &[], 0.02);
    assert_eq!(found.kernels[0].traces, ["rules 10"]);
    assert_eq!(found.kernels[0].range, Some((1000.0, 1001.0)));
    let text = rendered(&document(&found), "text");
    assert!(text.contains("not plain again after rules 10"), "{text}");
    assert!(text.contains("vlan: not counted"), "{text}");
}

#[test]
fn list_has_one_writer_which_sees_what_others_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("list.json");
    let open = || {
        let empty = PriceList::new(KernelFile::default(), "--family inet".to_owned());
        Stored::at(path.clone(), empty).unwrap()
    };
    let (mut first, mut second) = (open(), open());
    let lock = first.lock().unwrap();
    let refused = second.lock().expect_err("a second writer").to_string();
    assert!(refused.contains("list.json is being written by process"), "{refused}");
    first.list = list("6.1", 1000.0);
    first.save().unwrap();
    drop(lock);
    let _lock = second.lock().unwrap();
    assert_eq!(second.list, first.list);
}

#[test]
fn stored_counts_are_found_again_unless_declaration_or_kernel_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/list.json");
    let empty = || PriceList::new(KernelFile::default(), "--family inet".to_owned());
    let mut stored = Stored::at(path.clone(), empty()).unwrap();
    assert_eq!(stored.missing(&features()).len(), 4);
    stored.list = list("6.1", 1000.0);
    stored.save().unwrap();
    let again = Stored::at(path.clone(), empty()).unwrap();
    assert_eq!(again.list, stored.list);
    assert!(again.missing(&features()).is_empty());
    let changed = CATALOGUE.replace("\"tag\"", "\"tag 7\"");
    let changed = catalogue::read(&changed, "test").unwrap();
    let missing: Vec<&str> =
        again.missing(&changed).iter().map(|feature| feature.name.as_str()).collect();
    assert_eq!(missing, ["vlan"]);
    let mut again = again;
    for _ in 0..2 {
        again.list.features.remove("vlan");
        assert_eq!(again.missing(&features()).len(), 1);
        again.add_failure(&features()[3], "the guest hangs".to_owned());
    }
    assert!(again.missing(&features()).is_empty(), "after two attempts");
    again.add(&features()[3], Outcome::Absent { why: "unknown".to_owned() });
    assert!(again.failures.is_empty(), "a success is no failure");
    let other = KernelFile { name: "other".to_owned(), ..KernelFile::default() };
    let other = PriceList::new(other, "--family inet".to_owned());
    assert_eq!(Stored::at(path.clone(), other).unwrap().missing(&features()).len(), 4);
    let traffic = PriceList::new(KernelFile::default(), "--family inet6".to_owned());
    let error = Stored::at(path.clone(), traffic).err().expect("other traffic").to_string();
    assert!(error.contains("--family inet, not with --family inet6"), "{error}");
    std::fs::write(&path, "{}").unwrap();
    let error = Stored::at(path, empty()).err().expect("no list").to_string();
    assert!(error.contains("not a list of prices"), "{error}");
}

#[test]
fn list_shows_each_feature_once_with_its_values() {
    let list = FeatureList::new(&[("Linux", features())]);
    let text = rendered(&list.document(), "text");
    assert!(text.contains("rules (N = 1, 10, 100): What do N rules cost?"), "{text}");
    assert!(text.contains("vlan: What does a tag cost?"), "{text}");
}
