//! `cluster page` and `run --show`: a link that opens the live page of a running master in a browser.

use crate::flags::MasterFlags;
use crate::settings::Settings;
use crate::terminal::stdout_line;
use crate::usage::usage;
use clap::Args;
use gristmill_runtime::api::Role;
use gristmill_runtime::client::Client;
use gristmill_runtime::exit;
use gristmill_worker::http::Endpoint;
use std::net::IpAddr;
use tokio::sync::{oneshot, watch};

/// Print a link to the live page of a running master
///
/// The page shows workers, jobs and what every slot does and did, and why. It only looks, unless the link was made with
/// --may-cancel. The link opens it once, within ten minutes; a browser tab that is open stays so. Who may see the page
/// may see what `gristmill cluster token new view` lets see.
#[derive(Args)]
pub struct PageCommand {
    /// Allow cancelling jobs there: the tab gets a token of the role `submit`, so open it where you would keep one
    #[arg(long)]
    may_cancel: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// `gristmill cluster page`.
pub fn page(settings: &Settings, flags: &PageCommand) -> anyhow::Result<u8> {
    let line = flags.master.join_line(settings)?;
    if flags.may_cancel && line.endpoint.pin.is_none() && !is_here(&line.endpoint) {
        return Err(usage(format!(
            "a page that may cancel jobs is not opened over plain HTTP: on the route to {} anyone could read its token and \
             run code on the workers; use `gristmill job cancel JOB`, or start the master without --insecure-plaintext",
            line.endpoint
        )));
    }
    let client = Client::connect(&line)?;
    let role = if flags.may_cancel { Role::Submit } else { Role::View };
    let code = client.block_on(client.requests().page_code(role))?;
    stdout_line(&link(&line.endpoint, &code))?;
    if line.endpoint.pin.is_some() {
        say!("the master has a self-signed certificate: the browser asks whether to trust it");
    }
    Ok(exit::OK)
}

/// True if a master is reached without a network.
fn is_here(endpoint: &Endpoint) -> bool {
    let literal = endpoint.host.parse().is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback());
    literal || endpoint.host == "localhost"
}

/// The link that opens the page of a master with a code.
pub fn link(endpoint: &Endpoint, code: &str) -> String {
    let scheme = if endpoint.pin.is_some() { "https" } else { "http" };
    let host = &endpoint.host;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    format!("{scheme}://{host}:{}/#enter={code}", endpoint.port)
}

/// Waits for a line or the end of standard input, or for an interruption.
pub async fn wait_for_enter(mut interrupted: watch::Receiver<u32>) {
    let (pressed, entered) = oneshot::channel();
    // Reading cannot be aborted: the thread ends with the process.
    let reading = std::thread::Builder::new().name("enter".to_owned()).spawn(move || {
        let read = std::io::stdin().read_line(&mut String::new());
        let _ = pressed.send(matches!(read, Ok(0)));
    });
    if reading.is_err() {
        return;
    }
    tokio::select! {
        at_end = entered => if at_end == Ok(true) {
            say!("standard input has ended, so the page ends; from a terminal it stays");
        },
        _ = interrupted.wait_for(|count| 0 < *count) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_names_the_master_and_keeps_the_code_where_browsers_do_not_send_it() {
        let endpoint = |host: &str| Endpoint { host: host.to_owned(), port: 7070, pin: None };
        assert_eq!(link(&endpoint("127.0.0.1"), "abc"), "http://127.0.0.1:7070/#enter=abc");
        assert_eq!(link(&endpoint("::1"), "abc"), "http://[::1]:7070/#enter=abc");
    }

    #[test]
    fn master_is_here_by_loopback_alone() {
        for (host, here) in [
            ("127.0.0.1", true),
            ("127.8.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("localhost", true),
            ("192.0.2.1", false),
            ("localhost.example", false),
            ("0.0.0.0", false),
        ] {
            let endpoint = Endpoint { host: host.to_owned(), port: 7070, pin: None };
            assert_eq!(is_here(&endpoint), here, "{host}");
        }
    }
}
