//! A running experiment: the server follows its event file and never writes it.

use super::address::{encoded, escaped};
use super::places::ServedStore;
use crate::events;
use crate::progress::figure;
use fwdlab_results::report::analysis::{RunResult, rated};
use fwdlab_results::store::Store;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Polling interval for new events.
const LOOK: Duration = Duration::from_millis(500);
/// Maximum interval between two messages, so that a departed viewer is noticed.
const SILENCE: Duration = Duration::from_secs(10);
/// Amount sent of an old session: the runs are in the store, and rates of hours ago are not drawn.
const TAIL: u64 = 512 * 1024;
const SCRIPT: &str = include_str!("live.js");

/// True while the process that writes the file exists and has not ended its session.
pub(super) fn is_running(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let mut first = String::new();
    let begun = BufReader::new(&file).read_line(&mut first).is_ok();
    let end = last_line(file).unwrap_or_default();
    begun && !is_end(&end) && writer(&first).is_some_and(is_alive)
}

/// The process ID in the first event.
fn writer(first: &str) -> Option<u64> {
    serde_json::from_str::<Value>(first).ok()?["pid"].as_u64()
}

fn is_alive(pid: u64) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn is_end(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|event| event["event"] == "end")
}

fn last_line(mut file: File) -> io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(4096)))?;
    let mut last = String::new();
    for line in BufReader::new(file).lines() {
        last = line?;
    }
    Ok(last)
}

/// A followed file.
struct FollowedFile {
    inode: u64,
    reader: BufReader<File>,
    /// The process that writes it, once known.
    pid: Option<u64>,
}

/// Sends the contents of the file, then new events, as server-sent events (WHATWG HTML, section
/// 9.2), and starts again when another session begins. Returns when the viewer has left.
pub(super) fn follow(path: &Path, viewer: &mut dyn Write) -> io::Result<()> {
    let mut following: Option<FollowedFile> = None;
    let mut sent = Instant::now();
    let mut is_told_gone = false;
    loop {
        let there = std::fs::metadata(path).ok().map(|metadata| metadata.ino());
        if there.is_some() && there != following.as_ref().map(|followed| followed.inode) {
            following = open(path)?;
            is_told_gone = false;
            send(viewer, "{\"event\":\"reset\"}")?;
        }
        let mut is_new = false;
        if let Some(FollowedFile { reader, pid, .. }) = &mut following {
            let mut line = String::new();
            while let Some(event) = next(reader, &mut line)? {
                *pid = pid.or_else(|| writer(event));
                is_told_gone |= is_end(event);
                send(viewer, event)?;
                is_new = true;
            }
            if !is_new && !is_told_gone && pid.is_some_and(|pid| !is_alive(pid)) {
                send(viewer, "{\"event\":\"gone\"}")?;
                (is_told_gone, is_new) = (true, true);
            }
        }
        if !is_new && sent.elapsed() >= SILENCE {
            viewer.write_all(b": still here\n\n")?;
            is_new = true;
        }
        if is_new {
            viewer.flush()?;
            sent = Instant::now();
        }
        std::thread::sleep(LOOK);
    }
}

/// Opens the file: all of a short one, the first line and the end of a long one.
fn open(path: &Path) -> io::Result<Option<FollowedFile>> {
    let Ok(file) = File::open(path) else { return Ok(None) };
    let metadata = file.metadata()?;
    let mut reader = BufReader::new(file);
    let mut pid = None;
    if metadata.len() > TAIL {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        pid = writer(&line);
        reader.seek(SeekFrom::Start(metadata.len() - TAIL))?;
        // The rest of a line that began before.
        reader.read_line(&mut line)?;
    }
    Ok(Some(FollowedFile { inode: metadata.ino(), reader, pid }))
}

/// The next line, once it is complete.
fn next<'l>(reader: &mut BufReader<File>, line: &'l mut String) -> io::Result<Option<&'l str>> {
    line.clear();
    let read = reader.read_line(line)?;
    if line.ends_with('\n') {
        return Ok(Some(line.trim_end()));
    }
    reader.seek_relative(-(read as i64))?;
    Ok(None)
}

fn send(viewer: &mut dyn Write, event: &str) -> io::Result<()> {
    write!(viewer, "data: {event}\n\n")
}

/// Title and body of the page that follows the experiment: the plan and the stored runs, and a
/// script that adds the events.
///
/// # Errors
/// Fails if the store cannot be read, with the reason.
pub(super) fn page(found: &ServedStore) -> Result<(String, String), String> {
    let contents = Store::open_read_only(&found.path).and_then(|store| store.contents());
    let contents = contents.map_err(|error| error.to_string())?;
    let plan = &contents.plan;
    let labels: Vec<&str> = plan.variants.iter().map(|variant| variant.label.as_str()).collect();
    let runs: Vec<Value> = plan
        .runs
        .iter()
        .map(|run| json!({ "run": run.index, "block": run.block, "variant": run.variants[0] }))
        .collect();
    // The numbers of the report, which counts all runs.
    let (results, _) = rated(&contents);
    let done: Vec<Value> = contents
        .runs
        .iter()
        .map(|record| {
            let result = results.iter().find(|result| result.run == record.run);
            events::done(record, result.and_then(RunResult::value), &figure(plan, record))
        })
        .collect();
    let unit = if plan.metric().is_rate() { "pps" } else { "instructions per packet" };
    let data = json!({
        "variants": labels, "runs": runs, "done": done, "unit": unit,
        "events": format!("/events/{}", encoded(&found.place)),
    });
    // Data in a script element must not end it.
    let data = data.to_string().replace('<', "\\u003c");
    let place = encoded(&found.place);
    let what = escaped(plan.metric().description());
    let body = format!(
        "<p class=\"now\"><span class=\"state\" id=\"state\">not connected</span> <span \
         id=\"doing\"></span> <span id=\"progress\"></span> <span id=\"rates\"></span></p>\n\
         <div class=\"chart\" id=\"course\"></div>\n\
         <p>Dashed: offered; solid: forwarded. Packets per second, over the last two minutes.</p>\n\
         <h2>Order of runs</h2>\n<div class=\"order\" id=\"order\"></div>\n\
         <p>Filled: stored; !: stored with a doubt; framed: under way.</p>\n\
         <h2>Runs so far</h2>\n<div class=\"chart\" id=\"runs\"></div>\n\
         <p>Each point is a run by the number that the report has for it: {what}. Triangles: runs \
         with a doubt. Verdicts are in the <a href=\"/store/{place}/\">report</a>; looking here \
         before the last run decides nothing.</p>\n\
         <h2>Doubts</h2>\n<ul class=\"told\" id=\"doubts\"></ul>\n\
         <h2>Remarks</h2>\n<ul class=\"told\" id=\"told\"></ul>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>"
    );
    Ok((format!("{}: runs as they come", plan.title), body))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A viewer who leaves after a number of events.
    struct Viewer {
        seen: Vec<String>,
        stays: usize,
    }

    impl Write for Viewer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.seen.len() >= self.stays {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.seen.push(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        // Makes every event a single write, whatever its parts are.
        fn write_fmt(&mut self, arguments: std::fmt::Arguments<'_>) -> io::Result<()> {
            self.write_all(arguments.to_string().as_bytes())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn seen(path: &Path, stays: usize) -> Vec<String> {
        let mut viewer = Viewer { seen: Vec::new(), stays };
        assert!(follow(path, &mut viewer).is_err(), "ends when the viewer has left");
        viewer.seen.iter().map(|event| event.trim_start_matches("data: ").trim().into()).collect()
    }

    fn begin(pid: u32) -> String {
        format!("{{\"event\":\"begin\",\"pid\":{pid}}}")
    }

    #[test]
    fn follow_sends_the_session_and_then_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = &directory.path().join("live.jsonl");
        let first = begin(std::process::id());
        std::fs::write(path, format!("{first}\n{{\"event\":\"step\"}}\n{{\"event\":")).unwrap();
        assert!(is_running(path));
        let next = std::thread::scope(|scope| {
            let viewer = scope.spawn(|| seen(path, 6));
            std::thread::sleep(2 * LOOK);
            let mut file = File::options().append(true).open(path).unwrap();
            file.write_all(b"\"end\"}\n").unwrap();
            std::thread::sleep(2 * LOOK);
            assert!(!is_running(path), "it has ended");
            std::fs::rename(path, directory.path().join("old")).unwrap();
            std::fs::write(path, format!("{first}\n")).unwrap();
            viewer.join().unwrap()
        });
        let reset = "{\"event\":\"reset\"}";
        let step = "{\"event\":\"step\"}";
        assert_eq!(next, [reset, &first, step, "{\"event\":\"end\"}", reset, &first]);
    }

    #[test]
    fn is_running_detects_a_dead_writer() {
        let directory = tempfile::tempdir().unwrap();
        let path = &directory.path().join("live.jsonl");
        assert!(!is_running(path), "there is no file");
        // Above the maximum process ID.
        let gone = begin(4_194_305);
        std::fs::write(path, format!("{gone}\n")).unwrap();
        assert!(!is_running(path));
        assert_eq!(seen(path, 3), ["{\"event\":\"reset\"}", &gone, "{\"event\":\"gone\"}"]);
    }

    #[test]
    fn follow_sends_the_end_of_a_long_session() {
        let directory = tempfile::tempdir().unwrap();
        let path = &directory.path().join("live.jsonl");
        let filler: String =
            (0..40_000).map(|n| format!("{{\"event\":\"rates\",\"n\":{n}}}\n")).collect();
        std::fs::write(path, format!("{}\n{filler}", begin(1))).unwrap();
        let first = &seen(path, 2)[1];
        let number = serde_json::from_str::<Value>(first).unwrap()["n"].as_u64().unwrap();
        assert!((1_000..39_000).contains(&number), "{first}");
    }
}
