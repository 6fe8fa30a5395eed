//! `fwdlab serve`: pages of all stores below a directory, and of the running experiment.
//!
//! The server only reads. A store is opened read-only, a running experiment writes its events into
//! a file whether or not it is watched ([`crate::events`]), and this process yields to anything
//! that measures on the same machine. [`access`] decides about viewers, [`places`] finds the
//! stores, [`pages`] makes pages of the documents that the commands print, and [`live`] follows a
//! running experiment.

mod access;
mod address;
mod live;
mod pages;
mod places;

pub(crate) use access::Access;

use crate::signal::Stop;
use address::Address;
use pages::Answer;
pub(crate) use pages::Site;
use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
pub(crate) use tiny_http::Request;
use tiny_http::{Header, Method, Response, Server};

/// Polling interval for the user's order to stop.
const LOOK: Duration = Duration::from_millis(200);
/// Number of pages made simultaneously; the others wait. One, so that at most one CPU is in use.
const MAKERS: usize = 1;
/// Maximum number of simultaneous event streams: each is a sleeping thread.
const STREAMS_MAX: usize = 64;
/// Nothing is loaded from elsewhere, and no other site may frame it.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; \
                      script-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; frame-src 'self'; frame-ancestors 'self'; \
                      form-action 'self'; base-uri 'none'";

/// Answers requests until the user stops it.
///
/// # Errors
/// Fails if connections cannot be accepted.
pub(crate) fn serve(
    listener: TcpListener,
    site: Site,
    access: Access,
    stop: &Stop,
) -> io::Result<()> {
    give_way();
    let server = Server::from_listener(listener, None).map_err(io::Error::other)?;
    let (server, shared) = (Arc::new(server), Arc::new((site, access)));
    let ended = stop.clone();
    let makers: Vec<_> = (0..MAKERS)
        .map(|_| {
            let (server, shared, ended) = (server.clone(), shared.clone(), ended.clone());
            std::thread::spawn(move || {
                let streams = Arc::new(());
                while !ended.requested() {
                    match server.recv_timeout(LOOK) {
                        Ok(Some(request)) => answer(request, &shared.0, &shared.1, &streams),
                        Ok(None) => {}
                        Err(_) => std::thread::sleep(LOOK),
                    }
                }
            })
        })
        .collect();
    for maker in makers {
        maker.join().map_err(|_| io::Error::other("a thread that makes pages has ended"))?;
    }
    Ok(())
}

/// Lowers the priority of this process below everything else on this machine.
fn give_way() {
    // If that is not permitted, pages are served all the same.
    let _ = rustix::process::setpriority_process(None, 19);
}

fn answer(request: Request, site: &Site, access: &Access, streams: &Arc<()>) {
    let header = |name: &'static str| {
        let found = request.headers().iter().find(|header| header.field.equiv(name));
        found.map(|header| header.value.as_str().to_owned())
    };
    let address = Address::parse(request.url());
    let answer = match access.admits(header("Host"), header("Cookie"), &address) {
        access::Verdict::Refused(why) => Answer::text(403, why),
        // The token leaves the address bar, and with it the browser's history.
        access::Verdict::Welcome(cookie) => {
            return respond(request, Answer::redirect(&address.path_encoded()), Some(&cookie));
        }
        access::Verdict::Admitted if !matches!(request.method(), Method::Get | Method::Head) => {
            Answer::text(405, "this server is for reading only")
        }
        access::Verdict::Admitted => site.answer(&address),
    };
    if let Answer::Events(path) = answer {
        if Arc::strong_count(streams) > STREAMS_MAX {
            return respond(request, Answer::text(503, "too many simultaneous viewers"), None);
        }
        let counted = streams.clone();
        let spawned = std::thread::Builder::new().name("viewer".into()).spawn(move || {
            let _counted = counted;
            // The viewer has left.
            let _ = stream(request, &path);
        });
        drop(spawned);
        return;
    }
    respond(request, answer, None);
}

/// Sends the contents of the event file, and new events, until the viewer leaves.
fn stream(request: Request, path: &std::path::Path) -> io::Result<()> {
    let mut writer = request.into_writer();
    write!(
        writer,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\nretry: 2000\n\n"
    )?;
    // The viewer is connected, even if nothing happens yet.
    writer.flush()?;
    live::follow(path, &mut writer)
}

fn respond(request: Request, answer: Answer, cookie: Option<&str>) {
    let Answer::Page { status, kind, body, location } = answer else { return };
    let mut response = Response::from_data(body).with_status_code(status);
    let fixed = [
        ("Content-Type", kind),
        ("Content-Security-Policy", POLICY),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-store"),
    ];
    let more = [("Location", location.as_deref()), ("Set-Cookie", cookie)];
    let more = more.into_iter().filter_map(|(name, value)| Some((name, value?)));
    for (name, value) in fixed.into_iter().chain(more) {
        // All of them are ASCII: addresses are encoded.
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    // The viewer may have left.
    let _ = request.respond(response);
}
