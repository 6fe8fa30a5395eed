//! Files whose lines may belong to other runs than their columns state.

use std::path::Path;

fn values(text: &str) -> Result<Vec<(String, Vec<f64>)>, String> {
    let input = super::super::read(Path::new("a.csv"), text).map_err(|error| error.to_string())?;
    let variants = input.variants.iter();
    Ok(variants.map(|variant| (variant.label.clone(), variant.values())).collect())
}

fn error(text: &str) -> String {
    values(text).expect_err(text)
}

#[test]
fn column_with_two_values_in_a_run_is_refused() {
    let text = "host,run,pps\nr1,1,900\nr1,2,910\nr2,1,400\nr2,2,410\n";
    let message = error(text);
    assert!(
        message.starts_with("a.csv:4: run 1 has two values of `host`: `r1` and `r2`;"),
        "{message}"
    );
    assert!(message.contains("call the column `variant`"), "{message}");
    let as_variants = values(&text.replace("host", "variant")).expect("two variants");
    assert_eq!(as_variants[0], ("r1".into(), vec![900.0, 910.0]));
    assert_eq!(as_variants[1], ("r2".into(), vec![400.0, 410.0]));
    // The same value in all lines of a run, and a line per run.
    values("host,run,pps\nr1,1,900\nr1,1,910\nr2,2,400\n").expect("runs");
    // A number counts like a word.
    assert!(error("mtu,run,pps\n1500,1,9\n9000,1,8\n").contains("of `mtu`"));
}

#[test]
fn measurements_of_parts_may_differ_within_a_run() {
    let text = "run,second,pps,lost\n1,0,90,3\n1,1,92,4\n2,0,80,0\n2,1,82,1\n";
    assert_eq!(values(text).expect("runs")[0].1, [91.0, 81.0]);
    // Nor need they be numbers in every part.
    values(&text.replace(",4\n", ",\n")).expect("a value is missing");
    let times = text.replace(",3\n", ",2026-11-27 10:00:00\n");
    values(&times.replace(",4\n", ",2026-11-27 10:00:01\n")).expect("times");
    // But words may not differ, nor numbers of the same part.
    let words = text.replace(",3\n", ",low\n").replace(",4\n", ",high\n");
    assert!(error(&words).contains("two values of `lost`"));
    assert!(error(&text.replace("1,1,92", "1,0,92")).contains("two values of `lost`"));
}

#[test]
fn first_column_that_rises_evenly_is_no_run_number() {
    for text in ["1 900\n2 910\n3 905\n", "0\t9\n10\t8\n20\t7\n"] {
        let error = error(text);
        assert!(error.contains("rises evenly, as a clock does"), "{error}");
        assert!(error.contains("write a first line `run pps`"), "{error}");
    }
    // Several lines per run, runs in another order, or a heading.
    for text in [
        "1 900\n1 910\n2 905\n2 900\n",
        "3 900\n1 910\n2 905\n",
        "run pps\n1 900\n2 910\n3 905\n",
        "# run pps\n1 900\n2 910\n3 905\n",
    ] {
        values(text).expect(text);
    }
}

#[test]
fn commented_heading_with_a_time_is_refused() {
    for heading in ["# seconds pps", "#time(s)\tpps", "# Second, pps"] {
        let error = error(&format!("# of 3 March\n{heading}\n5 900\n5 910\n7 905\n"));
        assert!(error.contains("parts of a run are no replicates"), "{heading}: {error}");
    }
    for remark in ["# time of day: noon", "# Time: noon", "# second 2026"] {
        values(&format!("{remark}\n5 900\n5 910\n7 905\n")).expect("a remark, no heading");
    }
    values("# seconds without loss\n900\n910\n").expect("one column");
}

#[test]
fn numbered_variants_have_the_names_of_their_labels() {
    let text = "run,variant,label,value_pps\n0,0,none,9\n1,1,pf,7\n2,0,none,8\n3,1,pf,6\n";
    let found = values(text).expect("variants");
    assert_eq!(found, [("none".into(), vec![9.0, 8.0]), ("pf".into(), vec![7.0, 6.0])]);
    // Names of variants remain.
    let named = text.replace(",0,none", ",a,none").replace(",1,pf", ",b,pf");
    assert_eq!(values(&named).expect("variants")[0].0, "a");
    // So do numbers with remarks.
    let remarks = text.replace("3,1,pf", "3,1,late");
    assert_eq!(values(&remarks).expect("variants")[0].0, "0");
}

#[test]
fn long_text_is_quoted_in_part() {
    let line = "x".repeat(100_000) + " 1";
    assert!(error(&line).len() < 300);
    assert!(error(&format!("pps\n{}\n", "y".repeat(100_000))).len() < 300);
}
