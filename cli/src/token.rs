//! `cluster token`: creates, revokes and rotates tokens of a running master.
//!
//! See `http::Token` for tokens and `master::tokens` for their rights.

use crate::flags::MasterFlags;
use crate::settings::Settings;
use crate::terminal::{stdout_json, stdout_line};
use crate::text_table::table;
use crate::usage::usage;
use clap::{Args, Subcommand};
use gristmill_runtime::api::{Quota, Role, TokenList};
use gristmill_runtime::client::Client;
use gristmill_runtime::exit;
use gristmill_runtime::size::parse_bytes;
use gristmill_worker::http::{JoinLine, Key};
use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Create, revoke or rotate access tokens
///
/// Each token may do what its role says: view sees all, submit also submits and cancels jobs, work joins as a worker, and
/// admin may do everything. The line in the state directory holds an admin token.
#[derive(Args)]
#[command(after_help = "\
Examples:
  gristmill cluster token new work --label laptop --output laptop.join
  gristmill cluster token new view --output page.join
  gristmill cluster token new submit --label ada --jobs 2 --slots 4 --disk 1GiB --output ada.join
  gristmill cluster token list
  gristmill cluster token revoke work-laptop@0
  gristmill cluster token rotate --grace 600")]
pub struct TokenCommand {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    master: MasterFlags,
}

#[derive(Subcommand)]
enum Action {
    /// Create a token and write the join line with it
    New {
        /// Role of the token
        role: Role,
        /// Part of its name, with which it can be revoked: lower-case letters, digits, hyphens
        #[arg(long, value_name = "WORD")]
        label: Option<String>,
        #[command(flatten)]
        quota: QuotaFlags,
        /// File for the join line, created with mode 0600, or - for stdout [default: stdout, if that is a terminal]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Print the join line on stdout even if that is not a terminal: its readers have the token
        #[arg(long)]
        print_join: bool,
    },
    /// List tokens that were created, used since the master started, or revoked
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token: workers that joined with it, and jobs that are followed with it, are lost
    Revoke {
        /// Its name, such as work-laptop@0
        name: String,
    },
    /// Replace all tokens, and the join line in the state directory
    Rotate {
        /// Time for which the previous tokens are still accepted
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        grace: u64,
    },
}

/// Limits of the jobs submitted with a token, together.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Quota of a token that submits")]
struct QuotaFlags {
    /// Maximum live jobs; more are rejected. Creating a token of the same label again changes its quota
    #[arg(long, value_name = "N")]
    jobs: Option<u32>,
    /// Maximum slots at once, whatever the policy
    #[arg(long, value_name = "N")]
    slots: Option<u32>,
    /// Maximum bytes of live jobs: map outputs and parts being built
    #[arg(long, value_name = "SIZE")]
    disk: Option<String>,
    /// Remove the limits
    #[arg(long, conflicts_with_all = ["jobs", "slots", "disk"])]
    no_quota: bool,
}

impl QuotaFlags {
    /// Quota as typed; `None` if none was.
    fn quota(&self) -> anyhow::Result<Option<Quota>> {
        let disk = self.disk.as_deref().map(parse_bytes).transpose();
        let disk_bytes_max = disk.map_err(|error| usage(format!("--disk: {error}")))?;
        let quota = Quota { jobs_max: self.jobs, slots_max: self.slots, disk_bytes_max };
        Ok((self.no_quota || !quota.is_none()).then_some(quota))
    }
}

/// `gristmill cluster token`.
pub fn token(settings: &Settings, flags: &TokenCommand) -> anyhow::Result<u8> {
    let line = flags.master.join_line(settings)?;
    let client = Client::connect(&line)?;
    let requests = client.requests();
    match &flags.action {
        Action::New { role, label, quota, output, print_join } => {
            let output = output.as_deref().filter(|path| path.as_os_str() != "-");
            if output.is_none() && !print_join && !std::io::stdout().is_terminal() {
                return Err(usage(
                    "a token is a secret, and stdout is not a terminal: name a file with --output, or add --print-join"
                        .to_owned(),
                ));
            }
            let token = client.block_on(requests.new_token(*role, label.as_deref(), quota.quota()?))?;
            let name = token.name().to_owned();
            let text = JoinLine { token, ..line }.to_text();
            match output {
                Some(path) => write_new(path, &text)?,
                None => stdout_line(&*text)?,
            }
            say!("created {name}; `gristmill cluster token revoke {name}` revokes it");
        }
        Action::List { json: true } => stdout_json(&client.block_on(requests.tokens())?)?,
        Action::List { json: false } => stdout_line(&listed(&client.block_on(requests.tokens())?))?,
        Action::Revoke { name } => client.block_on(requests.revoke_token(name))?,
        Action::Rotate { grace } => client.block_on(requests.rotate_tokens(Duration::from_secs(*grace)))?,
    }
    Ok(exit::OK)
}

fn listed(list: &TokenList) -> String {
    let rows = list.tokens.iter().map(|token| {
        let quota = token.quota.unwrap_or_default();
        let number = |most: Option<u64>| most.map_or_else(|| "-".to_owned(), |most| most.to_string());
        [
            token.name.clone(),
            if token.holds { "valid" } else { "ended" }.to_owned(),
            token.seen_seconds_ago.map_or_else(|| "-".to_owned(), |ago| format!("{ago} s ago")),
            number(quota.jobs_max.map(u64::from)),
            number(quota.slots_max.map(u64::from)),
            number(quota.disk_bytes_max),
        ]
    });
    table(&["NAME", "STATE", "USED", "JOBS", "SLOTS", "DISK"], rows)
}

/// Creates a file that only its owner may read; an existing one is left unchanged.
fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = made.and_then(|mut file| writeln!(file, "{text}"));
    written.map_err(|source| {
        anyhow::Error::new(source).context(format!("could not write the join line to {}", path.display()))
    })
}
