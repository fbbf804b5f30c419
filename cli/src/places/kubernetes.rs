//! Master and workers in pods of Kubernetes: `deploy/kubernetes.yaml` filled in, and the secrets that it names.
//!
//! `kubectl create -f -` starts the cluster, and `kubectl delete` with its label ends it.

use super::TOKEN_LABEL;
use super::flags::UpCommand;
use crate::terminal::stdout_line;
use crate::usage::usage;
use anyhow::Context as _;
use clap::Args;
use gristmill_runtime::api::Role;
use gristmill_runtime::exit;
use gristmill_runtime::master::tokens::Tokens;
use gristmill_worker::http::{Endpoint, Identity, JoinLine, Plaintext, make_private_directory};
use gristmill_worker::whole_file::{self, Promise};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

/// The manifests, with variables between `@`.
const MANIFESTS: &str = include_str!("../../../deploy/kubernetes.yaml");

/// Port of the master.
const PORT: u16 = 7070;

/// Ports of workers, one for each process of a pod; the network policy allows them.
const WORKER_PORTS: (u16, u16) = (7100, 8099);

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
/// A terminal, on which secrets are not printed, or as [`manifests`].
pub fn up(flags: &UpCommand, state: &Path) -> anyhow::Result<u8> {
    let manifests = manifests(flags)?;
    if !flags.print {
        if std::io::stdout().is_terminal() {
            let what = "this prints the cluster's secrets: pipe it to `kubectl create -f -`, or leave them out with --print";
            return Err(usage(what.to_owned()));
        }
        let folder = state.join(&flags.name);
        make_private_directory(state)?;
        make_private_directory(&folder)?;
        let secrets = secrets(flags, &folder);
        fs::remove_dir_all(&folder)?;
        stdout_line(&secrets?)?;
        stdout_line(&"---")?;
    }
    stdout_line(&manifests.trim_end())?;
    Ok(exit::OK)
}

/// Returns the manifests, without secrets.
///
/// # Errors
/// No image.
fn manifests(flags: &UpCommand) -> anyhow::Result<String> {
    let Some(image) = &flags.image else {
        return Err(usage("--on kubernetes needs --image, with gristmill in it".to_owned()));
    };
    let mut master = words(&["master", "--state", "/state/gristmill", "--listen-everywhere"]);
    master.extend(["--listen".to_owned(), format!("0.0.0.0:{PORT}"), "--allow-host".to_owned(), host(flags)]);
    flags.add_master_flags(&mut master);
    let workers = flags.workers_per_host.unwrap_or(1);
    let (first, last) = WORKER_PORTS;
    let mut worker = words(&["worker", "--join", "/join/gristmill/join"]);
    worker.extend(["--listen".to_owned(), format!("$(POD_IP):{first}-{last}")]);
    worker.extend(flags.worker_words(Some(workers)));
    Ok(filled(&[
        ("NAME", flags.name.clone()),
        ("NAMESPACE", flags.namespace.clone()),
        ("IMAGE", quoted(image)),
        ("MEMORY", quoted(&flags.pod_memory)),
        ("PROGRAM", quoted(flags.program().unwrap_or("/gristmill"))),
        ("PORT", PORT.to_string()),
        ("FIRST", first.to_string()),
        ("LAST", last.to_string()),
        ("NODES", flags.nodes.to_string()),
        ("PROCESSORS", workers.to_string()),
        ("MASTER", listed(&master)),
        ("WORKER", listed(&worker)),
    ]))
}

/// Fills in the variables in one pass, so that values are not searched for variables.
fn filled(values: &[(&str, String)]) -> String {
    let mut pieces = MANIFESTS.split('@');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    while let (Some(key), Some(rest)) = (pieces.next(), pieces.next()) {
        let value = values.iter().find(|(known, _)| *known == key);
        text.push_str(value.map_or("", |(_, value)| value));
        text.push_str(rest);
    }
    text
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The name by which pods find the master.
fn host(flags: &UpCommand) -> String {
    format!("{}-master.{}.svc", flags.name, flags.namespace)
}

/// Quotes a string of YAML, which takes those of JSON.
fn quoted(word: &str) -> String {
    Value::from(word).to_string()
}

fn listed(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ")
}

/// Creates identity and tokens in a state directory that is removed again, and returns them as Secrets in JSON.
fn secrets(flags: &UpCommand, folder: &Path) -> anyhow::Result<String> {
    let tokens = Tokens::of_state(folder)?;
    let identity = Identity::load_or_create(&folder.join("identity"), &[host(flags)])?;
    let endpoint = Endpoint { host: host(flags), port: PORT, pin: Some(identity.pin()) };
    let token = tokens.token(Role::Work, Some(TOKEN_LABEL))?;
    let join = JoinLine { endpoint, token, plaintext: Plaintext::default() }.to_text();
    let mut files = serde_json::Map::new();
    for file in SECRET_FILES {
        files.insert(file.to_owned(), fs::read_to_string(folder.join(file))?.into());
    }
    let secret = |part: &str, data: Value| {
        let labels = json!({"app.kubernetes.io/name": "gristmill", "app.kubernetes.io/instance": flags.name});
        let name = format!("{}-{part}", flags.name);
        let metadata = json!({"name": name, "namespace": flags.namespace, "labels": labels});
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
        manifests(&UpCommand::from_arg_matches(&matches)?)
    }

    #[test]
    fn manifests_are_filled_in_once_and_hold_no_secret() {
        let memory = ["--nodes", "3", "--namespace", "batch", "--memory", "a\"b @NAME@"];
        let text = text(&[&["--image", "registry.example/gristmill:1"], &memory[..]].concat()).unwrap();
        assert!(text.contains(r#"args: ["master", "--state", "/state/gristmill""#), "{text}");
        assert!(
            text.contains(r#""--workers", "1", "--memory", "a\"b @NAME@"]"#),
            "values are not filled in: {text}"
        );
        assert_eq!(text.matches('@').count(), 2, "and nothing else is left to fill in");
        assert!(text.contains("replicas: 3") && text.contains("namespace: batch"));
        assert!(!text.contains("gm1:") && !text.contains("kind: Secret"));
    }
}
