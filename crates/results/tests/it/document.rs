//! Output forms of a document: an addition to the model appears in every form, and every form is
//! listed once.

use fwdlab_results::compare::{Question, compare_texts};
use fwdlab_results::document::form::text::{self, Detail};
use fwdlab_results::document::judgement::Judgement;
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, DetailLevel, Document, FORMS, List, Remark, Table};
use fwdlab_results::report::analysis::Outcome;
use fwdlab_results::stats::Verdict;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

fn render(document: &Document<'_>) -> BTreeMap<&'static str, String> {
    let of = |width| {
        FORMS.map(|form| (form.name, (form.render)(document, width).expect("every form is text")))
    };
    let narrow = of(40).into_iter().map(|(name, text)| match name {
        "text" => ("narrow text", text),
        name => (name, text),
    });
    narrow.chain(of(100).into_iter().filter(|(name, _)| *name == "text")).collect()
}

/// Removes line breaks, which differ between forms.
fn flat(text: &str) -> String {
    text.split([' ', '\n']).filter(|word| !word.is_empty()).collect::<Vec<&str>>().join(" ")
}

#[test]
fn added_column_appears_in_every_form() {
    let question = Question::default();
    let texts = [("before", "1000000\n1010000\n990000\n"), ("after", "900000\n905000\n895000\n")];
    let results = compare_texts(&question, &texts).expect("an answer");
    let mut document = results.document();
    for text in render(&document).values() {
        assert!(!text.contains("Hodge's g") && !text.contains("hodge_s_g"), "{text}");
    }
    let whole = document.blocks.iter_mut().filter_map(|block| match block {
        Block::Brief { whole, .. } => Some(whole),
        _ => None,
    });
    let verdicts = whole.flatten().find_map(|block| match block {
        Block::Table(table) if table.name == Some("verdicts") => Some(table),
        _ => None,
    });
    let verdicts = verdicts.expect("a table of verdicts");
    // The forms have no knowledge of this column.
    let added = Table::of(&results.comparisons)
        .numbers("Hodge's g", |_| Cell::Number(-6.25, Digits::Decimals(2), "sd"))
        .table();
    verdicts.columns.extend(added.columns);
    for (row, added) in verdicts.rows.iter_mut().zip(added.rows) {
        row.cells.extend(added.cells);
    }
    let mut forms = render(&document);
    // These forms are brief by default.
    for form in ["text", "narrow text", "mail"] {
        assert!(!forms.remove(form).expect("a form").contains("Hodge's g"), "{form}");
    }
    let lines = text::lines(&document, 100, Detail::Whole).into_iter();
    forms.insert("text", lines.map(|line| line.text + "\n").collect());
    // These forms contain metrics, not statistics.
    for form in ["bencher", "github-action-benchmark", "openmetrics"] {
        assert!(!forms.remove(form).expect("a form").contains("Hodge's g"), "{form}");
    }
    for (form, text) in forms {
        let (title, value) = match form {
            "junit" => ("Hodge&#39;s g", "Hodge&#39;s g -6.25 sd"),
            "csv" => ("hodge_s_g", ",-6.25\n"),
            "json" => ("\"hodge_s_g\"", "\"hodge_s_g\": -6.25"),
            "html" => ("<th class=\"n\">Hodge&#39;s g</th>", "<td class=\"n\">-6.25 sd</td>"),
            "markdown" => ("| Hodge's g |", "| -6.25 sd |"),
            _ => ("Hodge's g", "Hodge's g -6.25 sd"),
        };
        let flat = flat(&text);
        assert!(text.contains(title) || flat.contains(title), "{form}: no {title} in\n{text}");
        assert!(text.contains(value) || flat.contains(value), "{form}: no {value} in\n{text}");
    }
}

#[test]
fn ktap_reports_comparisons_as_tests() {
    let of = |candidates: &[(&str, &str)]| {
        let question = Question::default();
        let mut texts = vec![("before", "1000000\n1010000\n990000\n1002000\n")];
        texts.extend(candidates);
        let results = compare_texts(&question, &texts).expect("an answer");
        (FORMS.iter().find(|form| form.name == "ktap").expect("the form").render)(
            &results.document(),
            80,
        )
        .expect("text")
    };
    let worse = ("slower", "900000\n905000\n895000\n901000\n");
    let better = ("faster", "1100000\n1105000\n1095000\n1101000\n");
    let unknown = ("noisy", "800000\n1250000\n1000000\n990000\n");
    let text = of(&[worse, better, unknown]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["KTAP version 1", "1..3"], "{text}");
    let tests: Vec<&str> = lines.iter().copied().filter(|l| !l.starts_with('#')).skip(2).collect();
    assert_eq!(
        tests[..2],
        ["not ok 1 slower against before", "ok 2 faster against before"],
        "{text}"
    );
    assert!(tests[2].starts_with("ok 3 noisy against before # SKIP inconclusive"), "{text}");
    let totals = "# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0";
    assert_eq!(lines.last(), Some(&totals), "{text}");
    assert!(text.contains("# effect -10.0"), "{text}");
}

fn junit(candidate: &str) -> String {
    let texts = [("before", "1000000\n1010000\n990000\n1002000\n"), ("after", candidate)];
    let results = compare_texts(&Question::default(), &texts).expect("an answer");
    fwdlab_results::document::form::junit::render(&results.document())
}

#[test]
fn junit_fails_for_worse_only() {
    let worse = junit("900000\n905000\n895000\n901000\n");
    assert!(worse.contains("tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{worse}");
    let failure = "<testcase classname=\"fwdlab\" name=\"after against before\">\n\
                   <failure type=\"worse\" message=\"worse by more than 2.0 %\">variant after\n";
    assert!(worse.contains(failure), "{worse}");
    let better = junit("1100000\n1105000\n1095000\n1101000\n");
    assert!(better.contains("failures=\"0\"") && !better.contains("<failure"), "{better}");
    let unknown = junit("800000\n1250000\n1000000\n990000\n");
    assert!(unknown.contains("skipped=\"1\""), "{unknown}");
    assert!(unknown.contains("<skipped type=\"inconclusive\" message=\"inconclusive"), "{unknown}");
}

#[test]
fn worse_within_margin_passes_like_the_exit_code() {
    // Significantly slower by 1 %, within the margin of 2 %.
    let small = "990000\n990100\n989900\n990050\n";
    let texts = [("before", "1000000\n1000100\n999900\n1000050\n"), ("after", small)];
    let results = compare_texts(&Question::default(), &texts).expect("an answer");
    let outcome = &results.comparisons[0].outcome;
    let Outcome::Compared(answer) = outcome else { panic!("{outcome:?}") };
    assert!(answer.verdict == Verdict::Worse && answer.within_margin, "{answer:?}");
    assert_eq!(outcome.judgement(), Judgement::Pass);
    let none = Outcome::Unanswerable { reason: "no runs".into() };
    assert_eq!(none.judgement(), Judgement::Skip("no answer: no runs".into()));
}

#[test]
fn dashboard_forms_contain_rates_and_ratios_with_bounds() {
    let texts = [("before", "1000000\n1010000\n990000\n"), ("after", "900000\n905000\n895000\n")];
    let results = compare_texts(&Question::default(), &texts).expect("an answer");
    let forms = render(&results.document());
    let bencher: Value = serde_json::from_str(&forms["bencher"]).expect("JSON");
    let rate = json!({ "value": 1e6, "lower_value": 990_000.0, "upper_value": 1_010_000.0 });
    assert_eq!(bencher["before"], json!({ "forwarding-rate": rate }), "{bencher:#}");
    let ratio = &bencher["after against before"]["rate-ratio"];
    assert!(ratio["lower_value"].as_f64() < ratio["value"].as_f64(), "{bencher:#}");
    assert!(ratio["value"].as_f64() < ratio["upper_value"].as_f64(), "{bencher:#}");
    let charts: Value = serde_json::from_str(&forms["github-action-benchmark"]).expect("JSON");
    let names: Vec<&Value> =
        charts.as_array().expect("a list").iter().map(|c| &c["name"]).collect();
    let expected =
        ["before: forwarding-rate", "after: forwarding-rate", "after against before: rate-ratio"];
    assert_eq!(names, expected, "{charts:#}");
    assert_eq!(charts[0]["unit"], "packets/s");
    assert_eq!(charts[0]["range"], "990000 to 1010000");
    // Without metrics, the file is empty but valid.
    let empty = document(vec![Block::text("nothing")]);
    assert_eq!(render(&empty)["bencher"], "{}\n");
    assert_eq!(render(&empty)["github-action-benchmark"], "[]\n");
    assert_eq!(render(&empty)["openmetrics"], "# EOF\n");
}

/// Checks the rules of OpenMetrics 1.0 that apply to gauges with one label: names, metadata before
/// the samples, families in one piece, distinct labels, escapes, the end. Returns the samples.
fn openmetrics(text: &str) -> BTreeMap<(String, String), f64> {
    let body = text.strip_suffix("# EOF\n").expect("an end");
    let (mut samples, mut families): (BTreeMap<_, _>, Vec<String>) = Default::default();
    for line in body.lines() {
        if let Some(metadata) = line.strip_prefix("# ") {
            let words: Vec<&str> = metadata.splitn(3, ' ').collect();
            let [kind, family, rest] = words[..] else { panic!("{line}") };
            let first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
            assert!(family.starts_with(first), "{line}");
            assert!(family.chars().all(|c| first(c) || c.is_ascii_digit()), "{line}");
            if kind == "TYPE" {
                assert!(rest == "gauge" && !families.iter().any(|f| f == family), "{line}");
                families.push(family.to_owned());
            } else {
                assert!(kind == "HELP" && families.last().is_some_and(|f| f == family), "{line}");
            }
            continue;
        }
        let (name, rest) = line.split_once("{benchmark=\"").expect("a label");
        let (label, value) = rest.rsplit_once("\"} ").expect("a value");
        assert!(families.last().is_some_and(|family| family == name), "{line}");
        let mut rest = label.chars();
        while let Some(c) = rest.next() {
            let escaped = if c == '\\' { rest.next() } else { None };
            assert!(c != '"' && (c != '\\' || matches!(escaped, Some('\\' | '"' | 'n'))), "{line}");
        }
        let value: f64 = value.parse().expect("a number");
        assert!(samples.insert((name.to_owned(), label.to_owned()), value).is_none(), "{line}");
    }
    samples
}

#[test]
fn openmetrics_form_follows_the_specification() {
    let texts =
        [("a \"b\" c\\d", "1000000\n1010000\n990000\n"), ("after", "900000\n905000\n895000\n")];
    let results = compare_texts(&Question::default(), &texts).expect("an answer");
    let samples = openmetrics(&render(&results.document())["openmetrics"]);
    let sample = |name: &str, label: &str| samples[&(name.to_owned(), label.to_owned())];
    let before = r#"a \"b\" c\\d"#;
    assert_eq!(sample("fwdlab_forwarding_rate", before), 1e6);
    assert_eq!(sample("fwdlab_forwarding_rate_lower", before), 990_000.0);
    assert_eq!(sample("fwdlab_forwarding_rate_upper", "after"), 905_000.0);
    let against = format!("after against {before}");
    let ratio = sample("fwdlab_rate_ratio", &against);
    assert!((ratio - 0.9).abs() < 1e-3, "{ratio}");
    assert!(sample("fwdlab_rate_ratio_lower", &against) < ratio);
}

#[test]
fn every_form_file_is_listed_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../document/src/form");
    let files = std::fs::read_dir(folder).expect("the folder of forms").map(|entry| {
        let path = entry.expect("an entry").path();
        path.file_stem().expect("a name").to_string_lossy().replace('_', "-")
    });
    let mut files: Vec<String> = files.filter(|name| name != "mod").collect();
    files.sort();
    let mut listed = FORMS.map(|form| form.name);
    listed.sort_unstable();
    assert_eq!(files, listed);
}

fn document(blocks: Vec<Block>) -> Document<'static> {
    let title = "Made up".to_owned();
    Document { title, conclusion: Vec::new(), blocks, data: &(), version: 1 }
}

#[test]
fn long_parts_are_shortened_in_forms_without_folding() {
    let points: Vec<String> = (0..9).map(|n| format!("point {n}")).collect();
    let list = List { brief: Some((2, "and {} more")), ..List::of(&points) };
    let table = Table::of(&points).words("name", Cell::text).set(|table| {
        table.brief = Some(3);
    });
    let forms = render(&document(vec![
        Block::List(list),
        Block::section("Rows", vec![table.block()]),
        Block::Where(DetailLevel::All, vec![Block::text("at length")]),
        Block::Where(DetailLevel::Page, vec![Block::text("on paper")]),
    ]));
    for (form, all, rows, at_length, on_paper) in [
        ("text", false, 1, false, false),
        ("markdown", false, 1, false, true),
        ("html", true, 2, true, true),
    ] {
        let text = &forms[form];
        assert_eq!(text.contains("and 7 more"), !all, "{form}: {text}");
        assert_eq!(text.matches("point 8").count(), if all { rows } else { 0 }, "{form}: {text}");
        assert_eq!(text.matches("point 1").count(), 2, "{form}: {text}");
        assert_eq!(text.contains("at length"), at_length, "{form}: {text}");
        assert_eq!(text.contains("on paper"), on_paper, "{form}: {text}");
    }
}

#[test]
fn conclusion_is_first_in_pages_and_last_in_terminals() {
    let mut document = document(vec![Block::text("the rest")]);
    document.conclusion = vec![Block::remark(Remark::Caution, "in short")];
    for (form, text) in render(&document) {
        let first = match form {
            "csv" | "json" | "bencher" | "github-action-benchmark" | "openmetrics" => continue,
            // The test forms omit the body.
            "ktap" | "junit" => text.contains("in short"),
            "text" | "narrow text" => text.find("the rest") < text.find("in short"),
            _ => text.find("in short") < text.find("the rest"),
        };
        assert!(first && text.contains("in short"), "{form}: {text}");
    }
}

#[test]
fn mail_omits_spare_columns_of_wide_tables_first() {
    let rows = ["a label of some length", "short"];
    let wide = "x".repeat(30);
    let table = Table::of(&rows)
        .words("variant", |name| Cell::text(*name))
        .numbers("rate", |_| Cell::rate(1_234_567.0))
        .words("spare", |_| Cell::text("y".repeat(30)))
        .spare()
        .words("verdict", |_| Cell::text(wide.clone()));
    let all = render(&document(vec![table.block()]));
    let of = |form: &str| {
        all.iter().find(|one| one.0.eq_ignore_ascii_case(form)).map(|one| one.1.clone())
    };
    let of = |form: &str| of(form).expect("the form");
    let mail = of("mail");
    assert!(mail.contains("a label of some length  1.23 Mpps  xxx"), "{mail}");
    assert!(!mail.contains("yyy") && mail.lines().all(|line| line.chars().count() <= 72), "{mail}");
    assert!(of("html").contains("yyy"));
}

#[test]
fn too_wide_table_becomes_phrases_in_a_terminal() {
    let rows = ["a label that can be cut where there is little room", "short"];
    let table = || {
        let of = Table::of(&rows).words("variant", |name| Cell::text(*name));
        of.numbers("rate", |_| Cell::rate(1_234_567.0)).numbers("runs", |_| Cell::count(5_usize))
    };
    let forms = render(&document(vec![table().block()]));
    let narrow = "a label that can be cu…  1.23 Mpps     5";
    assert!(forms["narrow text"].contains(narrow), "{}", forms["narrow text"]);
    assert!(forms["text"].contains("little room  1.23 Mpps     5"), "{}", forms["text"]);
    let wide = table().words("and more", |_| Cell::text("than fits"));
    let forms = render(&document(vec![wide.block()]));
    let narrow = flat(&forms["narrow text"]);
    assert!(narrow.contains("short: rate 1.23 Mpps, runs 5, and more than fits"), "{narrow}");
}
