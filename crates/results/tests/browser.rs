//! The report's page in a real browser, headless: nothing is fetched, nothing
//! sticks out, and everything that the page promises is there.

mod support;

use fwdlab_model::settings::TestbedKind;
use fwdlab_results::report::write;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{alternation_plan, family, firewall, full_store, plan, queues};

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
        tables: document.querySelectorAll('table').length, \
        headings: [...document.querySelectorAll('h2')].map(h => h.textContent), \
    })); });</script>";

/// Debian calls it `chromium`; others have other names.
fn browser() -> Option<&'static str> {
    let works = |program: &&str| {
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(works);
    if found.is_none() {
        let in_ci = std::env::var_os("FWDLAB_CI").is_some_and(|ci| ci == "1");
        assert!(!in_ci, "no browser in CI: apt-get install chromium");
        eprintln!("SKIPPED: no browser here (apt-get install chromium)");
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

#[test]
fn pages_stand_alone_and_fit_wide_and_narrow_windows() {
    let Some(browser) = browser() else { return };
    let plans = [
        plan(TestbedKind::Netns, vec![firewall(), family()], vec![Some(0), None], 5),
        plan(TestbedKind::Sim, vec![queues()], vec![Some(0)], 5),
        alternation_plan(TestbedKind::Netns, 4),
    ];
    for plan in plans {
        let directory = tempfile::tempdir().expect("a directory");
        write(&full_store(&plan), directory.path()).expect("a report");
        let page = directory.path().join("index.html");
        let html = std::fs::read_to_string(&page).expect("the page");
        assert!(html.contains("</body>"));
        std::fs::write(&page, html.replace("</body>", &format!("{PROBE}</body>"))).expect("probe");
        for width in [500, 1000] {
            let seen = look(browser, &page, width);
            let what = format!("{} at {width}: {seen}", plan.title);
            assert!(seen["overflow"].as_i64().is_some_and(|pixels| pixels <= 0), "{what}");
            assert_eq!(seen["fetched"], 0, "{what}");
            assert!(seen["figures"].as_u64() >= Some(2), "{what}");
            assert!(seen["texts"].as_u64() > Some(20), "{what}");
            assert!(seen["tables"].as_u64() >= Some(5), "{what}");
            for heading in ["Verdicts", "Figures", "Warnings", "Conservation"] {
                let headings = seen["headings"].as_array();
                let there = headings.is_some_and(|all| all.iter().any(|h| h == heading));
                assert!(there, "{heading} is missing: {what}");
            }
        }
    }
}
