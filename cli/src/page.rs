//! `page` and `run --show`: a link that opens the live page of a running master in a browser.

use crate::flags::MasterFlags;
use crate::settings::Settings;
use crate::terminal::stdout_line;
use clap::Args;
use gristmill_runtime::client::Client;
use gristmill_runtime::exit;
use gristmill_worker::http::Endpoint;
use tokio::sync::{oneshot, watch};

/// Print a link to the live page of a running master
///
/// The page shows workers, jobs and what every slot does and did, and why. It only looks: nothing can be changed there.
/// The link opens it once, within ten minutes; a browser tab that is open stays so. Who may see the page may see what
/// `gristmill token new view` lets see.
#[derive(Args)]
pub struct PageCommand {
    #[command(flatten)]
    master: MasterFlags,
}

/// `gristmill page`.
pub fn page(settings: &Settings, flags: &PageCommand) -> anyhow::Result<u8> {
    let line = flags.master.join_line(settings)?;
    let client = Client::connect(&line)?;
    stdout_line(&link(&line.endpoint, &client.page_code()?))?;
    if line.endpoint.pin.is_some() {
        say!(
            "the master's key is its own: the browser asks whether to trust it, and cannot check it as workers do"
        );
    }
    Ok(exit::OK)
}

/// The link that opens the page of a master with a code.
pub fn link(endpoint: &Endpoint, code: &str) -> String {
    let scheme = if endpoint.pin.is_some() { "https" } else { "http" };
    let host = &endpoint.host;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    format!("{scheme}://{host}:{}/#enter={code}", endpoint.port)
}

/// Waits until a line, or the end, of standard input, or until somebody interrupts.
pub async fn wait_for_enter(mut interrupted: watch::Receiver<u32>) {
    let (pressed, entered) = oneshot::channel();
    // Reading cannot be given up: the thread ends with the process.
    let reading = std::thread::Builder::new().name("enter".to_owned()).spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        let _ = pressed.send(());
    });
    if reading.is_err() {
        return;
    }
    tokio::select! {
        _ = entered => {}
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
}
