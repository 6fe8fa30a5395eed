//! Pages: the documents that the commands print, with links between them.

use super::address::{Address, encoded, escaped};
use super::live;
use super::places::{self, ServedStore, all};
use crate::stores;
use fwdlab_results::catalogue::Entry;
use fwdlab_results::compare::{self, Question};
use fwdlab_results::document::form::html;
use fwdlab_results::document::{Block, Document};
use fwdlab_results::facts::Filter;
use fwdlab_results::history::Collector;
use fwdlab_results::report::{self, Analysis, ReportFile};
use fwdlab_results::short_names;
use fwdlab_results::store::Store;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Number of cached reports: a page and the pictures that it requests come from one.
const KEPT: usize = 4;

/// The answer to a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// A page or a file.
    Page { status: u16, kind: &'static str, body: Vec<u8>, location: Option<String> },
    /// The stream of events written to this file.
    Events(PathBuf),
}

impl Answer {
    pub(super) fn text(status: u16, text: &str) -> Answer {
        let body = format!("{text}\n").into_bytes();
        Answer::Page { status, kind: "text/plain; charset=utf-8", body, location: None }
    }

    pub(super) fn redirect(to: &str) -> Answer {
        let kind = "text/plain; charset=utf-8";
        Answer::Page { status: 303, kind, body: Vec::new(), location: Some(to.to_owned()) }
    }

    fn page(html: String) -> Answer {
        let kind = "text/html; charset=utf-8";
        Answer::Page { status: 200, kind, body: html.into_bytes(), location: None }
    }

    fn missing() -> Answer {
        Answer::text(404, "there is no such page; all experiments are listed at /")
    }
}

/// All pages of the stores below a directory.
pub(crate) struct Site {
    root: PathBuf,
    cache: Mutex<Vec<CachedReport>>,
}

/// A cached report, with the stamp of its store.
struct CachedReport {
    path: PathBuf,
    stamp: Vec<Option<(SystemTime, u64)>>,
    files: Arc<Vec<ReportFile>>,
}

impl Site {
    pub(crate) fn of(root: &Path) -> Site {
        Site { root: root.to_owned(), cache: Mutex::default() }
    }

    /// The answer for an address.
    pub(super) fn answer(&self, address: &Address) -> Answer {
        let parts: Vec<&str> = address.parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            [] => self.index(address),
            ["compare"] => self.compare(address),
            ["flamegraphs"] => self.flamegraphs(address),
            ["history"] => self.history(address),
            [page @ ("store" | "live" | "events"), place, rest @ ..] => {
                match (places::at(&self.root, place), *page, rest) {
                    (None, ..) => Answer::missing(),
                    (Some(found), "events", []) => Answer::Events(found.live()),
                    (Some(found), "live", []) => self.watched(&found),
                    (Some(found), "store", _) => self.file(&found, &rest.join("/")),
                    _ => Answer::missing(),
                }
            }
            _ => Answer::missing(),
        }
    }

    /// All stores that match the query, newest first, and the running experiments.
    fn index(&self, address: &Address) -> Answer {
        const FIELDS: [&str; 5] = ["machine", "interface", "topic", "family", "firewall"];
        let found = all(&self.root);
        let paths: Vec<PathBuf> = found.iter().map(|found| found.path.clone()).collect();
        let value = |name| address.get(name).map(str::to_owned);
        let [machine, interface, topic, family, firewall] = FIELDS.map(value);
        let filter = Filter { machine, interface, topic, family, firewall };
        let words = address.get("words").unwrap_or("");
        let catalogue = stores::catalogue(&paths, &self.root, &filter, words);
        let link = |entry: &Entry| {
            let found = found.iter().find(|found| found.path == entry.path)?;
            Some(format!("/store/{}/", encoded(&found.place)))
        };
        let title = stores::title_of(&self.root);
        let document = catalogue.document(&title, &link);
        let running = found.iter().filter(|found| live::is_running(&found.live()));
        let running = running.map(|found| {
            let (place, name) = (encoded(&found.place), escaped(&found.place));
            format!("<p>Running: <a href=\"/live/{place}\">{name}</a></p>\n")
        });
        let form = FIELDS.into_iter().chain(["words"]).map(|name| {
            let value = escaped(address.get(name).unwrap_or(""));
            format!("<label>{name} <input name=\"{name}\" value=\"{value}\" size=\"8\"></label> ")
        });
        let form: String = form.collect();
        let empty = match found.is_empty() {
            true => "<p>No store lies below this directory yet.</p>\n",
            false => "",
        };
        let running: String = running.collect();
        with(&document, &format!("{running}{empty}<form>{form}<button>Show</button></form>\n"))
    }

    /// A file of a store's report; the page itself if `name` is empty.
    fn file(&self, found: &ServedStore, name: &str) -> Answer {
        let files = match self.files(found) {
            Ok(files) => files,
            Err(why) => return Answer::text(500, &why),
        };
        let name = if name.is_empty() { "index.html" } else { name };
        let Some(file) = files.iter().find(|file| file.name == name) else {
            return Answer::missing();
        };
        if name != "index.html" {
            let body = file.bytes.clone();
            return Answer::Page { status: 200, kind: kind(name), body, location: None };
        }
        let place = encoded(&found.place);
        let whole = encoded(&choice(&found.place, None));
        let more = format!(
            "<a href=\"/live/{place}\">Runs as they come</a> <a href=\"/compare?a={whole}&amp;\
             b={whole}\">Compare variants</a> <a href=\"/flamegraphs?a={place}&amp;b={place}\">\
             Flame graphs</a>"
        );
        Answer::page(framed(&String::from_utf8_lossy(&file.bytes), &more))
    }

    /// The files of a store's report, made again when the store has changed.
    fn files(&self, found: &ServedStore) -> Result<Arc<Vec<ReportFile>>, String> {
        let stamp_of = |suffix: &str| {
            let mut path = found.path.clone().into_os_string();
            path.push(suffix);
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        // New data goes to the log first.
        let stamp = vec![stamp_of(""), stamp_of("-wal")];
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = cache.iter().find(|kept| kept.path == found.path && kept.stamp == stamp)
        {
            return Ok(same.files.clone());
        }
        let store = Store::open_read_only(&found.path).and_then(|store| store.contents());
        let contents = store.map_err(|error| error.to_string())?;
        let analysis = Analysis::of(&contents);
        let files = report::files(&contents, &analysis).map_err(|error| error.to_string())?;
        let files = Arc::new(files);
        cache.retain(|kept| kept.path != found.path);
        cache.truncate(KEPT - 1);
        cache.insert(0, CachedReport { path: found.path.clone(), stamp, files: files.clone() });
        Ok(files)
    }

    /// Two stores or variants, chosen in one step.
    fn compare(&self, address: &Address) -> Answer {
        let stores = all(&self.root);
        let labels = stores::in_parallel(&stores, |found| variants(found).unwrap_or_default());
        let places: Vec<&str> = stores.iter().map(|found| found.place.as_str()).collect();
        let names = short_names(&places);
        let mut form = String::from("<form class=\"choice\">");
        let mut sides = Vec::new();
        for (name, side) in [("a", "baseline"), ("b", "candidate")] {
            let selection = address.get(name).unwrap_or("");
            form += &format!("<label>{side} <select name=\"{name}\">");
            for ((found, labels), short) in stores.iter().zip(&labels).zip(&names) {
                form += &format!("<optgroup label=\"{}\">", escaped(&found.place));
                let whole = std::iter::once(None).chain(labels.iter().map(Some));
                for label in whole {
                    let choice = choice(&found.place, label.map(String::as_str));
                    let is_selected = choice == selection;
                    let selected = if is_selected { " selected" } else { "" };
                    let shown = label.map_or("all variants", String::as_str);
                    form += &format!(
                        "<option value=\"{}\"{selected}>{}: {}</option>",
                        escaped(&choice),
                        escaped(short),
                        escaped(shown)
                    );
                    if is_selected {
                        sides.push((found, label, short));
                    }
                }
                form += "</optgroup>";
            }
            form += "</select></label> ";
        }
        form += "<button>Compare</button></form>";
        let [baseline, candidate] = sides.as_slice() else {
            return page("Compare stores or variants", Vec::new(), &form);
        };
        let mut arguments: Vec<String> = [baseline, candidate]
            .map(|(found, label, _)| {
                let directory = found.path.parent().unwrap_or(&found.path).display();
                label.map_or(directory.to_string(), |label| format!("{directory}:{label}"))
            })
            .into();
        // The same whole store on both sides: compare its variants as its plan requires.
        arguments.dedup();
        let question = Question { arguments, ..Default::default() };
        let blocks = match compare::compare(&question) {
            Ok(results) => {
                let document = results.document();
                document.conclusion.into_iter().chain(document.blocks).collect()
            }
            Err(why) => vec![Block::text(why.to_string())],
        };
        let side = |(found, label, short): &(&ServedStore, Option<&String>, &String)| match label {
            Some(label) => format!("{short}: {label}"),
            None if names.len() == 1 => found.place.clone(),
            None => (*short).clone(),
        };
        page(&format!("{} against {}", side(candidate), side(baseline)), blocks, &form)
    }

    /// Two flame graphs side by side.
    fn flamegraphs(&self, address: &Address) -> Answer {
        let graphs = |found: &ServedStore| {
            let files = self.files(found)?;
            let graphs = files.iter().filter(|file| file.name.ends_with(".svg"));
            let graphs = graphs.filter(|file| file.name.contains('/'));
            Ok(graphs.map(|file| file.name.clone()).collect())
        };
        let (ends, form) = match self.chosen(address, graphs) {
            Ok(chosen) => chosen,
            Err(why) => return Answer::text(500, &why),
        };
        let frames = ends.map_or(String::new(), |ends| {
            let frame = |(found, name): &(ServedStore, String)| {
                let parts: Vec<String> = name.split('/').map(encoded).collect();
                let to = format!("/store/{}/{}", encoded(&found.place), parts.join("/"));
                format!(
                    "<figure><figcaption><a href=\"{to}\">{}</a></figcaption>\
                     <iframe src=\"{to}\" title=\"{}\"></iframe></figure>",
                    escaped(name),
                    escaped(name)
                )
            };
            format!("<div class=\"pair\">{}</div>", ends.iter().map(frame).collect::<String>())
        });
        page("Flame graphs side by side", Vec::new(), &(form + &frames))
    }

    /// The history of the stores over revisions.
    fn history(&self, address: &Address) -> Answer {
        let mut collector = Collector::new();
        for found in all(&self.root) {
            if let Err(why) = collector.add_store(&found.path) {
                collector.leave_out(&why);
            }
        }
        if let Some(text) = address.get("series") {
            collector.keep_titles_with(text);
        }
        let history = collector.finish();
        let value = escaped(address.get("series").unwrap_or(""));
        let form = format!(
            "<form><label>only series with <input name=\"series\" value=\"{value}\"></label> \
             <button>Show</button></form>"
        );
        with(&history.document(true, false), &form)
    }

    /// The page that follows a running experiment.
    fn watched(&self, found: &ServedStore) -> Answer {
        match live::page(found) {
            Ok((title, body)) => page(&title, Vec::new(), &body),
            Err(why) => Answer::text(500, &why),
        }
    }

    /// Two stores and one item of each from `things`, and the form to choose others.
    #[allow(clippy::type_complexity)]
    fn chosen(
        &self,
        address: &Address,
        things: impl Fn(&ServedStore) -> Result<Vec<String>, String>,
    ) -> Result<(Option<[(ServedStore, String); 2]>, String), String> {
        let stores = all(&self.root);
        let mut form = String::from("<form class=\"choice\">");
        let mut ends = Vec::new();
        for (store_name, thing_name, side) in [("a", "av", "baseline"), ("b", "bv", "candidate")] {
            let selection = address.get(store_name).unwrap_or("");
            let found = stores.iter().find(|found| found.place == selection);
            form += &format!("<fieldset><legend>{side}</legend>");
            let places = stores.iter().map(|found| found.place.as_str());
            // With a script, the graphs of a store appear once it is chosen.
            form += &select(store_name, places, selection).replacen(
                "<select",
                "<select onchange=\"this.form.submit()\"",
                1,
            );
            if let Some(found) = found {
                let things = things(found)?;
                let selection = address.get(thing_name).unwrap_or("");
                form += &select(thing_name, things.iter().map(String::as_str), selection);
                if things.iter().any(|thing| thing == selection) {
                    ends.push((found.clone(), selection.to_owned()));
                }
            }
            form += "</fieldset>";
        }
        form += "<button>Show</button></form>";
        Ok((ends.try_into().ok(), form))
    }
}

/// A page with these parts, and the HTML `more` after its heading.
fn page(title: &str, blocks: Vec<Block>, more: &str) -> Answer {
    let (title, conclusion) = (title.to_owned(), Vec::new());
    with(&Document { title, conclusion, blocks, data: &Value::Null, version: 0 }, more)
}

/// A document as a page, and the HTML `more` after its heading.
fn with(document: &Document<'_>, more: &str) -> Answer {
    let html = html::render(document);
    Answer::page(framed(&html.replacen("</h1>\n", &format!("</h1>\n{more}\n"), 1), ""))
}

/// Labels of a store's variants.
fn variants(found: &ServedStore) -> Result<Vec<String>, String> {
    let plan = Store::open_read_only(&found.path).and_then(|store| store.plan());
    let plan = plan.map_err(|error| error.to_string())?;
    Ok(plan.variants.into_iter().map(|variant| variant.label).collect())
}

/// A store, or one variant of it, as the value of a form: labels contain no unencoded slash.
fn choice(place: &str, label: Option<&str>) -> String {
    match label {
        Some(label) => format!("{}/{}", encoded(place), encoded(label)),
        None => encoded(place),
    }
}

fn select<'a>(name: &str, values: impl Iterator<Item = &'a str>, selection: &str) -> String {
    let options = values.map(|value| {
        let selected = if value == selection { " selected" } else { "" };
        format!("<option{selected}>{}</option>", escaped(value))
    });
    let options: String = options.collect();
    format!("<select name=\"{name}\" aria-label=\"{name}\">{options}</select>")
}

/// The style sheet of every page.
const STYLE: &str = include_str!("site.css");

/// A page with navigation above it and `more` next to that.
fn framed(html: &str, more: &str) -> String {
    let nav = format!(
        "<style>{STYLE}</style><nav><a href=\"/\">Experiments</a> <a href=\"/compare\">Compare</a> \
         <a href=\"/history\">History</a> {more}</nav>\n"
    );
    html.replacen("<body>\n", &format!("<body>\n{nav}"), 1)
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json") => "application/json",
        Some("csv") => "text/csv; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}
