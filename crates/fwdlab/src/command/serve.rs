//! `fwdlab serve`: stores as pages in a browser.

use crate::error::CliError;
use crate::exit::Exit;
use crate::serve::{self, Access, Site};
use crate::signal::Stop;
use crate::terminal;
use anyhow::Context;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

/// Show stores and the running experiment in a browser.
///
/// Lists every store below the directory, with its report, its flame graphs, and, while it is
/// measured, its runs as they arrive. Any two variants can be compared, and results can be followed
/// over revisions. It never writes anything. On an address other than loopback, it answers only
/// requests with the token of the printed URL; the connection is not encrypted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab serve                                 everything below results
  fwdlab serve results/archive
  fwdlab serve --listen 0.0.0.0:8080           for others, who need the token
  ssh -L 8080:127.0.0.1:8080 rack fwdlab serve the same without another open port")]
pub(crate) struct Arguments {
    /// Directory of the stores
    #[arg(value_name = "DIR", default_value = "results")]
    directory: PathBuf,
    /// Address to listen on: ADDRESS, PORT or ADDRESS:PORT; port 0 selects any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,
}

/// Serves the pages until Ctrl-C.
///
/// # Errors
/// If the directory does not exist, or the address can't be used.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Arguments { directory, listen } = arguments;
    if !directory.is_dir() {
        let what = format!(
            "{} is no directory\n  next step: name one with stores, or run an experiment first: \
             its store goes to results",
            directory.display()
        );
        return Err(CliError::Mistake(what).into());
    }
    let stop = Stop::on_signals().context("listening to signals")?;
    let listener = self::listen(*listen)?;
    let bound = listener.local_addr()?;
    let access = Access::at(bound.ip())?;
    terminal::print(&format!("http://{bound}/{}", access.query()))?;
    serve::serve(listener, Site::of(directory), access, &stop)?;
    Ok(Exit::Done)
}

/// Binds the address.
///
/// # Errors
/// An unmet requirement if the address can't be used.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).map_err(|error| {
        CliError::Environment(format!(
            "can't listen on {address}: {error}\n  next step: choose another with --listen, e.g. \
             --listen 127.0.0.1:0 for any free port"
        ))
    })
}

/// Parses an address, a port, or both.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    const PORT: u16 = 8080;
    if let Ok(port) = text.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok((ip, PORT).into());
    }
    text.replace("localhost", "127.0.0.1").parse().map_err(|_| {
        "write an address with a port, e.g. 127.0.0.1:8080, or a port alone".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_accepts_a_missing_address_or_port() {
        let read = |text| address(text).map(|address| address.to_string());
        assert_eq!(read("9000").unwrap(), "127.0.0.1:9000");
        assert_eq!(read("0.0.0.0").unwrap(), "0.0.0.0:8080");
        assert_eq!(read("[::1]:1").unwrap(), "[::1]:1");
        assert_eq!(read("::1").unwrap(), "[::1]:8080");
        assert_eq!(read("localhost:0").unwrap(), "127.0.0.1:0");
        for wrong in ["", "host", "1.2.3:4", "70000"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
