//! The report's page in a headless browser: it fetches nothing, nothing overflows, and all parts
//! are present.

use crate::archive_writer::{Set, Writer};

use crate::support::{alternation_plan, family, firewall, full_store, plan, queues};
use fwdlab_archive::assemble::{AssembledSet, Options, assemble};
use fwdlab_archive::found::FoundFile;
use fwdlab_archive::scan::scan;
use fwdlab_model::record::{ProfileRecord, ProfileWindow};
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::document::table::Cell;
use fwdlab_results::document::{Document, Form, Table};
use fwdlab_results::report::write;
use fwdlab_results::store::{Store, StoredProfile};
use std::path::Path;
use std::process::{Command, Stdio};

/// Measures the page after layout and stores the result in an attribute of the root element, where
/// `--dump-dom` prints it.
const PROBE: &str = "<script>addEventListener('load', () => { \
    const root = document.documentElement; \
    root.setAttribute('data-probe', JSON.stringify({ \
        overflow: root.scrollWidth - root.clientWidth, \
        fetched: performance.getEntriesByType('resource').length, \
        figures: document.querySelectorAll('figure svg').length, \
        texts: [...document.querySelectorAll('figure svg text')] \
            .filter(t => t.getBoundingClientRect().width > 0).length, \
        layouts: [...document.querySelectorAll('figure')] \
            .filter(f => !f.closest('details:not([open])')) \
            .map(f => [...f.querySelectorAll('svg')].filter(s => s.clientWidth > 0).length), \
        cut: [...document.querySelectorAll('figure:not(.scrolls)')] \
            .filter(f => f.scrollWidth > f.clientWidth).length, \
        first: document.querySelector('figure').getBoundingClientRect().top, \
        tables: document.querySelectorAll('table').length, \
        headings: [...document.querySelectorAll('h2')].map(h => h.textContent), \
        folded: document.querySelectorAll('details:not([open]) > summary > h2').length, \
        dead: [...document.querySelectorAll('.contents a')].filter(a => \
            !document.getElementById(a.getAttribute('href').slice(1))).length, \
        sorted: (() => { \
            const table = document.querySelector('#figures ~ .scroll table'); \
            const rows = () => [...table.tBodies[0].rows] \
                .map(row => parseFloat(row.cells[2].textContent.replace(/\\s/g, ''))); \
            const head = table.tHead.rows[0].cells[2]; \
            head.click(); const down = rows(); head.click(); const up = rows(); \
            return down.every((v, i) => !i || down[i - 1] >= v) \
                && up.every((v, i) => !i || up[i - 1] <= v) \
                && head.getAttribute('aria-sort') === 'ascending'; })(), \
    })); });</script>";

/// Returns an installed browser; the name depends on the distribution (`chromium` in Debian).
fn browser() -> Option<&'static str> {
    let works = |program: &&str| {
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(works);
    if found.is_none() {
        fwdlab_testdata::skip("no browser here (apt-get install chromium)");
    }
    found
}

/// Runs the probe in a page at a width, and returns its result.
fn probe(browser: &str, page: &Path, width: u32) -> serde_json::Value {
    let profile = page.with_file_name(format!("profile-{width}"));
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={width},900"))
        .args(["--virtual-time-budget=3000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .stderr(Stdio::null())
        .output()
        .expect("the browser starts");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = dom.split("data-probe=\"").nth(1).and_then(|rest| rest.split('"').next());
    let found = found.unwrap_or_else(|| panic!("the page's script did not run:\n{dom:.500}"));
    let text = found.replace("&quot;", "\"").replace("&amp;", "&");
    serde_json::from_str(&text).expect("what the probe wrote")
}

/// Adds profiles of two variants, one of which is the other's baseline.
fn with_profiles(mut store: Store) -> Store {
    for (variant, firewall) in [(0, 0), (2, 40)] {
        let window = |i: u64| ProfileWindow {
            from_ns: i * 1_000_000_000,
            to_ns: (i + 1) * 1_000_000_000,
            offered: 2_000_000,
            forwarded: 1_000_000 - 10_000 * firewall + 500 * i,
        };
        let folded =
            format!("napi/d0;napi_poll;ip_rcv 60\nnapi/d0;napi_poll;nft_do_chain {firewall}\n");
        let record = ProfileRecord {
            variant,
            source: "fabricated".to_owned(),
            windows: vec![window(0), window(1)],
            ..ProfileRecord::default()
        };
        let windows = vec![folded.clone(), folded];
        let profile = StoredProfile {
            record,
            unit: "ns".to_owned(),
            per_sample: 500_250.0,
            windows,
            outside: String::new(),
        };
        store.insert_profile(&profile).expect("a profile");
    }
    store
}

/// An imported set of four configurations.
fn imported() -> Store {
    let directory = tempfile::tempdir().expect("a directory");
    let tree = directory.path().join("archive");
    Writer::new(&tree).set(&Set { configurations: 4, ..Set::default() });
    let found = scan(&tree).expect("a tree");
    let options = Options {
        rule: None,
        imported_at: "2024-03-05T10:00:00Z".to_owned(),
        fwdlab_version: "0.1.0".to_owned(),
        named: "archive".to_owned(),
    };
    let read = |file: &FoundFile| std::fs::read(&file.path);
    let AssembledSet { plan, invocation, runs, import, .. } =
        assemble(&found.sets[0].set, None, &options, read).expect("a set");
    let path = directory.path().join("run.sqlite");
    Store::create_imported(&path, &plan, &invocation, &runs, &import).expect("a store");
    Store::open_read_only(&path).expect("the store")
}

#[test]
fn page_is_self_contained_and_fits_wide_and_narrow_windows() {
    let Some(browser) = browser() else { return };
    let plans = [
        plan(TestbedKind::Netns, vec![firewall(), family()], vec![Some(0), None], 5),
        plan(TestbedKind::Sim, vec![queues()], vec![Some(0)], 5),
        alternation_plan(TestbedKind::Netns, 4),
    ];
    let mut stores: Vec<(&str, Store)> =
        plans.iter().map(|plan| (plan.title.as_str(), full_store(plan))).collect();
    stores.push(("profiled", with_profiles(full_store(&plans[0]))));
    stores.push(("imported", imported()));
    for (title, store) in stores {
        let directory = tempfile::tempdir().expect("a directory");
        write(&store, directory.path()).expect("a report");
        let page = directory.path().join("index.html");
        let html = std::fs::read_to_string(&page).expect("the page");
        assert!(html.contains("</body>"));
        std::fs::write(&page, html.replace("</body>", &format!("{PROBE}</body>"))).expect("probe");
        for width in [500, 1000] {
            let result = probe(browser, &page, width);
            let context = format!("{title} at {width}: {result}");
            assert!(result["overflow"].as_i64().is_some_and(|pixels| pixels <= 0), "{context}");
            assert_eq!(result["fetched"], 0, "{context}");
            assert!(result["figures"].as_u64() >= Some(2), "{context}");
            // Each picture has one layout, uncut, and the first picture is on the first screen.
            let layouts = result["layouts"].as_array().expect("layouts");
            assert!(layouts.iter().all(|shown| *shown == 1), "{context}");
            assert_eq!(result["cut"], 0, "{context}");
            assert!(result["first"].as_f64() < Some(600.0), "{context}");
            assert!(result["texts"].as_u64() > Some(20), "{context}");
            assert!(result["tables"].as_u64() >= Some(5), "{context}");
            assert!(result["folded"].as_u64() >= Some(5), "{context}");
            assert_eq!(result["dead"], 0, "{context}");
            assert_eq!(result["sorted"], true, "{context}");
            let extra_heading = match title {
                "profiled" => Some("Where the time goes"),
                "imported" => Some("Against the published text"),
                _ => None,
            };
            for heading in
                ["Verdicts", "Figures", "Warnings", "Conservation"].into_iter().chain(extra_heading)
            {
                let headings = result["headings"].as_array();
                let is_present = headings.is_some_and(|all| all.iter().any(|h| h == heading));
                assert!(is_present, "{heading} is missing: {context}");
            }
        }
    }
}

/// Sorts and filters the only table of a page; each list contains the first cells of its rows.
const TABLE_PROBE: &str = "<script>addEventListener('load', () => { \
    const table = document.querySelector('table'); \
    const bar = document.querySelector('.filter'); \
    const field = bar.querySelector('input[type=search]'); \
    const names = () => [...table.tBodies[0].rows] \
        .filter(row => row.getBoundingClientRect().height > 0) \
        .map(row => row.cells[0].textContent); \
    const heads = [...table.tHead.rows[0].cells]; \
    const sorted = at => { \
        heads[at].querySelector('button').click(); \
        return { names: names(), heads: heads.map(head => head.getAttribute('aria-sort')) }; }; \
    const filtered = text => { \
        field.value = text; \
        field.dispatchEvent(new Event('input', { bubbles: true })); \
        return { names: names(), status: bar.querySelector('[role=status]').textContent }; }; \
    const focused = heads.map(head => { \
        head.firstChild.focus(); return document.activeElement === head.firstChild; }); \
    document.documentElement.setAttribute('data-probe', JSON.stringify({ \
        focused, start: names(), \
        down: sorted(1), up: sorted(1), rate: sorted(2), release: sorted(0), \
        some: filtered('6.1 KPPS'), none: filtered('nothing'), all: filtered(' '), \
    })); });</script>";

#[test]
fn table_is_sorted_and_filtered_in_a_browser() {
    let Some(browser) = browser() else { return };
    // The second column is sorted by its text, the third one by its values.
    let prices = [Some(-858.0), Some(1050.0), None, Some(9.5), Some(610.04), Some(-0.2)];
    let rates = [1.2e6, 9e5, 1e3, 2e6, 8e5, 7e5];
    let rows: Vec<(String, Option<f64>, f64)> = (0..12_usize)
        .map(|at| (format!("6.{at}"), prices.get(at).copied().flatten(), rates[at % 6] + at as f64))
        .collect();
    let signed = |price: f64| Cell::Values(format!("{price:+.1}").into(), vec![price.into()]);
    let table = Table::of(&rows)
        .words("release", |(release, ..)| Cell::text(release.as_str()))
        .numbers("price", move |(_, price, _)| price.map_or(Cell::text("-"), signed))
        .numbers("rate", |(.., rate)| {
            let text = match *rate >= 1e6 {
                true => format!("{:.1} Mpps", rate / 1e6),
                false => format!("{:.1} kpps", rate / 1e3),
            };
            Cell::Values(text.into(), vec![(*rate).into()])
        });
    let document = Document {
        title: "Rows".to_owned(),
        conclusion: Vec::new(),
        blocks: vec![table.block()],
        data: &(),
        version: 1,
    };
    let form = Form::named("html").expect("the form");
    let html = (form.render)(&document, 80).expect("a page");
    let (without_script, _) = html.split_once("<script>").expect("a script");
    assert!(!without_script.contains("<button") && !without_script.contains("<input"), "{html}");
    assert_eq!(without_script.matches("data-v").count(), 12, "only rates have values");
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("index.html");
    std::fs::write(&page, html.replace("</body>", &format!("{TABLE_PROBE}</body>"))).expect("page");
    let found = probe(browser, &page, 500);
    let names = |of: &str| -> Vec<String> {
        let names = found[of]["names"].as_array().expect("names").iter();
        names.map(|name| name.as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(found["focused"], serde_json::json!([true, true, true]));
    assert_eq!(found["start"].as_array().map(Vec::len), Some(12));
    // Rows without a price are last in either order.
    assert_eq!(names("down")[..6], ["6.1", "6.4", "6.3", "6.5", "6.0", "6.2"]);
    assert_eq!(names("up")[..6], ["6.0", "6.5", "6.3", "6.4", "6.1", "6.2"]);
    assert_eq!(names("rate")[..4], ["6.9", "6.3", "6.6", "6.0"]);
    assert_eq!(names("release")[9..], ["6.9", "6.10", "6.11"]);
    assert_eq!(found["down"]["heads"], serde_json::json!([null, "descending", null]));
    assert_eq!(found["up"]["heads"], serde_json::json!([null, "ascending", null]));
    assert_eq!(found["release"]["heads"], serde_json::json!(["ascending", null, null]));
    assert_eq!(names("some"), ["6.1", "6.10", "6.11"]);
    assert_eq!(found["some"]["status"], "3 of 12 rows");
    assert!(names("none").is_empty(), "{found}");
    assert_eq!((names("all").len(), &found["all"]["status"]), (12, &serde_json::json!("")));
}
