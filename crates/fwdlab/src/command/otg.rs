//! `fwdlab otg`: an Open Traffic Generator over fwdlab's senders and receivers.

use crate::command::serve::{address, listen};
use crate::exit::Exit;
use crate::serve::{Access, Request};
use crate::signal::Stop;
use crate::terminal;
use crate::value_enum;
use anyhow::Context;
use fwdlab_model::settings::Engine;
use fwdlab_otg::{Answer, Generator, Host, Options};
use serde_json::json;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Duration;
use tiny_http::{Header, Method, Response, Server};

/// Interval of looking at flows that end by themselves.
const TICK: Duration = Duration::from_millis(5);
/// Maximum size of a request's body in bytes.
const BODY_MAX: u64 = 16 << 20;

/// Serve the Open Traffic Generator API (otg.dev) with fwdlab's sender and receiver.
///
/// A client such as snappi configures ports and flows, starts and stops them, and reads frames,
/// loss and latency. Ports are interfaces of this network namespace. Parts of the model that are not
/// supported are refused by their path; docs/GENERATORS.md lists the others. On an address other
/// than loopback, it answers only below the printed URL, which contains a token; the connection is
/// not encrypted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab otg
  ip netns exec tester fwdlab otg --listen 127.0.0.1:8443
  fwdlab otg --hops 0                      ports behind a switch
  python3 -c 'import snappi; snappi.api(location=\"http://127.0.0.1:8443\").get_version()'")]
pub(crate) struct Arguments {
    /// Address to listen on: ADDRESS, PORT or ADDRESS:PORT; port 0 selects any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443", value_parser = address)]
    listen: SocketAddr,
    /// Routers between two ports: each lowers the time to live of frames by 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    hops: u8,
    /// Engine of senders and receivers
    #[arg(long, value_parser = value_enum::any::<Engine>(), default_value_t = Engine::Auto)]
    engine: Engine,
}

/// Serves the API until Ctrl-C; traffic ends with it.
///
/// # Errors
/// If the address can't be used.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let stop = Stop::on_signals().context("listening to signals")?;
    let listener = listen(arguments.listen)?;
    let bound = listener.local_addr()?;
    let access = Access::at(bound.ip())?;
    terminal::print(&format!("http://{bound}{}", access.prefix()))?;
    let server = Server::from_listener(listener, None).map_err(io::Error::other)?;
    let options = Options { hops: arguments.hops, engine: arguments.engine };
    let mut generator = Generator::new(Box::new(Host), options);
    while !stop.requested() {
        match server.recv_timeout(TICK) {
            Ok(Some(request)) => answer(request, &mut generator, &access),
            Ok(None) => {}
            Err(_) => std::thread::sleep(TICK),
        }
        if let Err(error) = generator.tick() {
            terminal::warn(&error.to_string());
        }
    }
    Ok(Exit::Done)
}

fn answer(mut request: Request, generator: &mut Generator, access: &Access) {
    let found = answered(&mut request, generator, access);
    let Answer { status, body } = found.unwrap_or_else(|(status, why)| Answer {
        status,
        body: json!({ "code": status, "kind": "validation", "errors": [why] }),
    });
    let mut response = Response::from_data(body.to_string()).with_status_code(status);
    for (name, value) in [("Content-Type", "application/json"), ("Cache-Control", "no-store")] {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    // The client may have left.
    let _ = request.respond(response);
}

/// Answers a request, or returns status and reason of a refusal.
fn answered(
    request: &mut Request,
    generator: &mut Generator,
    access: &Access,
) -> Result<Answer, (u16, String)> {
    let header = |name: &'static str| {
        let found = request.headers().iter().find(|header| header.field.equiv(name));
        found.map(|header| header.value.as_str().to_owned())
    };
    let path =
        access.path_of(header("Host"), request.url()).map_err(|why| (403, why.to_owned()))?;
    // Pages of other sites can't send this type without permission.
    let is_json = header("Content-Type").is_some_and(|kind| kind.starts_with("application/json"));
    if *request.method() != Method::Get && !is_json {
        return Err((415, "send Content-Type: application/json".to_owned()));
    }
    let method = request.method().to_string();
    let mut body = Vec::new();
    let read = request.as_reader().take(BODY_MAX + 1).read_to_end(&mut body);
    if read.is_err() || body.len() as u64 > BODY_MAX {
        return Err((413, format!("the body is cut, or has more than {BODY_MAX} bytes")));
    }
    Ok(generator.answer(&method, &path, &body))
}
