//! Master and workers in pods of Kubernetes: `cli/src/places/kubernetes.yaml` filled in, and the secrets that it names.
//!
//! `kubectl create -f -` starts the cluster, and `kubectl delete` with its label ends it.

use super::call::TOKEN_LABEL;
use super::flags::UpCommand;
use crate::terminal::stdout_line;
use crate::usage::usage;
use anyhow::Context as _;
use clap::Args;
use gristmill_runtime::api::Role;
use gristmill_runtime::exit;
use gristmill_runtime::master::tokens::Tokens;
use gristmill_runtime::scratch::ScratchDirectory;
use gristmill_worker::http::{Endpoint, Identity, JoinLine, Plaintext, make_private_directory};
use gristmill_worker::whole_file::{self, Promise};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

/// The manifests, with variables between `@`.
const MANIFESTS: &str = include_str!("kubernetes.yaml");

/// Name by which pods of the namespace find the master, as in the manifests.
const HOST: &str = "gristmill-master";

/// Port of the master, as in the manifests.
const PORT: u16 = 7070;

/// Files of a state directory that make the master's identity.
const SECRET_FILES: [&str; 3] = ["secret", "tokens", "identity"];

/// Longest file of a secret, bytes.
const SECRET_BYTES_MAX: u64 = 64 << 10;

/// Copy the files of a mounted secret into a private directory
#[derive(Args)]
pub struct UnpackCommand {
    /// The mounted directory
    from: PathBuf,
    /// The private directory
    to: PathBuf,
}

/// `gristmill unpack`, in pods. Kubernetes mounts secrets as files of root that a group may read, and neither
/// master nor workers accept files that others can read. Existing files are kept, since a restarted master
/// has changed them.
pub fn unpack(flags: &UnpackCommand) -> anyhow::Result<u8> {
    make_private_directory(&flags.to)?;
    let failed = || format!("could not read {}", flags.from.display());
    for entry in fs::read_dir(&flags.from).with_context(failed)? {
        let name = entry?.file_name();
        // Kubernetes keeps its own files there.
        if !name.as_encoded_bytes().starts_with(b".") {
            let mut bytes = Vec::new();
            File::open(flags.from.join(&name))?.take(SECRET_BYTES_MAX).read_to_end(&mut bytes)?;
            whole_file::create(&flags.to.join(&name), Promise::Private, |file| file.write_all(&bytes))?;
        }
    }
    Ok(exit::OK)
}

/// Prints the manifests, and secrets that are new each time.
///
/// # Errors
/// A terminal, on which secrets are not printed, or an error of the file system.
pub fn up(flags: &UpCommand) -> anyhow::Result<u8> {
    let manifests = manifests(flags);
    if !flags.print {
        if std::io::stdout().is_terminal() {
            let what = "this prints the cluster's secrets: pipe it to `kubectl create -f -`, or leave them out with --print";
            return Err(usage(what.to_owned()));
        }
        stdout_line(&secrets(ScratchDirectory::new("secrets-")?.path())?)?;
        stdout_line(&"---")?;
    }
    stdout_line(&manifests.trim_end())?;
    Ok(exit::OK)
}

/// Returns the manifests, without secrets. Strings of YAML may be those of JSON.
fn manifests(flags: &UpCommand) -> String {
    let string = |text: &str| json!(text).to_string();
    let further =
        |words: &[String]| words.iter().map(|word| format!(", {}", string(word))).collect::<String>();
    let workers = flags.workers_per_host.unwrap_or(1).to_string();
    let values = [
        ("NODES", flags.nodes.to_string()),
        ("PROCESSORS", workers),
        ("IMAGE", string(flags.image.as_deref().unwrap_or_default())),
        ("MEMORY", string(&flags.pod_memory)),
        ("MASTER", further(&flags.master_flag)),
        ("WORKER", further(&flags.worker_flags)),
    ];
    // In one pass, so that values are not searched for variables.
    let mut pieces = MANIFESTS.split('@');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    while let (Some(name), Some(rest)) = (pieces.next(), pieces.next()) {
        text.extend(values.iter().filter(|(known, _)| *known == name).map(|(_, value)| value.as_str()));
        text.push_str(rest);
    }
    text
}

/// Creates identity and tokens in an empty private directory, and returns them as Secrets in JSON.
fn secrets(directory: &Path) -> anyhow::Result<String> {
    let tokens = Tokens::of_state(directory)?;
    let identity = Identity::load_or_create(&directory.join("identity"), &[HOST.to_owned()])?;
    let endpoint = Endpoint { host: HOST.to_owned(), port: PORT, pin: Some(identity.pin()) };
    let token = tokens.token(Role::Work, Some(TOKEN_LABEL))?;
    let join = JoinLine { endpoint, token, plaintext: Plaintext::default() }.to_text();
    let mut files = serde_json::Map::new();
    for file in SECRET_FILES {
        files.insert(file.to_owned(), fs::read_to_string(directory.join(file))?.into());
    }
    let secret = |part: &str, data: Value| {
        let labels =
            json!({"app.kubernetes.io/name": "gristmill", "app.kubernetes.io/instance": "gristmill"});
        let name = format!("gristmill-{part}");
        let metadata = json!({"name": name, "labels": labels});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "stringData": data})
    };
    let items = [secret("master", files.into()), secret("join", json!({ "join": *join }))];
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};

    fn text(words: &[&str]) -> anyhow::Result<String> {
        let typed = [&["up", "--on", "kubernetes"], words].concat();
        let matches = UpCommand::augment_args(Command::new("up")).try_get_matches_from(typed)?;
        Ok(manifests(&UpCommand::from_arg_matches(&matches)?))
    }

    #[test]
    fn manifests_are_filled_in_and_hold_no_secret() {
        let text =
            text(&["--image", "registry.example/gristmill:1", "--nodes", "3", "--", "--memory", "a\"b"]);
        let text = text.unwrap();
        assert!(text.contains(r#"--workers, "1", "--memory", "a\"b"]"#), "{text}");
        let other = super::tests::text(&["--image", "a@MEMORY@b", "--nodes", "1"]).unwrap();
        assert!(other.contains("image: \"a@MEMORY@b\""), "{other}");
        assert!(text.contains("replicas: 3") && !text.contains('@'), "{text}");
        assert!(!text.contains("gm1:") && !text.contains("kind: Secret"));
    }
}
