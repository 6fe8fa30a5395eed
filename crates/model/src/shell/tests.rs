use super::*;

/// Returns names and values in their original notation, and the number of other statements.
fn read(script: &str) -> (Vec<(String, String)>, usize) {
    let (found, skipped) = assignments(script);
    (found.into_iter().map(|a| (a.name.clone(), a.as_written())).collect(), skipped)
}

fn check(script: &str, expected: &[(&str, &str)], skipped: usize) {
    let (found, others) = read(script);
    let expected: Vec<_> =
        expected.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    assert_eq!((found, others), (expected, skipped), "{script}");
}

#[test]
fn assignments_of_configuration_files_are_parsed() {
    check("a=\"1\"\t# why\n# b=2\n\nc='$d'", &[("a", "1"), ("c", "$d")], 0);
    check("a=NO\r\nb=\"\"\r\n", &[("a", "NO"), ("b", "")], 0);
    check("a=\"one\ntwo\"\nb=x#y", &[("a", "one\ntwo"), ("b", "x#y")], 0);
    check("a=\"one \\\ntwo\"; b=1", &[("a", "one two"), ("b", "1")], 0);
    check("a=pre\"mid dle\"post", &[("a", "premid dlepost")], 0);
    check(": ${AF:=\"4\"}", &[("AF", "4")], 0);
    check("export A=1", &[("A", "1")], 0);
    check(r#"a="\"q\" \d""#, &[("a", "\"q\" \\d")], 0);
}

#[test]
fn other_statements_are_counted() {
    check("rm -rf x\nA=1 command\nB=2", &[("B", "2")], 2);
    check("if [ -f x ]; then\nA=1\nfi\nB=2", &[("B", "2")], 4);
    check("f() {\nA=1\n}\nB=2", &[("B", "2")], 3);
    check("1a=2\n=3\na b=4", &[], 3);
}

#[test]
fn values_of_variables_are_resolved() {
    let value = |script: &str| {
        let (found, _) = assignments(script);
        found[0].resolved(beta).ok()
    };
    assert_eq!(value("A=${B}").as_deref(), Some("beta"));
    assert_eq!(value("A=\"x $B y ${C}\"").as_deref(), Some("x beta y "));
    assert_eq!(value("A='$B'").as_deref(), Some("$B"));
    assert_eq!(value(r#"A="\$B""#).as_deref(), Some("$B"));
    assert_eq!(value(r#"A="$B"x"y"$B'z'"#).as_deref(), Some("betaxybetaz"));
    for evaluated in ["A=$(date)", "A=`date`", "A=${B:-1}", "A=$1", "A=$", "A=${B"] {
        assert_eq!(value(evaluated), None, "{evaluated}");
    }
}

fn beta(name: &str) -> Option<&'static str> {
    Some(if name == "B" { "beta" } else { "" })
}
