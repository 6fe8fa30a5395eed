//! The report's page in a real browser, headless: nothing is fetched, nothing
//! sticks out, and everything that the page promises is there.

use crate::archive_writer::{Set, Writer};

use crate::support::{alternation_plan, family, firewall, full_store, plan, queues};
use fwdlab_archive::assemble::{Assembled, Options, assemble};
use fwdlab_archive::found::FoundFile;
use fwdlab_archive::scan::scan;
use fwdlab_model::record::{ProfileRecord, ProfileWindow};
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::report::write;
use fwdlab_results::store::{Store, StoredProfile};
use std::path::Path;
use std::process::{Command, Stdio};

/// Measures the page once it is laid out and leaves what it found on the root
/// element, where `--dump-dom` shows it.
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

/// Debian calls it `chromium`; others have other names.
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

fn look(browser: &str, page: &Path, width: u32) -> serde_json::Value {
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

/// A store with profiles of two variants, one against the other.
fn profiled(mut store: Store) -> Store {
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
    let Assembled { plan, invocation, runs, import, .. } =
        assemble(&found.sets[0].set, None, &options, read).expect("a set");
    let path = directory.path().join("run.sqlite");
    Store::create_imported(&path, &plan, &invocation, &runs, &import).expect("a store");
    Store::open_read_only(&path).expect("the store")
}

#[test]
fn pages_stand_alone_and_fit_wide_and_narrow_windows() {
    let Some(browser) = browser() else { return };
    let plans = [
        plan(TestbedKind::Netns, vec![firewall(), family()], vec![Some(0), None], 5),
        plan(TestbedKind::Sim, vec![queues()], vec![Some(0)], 5),
        alternation_plan(TestbedKind::Netns, 4),
    ];
    let mut stores: Vec<(&str, Store)> =
        plans.iter().map(|plan| (plan.title.as_str(), full_store(plan))).collect();
    stores.push(("profiled", profiled(full_store(&plans[0]))));
    stores.push(("imported", imported()));
    for (title, store) in stores {
        let directory = tempfile::tempdir().expect("a directory");
        write(&store, directory.path()).expect("a report");
        let page = directory.path().join("index.html");
        let html = std::fs::read_to_string(&page).expect("the page");
        assert!(html.contains("</body>"));
        std::fs::write(&page, html.replace("</body>", &format!("{PROBE}</body>"))).expect("probe");
        for width in [500, 1000] {
            let seen = look(browser, &page, width);
            let what = format!("{title} at {width}: {seen}");
            assert!(seen["overflow"].as_i64().is_some_and(|pixels| pixels <= 0), "{what}");
            assert_eq!(seen["fetched"], 0, "{what}");
            assert!(seen["figures"].as_u64() >= Some(2), "{what}");
            // One layout of each picture, whole, and the first one on the first screen.
            let layouts = seen["layouts"].as_array().expect("layouts");
            assert!(layouts.iter().all(|shown| *shown == 1), "{what}");
            assert_eq!(seen["cut"], 0, "{what}");
            assert!(seen["first"].as_f64() < Some(600.0), "{what}");
            assert!(seen["texts"].as_u64() > Some(20), "{what}");
            assert!(seen["tables"].as_u64() >= Some(5), "{what}");
            assert!(seen["folded"].as_u64() >= Some(5), "{what}");
            assert_eq!(seen["dead"], 0, "{what}");
            assert_eq!(seen["sorted"], true, "{what}");
            let own = match title {
                "profiled" => Some("Where the time goes"),
                "imported" => Some("Against the published text"),
                _ => None,
            };
            for heading in
                ["Verdicts", "Figures", "Warnings", "Conservation"].into_iter().chain(own)
            {
                let headings = seen["headings"].as_array();
                let there = headings.is_some_and(|all| all.iter().any(|h| h == heading));
                assert!(there, "{heading} is missing: {what}");
            }
        }
    }
}
