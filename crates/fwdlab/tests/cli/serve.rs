//! Pages of stores and of the running experiment, by plain HTTP and in a browser.

use crate::support::{INSTANT, Lab};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server on loopback that ends with the test.
struct Server {
    child: Child,
    /// Address and port.
    at: String,
    /// The query of the address that it printed.
    query: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer.
struct Page {
    status: u16,
    head: String,
    body: String,
}

impl Server {
    fn start(lab: &Lab, listen: &str) -> Server {
        let mut command = lab.command(&["serve", "results", "--listen", listen]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("its address");
        let url = line.trim().strip_prefix("http://").expect("an address").to_owned();
        let (at, query) = url.split_once('/').expect("a path");
        Server { child, at: at.to_owned(), query: query.to_owned() }
    }

    fn send(&self, request: &str) -> TcpStream {
        let port = self.at.rsplit(':').next().expect("a port");
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("a server");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("a server that reads");
        stream
    }

    fn get_with(&self, path: &str, more: &str) -> Page {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{more}Connection: close\r\n\r\n", self.at);
        let mut text = Vec::new();
        self.send(&request).read_to_end(&mut text).expect("an answer");
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Page { status: status.expect("a status"), head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Page {
        self.get_with(path, "")
    }

    /// The text of a page, which must exist.
    #[track_caller]
    fn page(&self, path: &str) -> String {
        let page = self.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        page.body
    }
}

/// Two stores below `results`.
fn measured() -> Lab {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml", "--quiet"]).expect(0);
    lab.fwdlab(&["run", "x.toml", "--quiet", "--seed", "9", "--out", "results/deep/y"]).expect(0);
    lab
}

#[test]
fn every_store_has_pages_and_other_paths_have_none() {
    let lab = measured();
    lab.write("secret", "nobody reads this");
    let server = Server::start(&lab, "127.0.0.1:0");
    let index = server.page("/");
    assert!(index.contains("href=\"/store/x/\"") && index.contains("href=\"/store/deep%2Fy/\""));
    let report = server.page("/store/x/");
    assert!(report.contains("A simulated firewall") && report.contains("SIMULATED"));
    assert!(report.contains("href=\"/live/x\""), "the way to the runs");
    assert!(server.page("/store/deep%2Fy/results.json").contains("\"verdict\""));
    let found = server.page("/compare?a=x%2Fnone&b=deep%252Fy%2Fstateful");
    let title = "<title>y: stateful against x: none</title>";
    assert!(found.contains(title) && found.contains("worse"), "{found}");
    assert!(found.contains("<figure>"), "{found}");
    // Nothing is chosen yet: the page offers both choices in one step.
    let empty = server.page("/compare");
    assert!(empty.contains("<option value=\"x/stateful\">x: stateful</option>"), "{empty}");
    assert!(empty.contains("<option value=\"deep%2Fy\">y: all variants</option>"), "{empty}");
    assert!(server.page("/history").contains("<form>"));
    for path in [
        "/secret",
        "/store/..%2F..%2Fsecret",
        "/store/x/..%2F..%2Fsecret",
        "/store/x/../../secret",
        "/store/%2Fetc/passwd",
        "/store/x/run.sqlite",
        "/live/z",
        "/events/z",
        "/events/x/y",
    ] {
        let page = server.get(path);
        assert_eq!(page.status, 404, "{path}: {}", page.body);
    }
    let head = server.get("/").head;
    assert!(head.contains("default-src 'none'") && head.contains("nosniff"), "{head}");
}

#[test]
fn server_refuses_foreign_requests_and_writes_nothing() {
    let lab = measured();
    let loopback = Server::start(&lab, "127.0.0.1:0");
    let mut answer = String::new();
    let post = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        loopback.at
    );
    loopback.send(&post).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    // A foreign name that resolves to this machine.
    let mut answer = String::new();
    let foreign = "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    loopback.send(foreign).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");

    let server = Server::start(&lab, "0.0.0.0:0");
    assert!(server.query.starts_with("?token="), "{}", server.query);
    for path in ["/", "/store/x/", "/events/x", "/?token=00000000000000000000000000000000"] {
        assert_eq!(server.get(path).status, 403, "{path}");
    }
    let welcome = server.get(&format!("/{}", server.query));
    assert_eq!(welcome.status, 303);
    let cookie = welcome.head.lines().find_map(|line| line.strip_prefix("Set-Cookie: "));
    let cookie = cookie.expect("a cookie").split(';').next().unwrap().to_owned();
    let page = server.get_with("/store/x/", &format!("Cookie: {cookie}\r\n"));
    assert_eq!(page.status, 200);
    assert!(page.body.contains("A simulated firewall"));
}

#[test]
fn invalid_serve_arguments_are_refused_with_a_next_step() {
    let lab = Lab::new(INSTANT);
    let ended = lab.fwdlab(&["serve"]).expect(2);
    assert!(ended.stderr.contains("results is no directory"), "{}", ended.stderr);
    std::fs::create_dir(lab.path("results")).unwrap();
    let server = Server::start(&lab, "127.0.0.1:0");
    assert!(server.page("/").contains("No store lies below this directory yet."));
    let ended = lab.fwdlab(&["serve", "--listen", &server.at]).expect(3);
    assert!(ended.stderr.contains("choose another with --listen"), "{}", ended.stderr);
}

#[test]
fn events_follow_an_experiment_from_first_run_to_end() {
    let slow = INSTANT.replace("noise = 0.01", "noise = 0.01\nrealtime = true")
        + "[trial]\nwarmup = \"20ms\"\nduration = \"600ms\"\ndrain = \"20ms\"\n";
    let lab = Lab::new(&slow);
    std::fs::create_dir(lab.path("results")).unwrap();
    let server = Server::start(&lab, "127.0.0.1:0");
    let mut command = lab.command(&["run", "x.toml", "--quiet"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !server.get("/").body.contains("href=\"/live/x\"") {
        assert!(run.try_wait().unwrap().is_none(), "it ended before it was seen");
        std::thread::sleep(Duration::from_millis(50));
    }
    let request = format!("GET /events/x HTTP/1.1\r\nHost: {}\r\n\r\n", server.at);
    let mut events = Vec::new();
    for line in BufReader::new(server.send(&request)).lines() {
        let line = line.expect("an event");
        let Some(event) = line.strip_prefix("data: ") else { continue };
        let event: serde_json::Value = serde_json::from_str(event).expect("JSON");
        let is_end = event["event"] == "end";
        events.push(event);
        if is_end {
            break;
        }
    }
    assert!(run.wait().unwrap().success());
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((of("reset"), of("begin"), of("run"), of("done")), (1, 1, 8, 8), "{events:#?}");
    // Eight runs of 0.6 s, and a rate for each half second of them.
    assert!(of("rates") >= 8, "{events:#?}");
    let rate = events.iter().find(|event| event["event"] == "rates").unwrap();
    assert!(rate["forwarded_pps"].as_f64().unwrap() > 0.0, "{rate}");
    assert!(!server.get("/").body.contains("href=\"/live/x\""), "it has ended");
}

/// A proxy for a server that makes a browser wait: it dumps a page when everything is loaded, and
/// this adds a late picture to each page. Returns its address.
fn with_late_picture(server: &Server) -> String {
    const LATE: Duration = Duration::from_secs(3);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address").to_string();
    let behind = server.at.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let behind = behind.clone();
            std::thread::spawn(move || pass(stream, &behind, LATE));
        }
    });
    at
}

/// Passes one request on. The browser shows any failure.
fn pass(mut browser: TcpStream, behind: &str, late: Duration) -> std::io::Result<()> {
    let mut lines = BufReader::new(browser.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or("/").to_owned();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    if path == "/late" {
        std::thread::sleep(late);
        return browser.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    }
    let mut server = TcpStream::connect(behind)?;
    write!(server, "GET {path} HTTP/1.1\r\nHost: {behind}\r\nConnection: close\r\n\r\n")?;
    if !path.starts_with("/live/") {
        return std::io::copy(&mut server, &mut browser).map(drop);
    }
    let mut page = String::new();
    server.read_to_string(&mut page)?;
    let (head, body) = page.split_once("\r\n\r\n").unwrap_or_default();
    let policy = head.lines().find(|line| line.starts_with("Content-Security-Policy"));
    let body = body.replace("</body>", "<img src=\"/late\"></body>");
    write!(
        browser,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{}\r\nConnection: close\r\n\r\n{body}",
        policy.unwrap_or_default()
    )
}

#[test]
fn live_page_shows_every_run_in_a_browser() {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let works = |program: &&str| {
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    let Some(browser) = browsers.into_iter().find(works) else {
        return fwdlab_testdata::skip("no browser here (apt-get install chromium)");
    };
    let lab = measured();
    let server = Server::start(&lab, "127.0.0.1:0");
    let at = with_late_picture(&server);
    for width in [1400, 400] {
        let dom = Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .arg(format!("--user-data-dir={}", lab.path(&format!("profile-{width}")).display()))
            .arg(format!("--window-size={width},900"))
            .arg("--dump-dom")
            .arg(format!("http://{at}/live/x"))
            .stderr(Stdio::null())
            .output()
            .expect("the browser starts");
        let dom = String::from_utf8_lossy(&dom.stdout).into_owned();
        // From the events, and without a fault of the script.
        assert!(dom.contains("id=\"state\">ended<"), "{width}: {dom}");
        assert!(dom.contains("8 of 8 runs"), "{width}: {dom}");
        assert_eq!(dom.matches("<i class=\"done").count(), 8, "{width}: {dom}");
        assert_eq!(dom.matches("<circle").count(), 8, "{width}: {dom}");
    }
}
