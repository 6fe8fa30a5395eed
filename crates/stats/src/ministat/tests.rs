use super::*;

fn set(name: &str, values: &[f64]) -> DataSet {
    DataSet { name: name.into(), values: values.to_vec() }
}

fn iguana() -> DataSet {
    set("iguana", &[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0])
}

fn chameleon() -> DataSet {
    set("chameleon", &[150.0, 400.0, 720.0, 500.0, 930.0])
}

#[test]
fn render_matches_the_manual_page_example() {
    // The example of ministat(1), as printed by Debian's ministat 20150715 at the width for files.
    let text = render(&[iguana(), chameleon()], &Options::default()).unwrap();
    let expected = "\
x iguana
+ chameleon
+--------------------------------------------------------------------------+
|x       *   x                *       +                  + x              +|
| |__________M________A__________________|                                 |
|                |____________________M___A_______________________|        |
+--------------------------------------------------------------------------+
    N           Min           Max        Median           Avg        Stddev
x   7            50           750           200           300     238.04761
+   5           150           930           500           540     299.08193
No difference proven at 95.0% confidence
";
    let separate = Options { separate_bars: true, ..Options::default() };
    assert_eq!(render(&[iguana(), chameleon()], &separate).unwrap(), expected);
    assert_ne!(text, expected, "bars share one line unless -s is given");
}

#[test]
fn percent_error_changed_in_2016() {
    let options = |generation| Options {
        confidence: 80.0,
        no_plot: true,
        quiet: true,
        generation,
        ..Options::default()
    };
    let sets = [iguana(), chameleon()];
    let old = render(&sets, &options(Generation::Fbsd11_0)).unwrap();
    let new = render(&sets, &options(Generation::Fbsd14)).unwrap();
    assert!(old.contains("\t80% +/- 70.7384%\n"), "{old}");
    assert!(new.contains("\t80% +/- 102.3%\n"), "{new}");
}

#[test]
fn last_set_determines_height_and_overlaps_are_ored() {
    let tall = set("tall", &[1.0, 1.0, 1.0, 1.0, 2.0]);
    let low = set("low", &[1.0, 1.5, 2.0]);
    let plain = Options { width: 5, quiet: true, no_tests: true, ..Options::default() };
    let text = render(&[tall, low], &plain).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows[0], "+-----+");
    assert_eq!(rows[3], "+-----+", "one row of points and one of bars: {text}");
    assert!(rows[1].contains('*'), "x and + meet as *: {text}");
}

#[test]
fn median_depends_on_the_generation() {
    let even = [set("even", &[1.0, 2.0, 3.0, 10.0])];
    let line = |generation| {
        let options = Options { no_plot: true, quiet: true, generation, ..Options::default() };
        render(&even, &options).unwrap()
    };
    assert_eq!(
        line(Generation::Fbsd10),
        "x   4             1            10             3             4     4.0824829\n"
    );
    assert_eq!(
        line(Generation::Fbsd14),
        "x   4             1            10           2.5             4     4.0824829\n"
    );
}

#[test]
fn errors_print_nothing() {
    let few = set("few", &[1.0, 2.0]);
    let error = render(&[iguana(), few], &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "Dataset few must contain at least 3 data points");
    let eight = vec![iguana(); 8];
    assert_eq!(render(&eight, &Options::default()), Err(MinistatError::TooManySets));
    let odd = Options { confidence: 97.0, ..Options::default() };
    assert_eq!(render(&[iguana()], &odd), Err(MinistatError::Confidence));
    let narrow = Options { width: 1, ..Options::default() };
    assert_eq!(render(&[iguana()], &narrow), Err(MinistatError::Width));
}

#[test]
fn many_values_with_nan_among_them_do_not_panic() {
    // More values than a sort leaves to plain insertion: for longer inputs the sort detects an
    // order that is not total, and panics.
    let values = (0..60).map(|n| if n % 7 == 3 { f64::NAN } else { f64::from(n * 37 % 41) });
    let set = DataSet { name: "x".into(), values: values.collect() };
    let text = render(&[set], &Options::default()).expect("a text");
    assert!(text.contains("nan"), "{text}");
}

#[test]
fn nan_and_infinity_do_not_panic() {
    let odd = set("odd", &[f64::NAN, f64::INFINITY, 1.0, f64::NEG_INFINITY]);
    for generation in Generation::ALL {
        let options = Options { generation, ..Options::default() };
        assert!(render(&[iguana(), odd.clone()], &options).is_ok());
    }
}
