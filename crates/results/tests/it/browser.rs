//! The report's page in a headless browser: it fetches nothing, nothing overflows, and all parts
//! are present.

use crate::archive_writer::{Set, Writer};

use crate::support::{alternation_plan, family, firewall, full_store, plan, queues};
use fwdlab_archive::assemble::{AssembledSet, Options, assemble};
use fwdlab_archive::found::FoundFile;
use fwdlab_archive::scan::scan;
use fwdlab_model::record::{ProfileRecord, ProfileWindow};
use fwdlab_model::settings::TestbedKind;
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
