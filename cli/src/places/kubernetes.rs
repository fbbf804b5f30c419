//! Master and workers as pods: the manifests, the secrets that they name, and `kubectl`, which applies and deletes them.
//!
//! The key and the tokens are made here and go to Kubernetes as its Secrets, through the standard input of `kubectl`. What
//! is printed names them and holds none.

use super::PlaceError;
use super::record::KubernetesPlace;
use crate::usage::usage;
use gristmill_runtime::api::Role;
use gristmill_runtime::cluster::{Tool, ToolAnswer, ToolCall, ToolInput};
use gristmill_runtime::master::tokens::Tokens;
use gristmill_worker::http::{Endpoint, Identity, JoinLine, Plaintext, make_private_directory};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The manifests.
const MANIFESTS: &str = include_str!("kubernetes.yaml");

/// Where the master listens.
const PORT: u16 = 7070;

/// Where workers listen, one port for each process of a pod.
const WORKER_PORTS: (u16, u16) = (7100, 8099);

/// Label of the token with which workers join.
const TOKEN_LABEL: &str = "guests";

/// What of a state folder tells the master who it is.
const SECRET_FILES: [&str; 3] = ["secret", "tokens", "identity"];

/// How long `kubectl` may take.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// How long pods may take to be gone: workers leave within 90 s.
const GONE_MAX: Duration = Duration::from_secs(150);

/// What the manifests are made of.
pub struct Manifests<'a> {
    /// The cluster and its namespace.
    pub place: &'a KubernetesPlace,
    /// The image, in which the program is.
    pub image: &'a str,
    /// The program's file in it.
    pub program: &'a str,
    /// Pods of workers.
    pub nodes: u32,
    /// Worker processes of each.
    pub workers: u32,
    /// Memory of each pod, as Kubernetes writes it.
    pub memory: &'a str,
    /// Words for the master.
    pub master: Vec<String>,
    /// Words for the workers.
    pub worker: Vec<String>,
}

impl Manifests<'_> {
    /// The manifests.
    ///
    /// # Errors
    /// A name that Kubernetes does not take, or a text that would change what is around it.
    pub fn text(&self) -> anyhow::Result<String> {
        let KubernetesPlace { name, namespace } = self.place;
        for (what, text) in [("--name", name), ("--namespace", namespace)] {
            if !is_label(text) {
                return Err(usage(format!(
                    "{what} {text}: write lower-case letters, digits and hyphens, 40 at most"
                )));
            }
        }
        for (what, text) in [("--image", self.image), ("--pod-memory", self.memory)] {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"./_:@-".contains(&byte);
            if text.is_empty() || !text.bytes().all(plain) {
                return Err(usage(format!("{what} {text}: write letters, digits, . / _ : @ and - alone")));
            }
        }
        let mut master = words(&["master", "--state", "/state/gristmill", "--listen-everywhere"]);
        master.extend(["--listen".to_owned(), format!("0.0.0.0:{PORT}")]);
        master.extend(["--allow-host".to_owned(), host(self.place)]);
        master.extend(self.master.iter().cloned());
        let mut worker = words(&["worker", "--join", "/join/gristmill/join"]);
        let (first, last) = WORKER_PORTS;
        worker.extend(["--listen".to_owned(), format!("$(POD_IP):{first}-{last}")]);
        worker.extend(self.worker.iter().cloned());
        let values = [
            ("NAME", name.clone()),
            ("NAMESPACE", namespace.clone()),
            ("IMAGE", self.image.to_owned()),
            ("PROGRAM", quoted(self.program)),
            ("PORT", PORT.to_string()),
            ("FIRST", first.to_string()),
            ("LAST", last.to_string()),
            ("NODES", self.nodes.to_string()),
            ("PROCESSORS", self.workers.to_string()),
            ("MEMORY", self.memory.to_owned()),
            ("MASTER", listed(&master)),
            ("WORKER", listed(&worker)),
        ];
        // In one pass: what is put in is not looked at again.
        let mut pieces = MANIFESTS.split('@');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        while let (Some(key), Some(rest)) = (pieces.next(), pieces.next()) {
            let value = values.iter().find(|(known, _)| *known == key);
            text.push_str(value.map_or("", |(_, value)| value));
            text.push_str(rest);
        }
        Ok(text)
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The name by which pods find the master.
fn host(place: &KubernetesPlace) -> String {
    format!("{}-master.{}.svc", place.name, place.namespace)
}

fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends = text.bytes().next().zip(text.bytes().last());
    ends.is_some_and(|(first, last)| first.is_ascii_lowercase() && last != b'-')
        && text.len() <= 40
        && text.bytes().all(plain)
}

/// A string of YAML, which takes those of JSON.
fn quoted(word: &str) -> String {
    serde_json::Value::from(word).to_string()
}

fn listed(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ")
}

/// The secrets, as JSON that `kubectl` reads; made once in a folder of their own, which goes again.
fn secrets(place: &KubernetesPlace, state: &Path) -> anyhow::Result<Vec<u8>> {
    let folder = state.join(&place.name);
    make_private_directory(&folder)?;
    let made = || -> anyhow::Result<Vec<u8>> {
        let tokens = Tokens::of_state(&folder)?;
        let names = [host(place)];
        let identity = Identity::load_or_create(&folder.join("identity"), &names)?;
        let endpoint = Endpoint { host: host(place), port: PORT, pin: Some(identity.pin()) };
        let token = tokens.token(Role::Work, Some(TOKEN_LABEL))?;
        let join = JoinLine { endpoint, token, plaintext: Plaintext::default() }.to_text();
        let read = |file: &&str| anyhow::Ok(((*file).to_owned(), fs::read_to_string(folder.join(file))?));
        let files = SECRET_FILES.iter().map(read).collect::<anyhow::Result<BTreeMap<String, String>>>()?;
        let of = |part: &str, data: serde_json::Value| {
            let labels =
                json!({"app.kubernetes.io/name": "gristmill", "app.kubernetes.io/instance": place.name});
            let name = format!("{}-{part}", place.name);
            let metadata = json!({"name": name, "namespace": place.namespace, "labels": labels});
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "stringData": data})
        };
        let items = [of("master", json!(files)), of("join", json!({ "join": *join }))];
        Ok(serde_json::to_vec(&json!({"apiVersion": "v1", "kind": "List", "items": items}))?)
    };
    let made = made();
    let removed = fs::remove_dir_all(&folder);
    let made = made?;
    removed?;
    Ok(made)
}

/// Applies secrets and manifests.
///
/// # Errors
/// No `kubectl`, or a control plane that refuses.
pub async fn begin(place: &KubernetesPlace, manifests: String, state: &Path) -> anyhow::Result<()> {
    // `create`, not `apply`: that would keep what it was given in an annotation, which more may read than the secret.
    call("make the secrets", &["create", "-f", "-"], secrets(place, state)?, ANSWER_MAX).await?;
    call("apply the manifests", &["apply", "-f", "-"], manifests.into_bytes(), ANSWER_MAX).await?;
    Ok(())
}

/// Deletes all that bears the cluster's name, and waits until it is gone.
///
/// # Errors
/// As [`begin`].
pub async fn end(place: &KubernetesPlace) -> Result<(), PlaceError> {
    let label = format!("app.kubernetes.io/instance={}", place.name);
    let kinds = "deployment,service,secret,networkpolicy";
    let timeout = format!("--timeout={}s", GONE_MAX.as_secs());
    let further = ["--ignore-not-found", "--cascade=foreground", "--wait=true", &timeout];
    let words = ["delete", kinds, "--namespace", &place.namespace, "--selector", &label];
    call("delete what was applied", &[&words[..], &further].concat(), Vec::new(), GONE_MAX + ANSWER_MAX)
        .await?;
    Ok(())
}

async fn call(
    what: &'static str,
    words: &[&str],
    input: Vec<u8>,
    limit: Duration,
) -> Result<ToolAnswer, PlaceError> {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    let answer =
        ToolCall { tool: Tool::Kubectl, words, input: ToolInput::Bytes(input), limit }.make().await?;
    match answer.code {
        Some(0) => Ok(answer),
        _ => Err(PlaceError::Refused { what, said: answer.stderr.trim().to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(namespace: &str, image: &str) -> anyhow::Result<String> {
        let place = KubernetesPlace { name: "mill".to_owned(), namespace: namespace.to_owned() };
        let worker = words(&["--workers", "2", "a\"b @NAME@"]);
        let (program, memory) = ("/gristmill", "1Gi");
        Manifests { place: &place, image, program, nodes: 3, workers: 2, memory, master: Vec::new(), worker }
            .text()
    }

    #[test]
    fn manifests_are_filled_in_once_and_hold_no_secret() {
        let text = text("batch", "registry.example/gristmill:1").unwrap();
        assert!(text.contains(r#"args: ["master", "--state", "/state/gristmill""#), "{text}");
        assert!(text.contains(r#""--workers", "2", "a\"b @NAME@"]"#), "what is put in is put in as it is");
        assert_eq!(text.matches('@').count(), 2, "and nothing else is left to fill in");
        assert!(text.contains("replicas: 3") && text.contains("namespace: batch"));
        assert!(!text.contains("gm1:") && !text.contains("kind: Secret"));
    }

    #[test]
    fn text_that_would_change_a_manifest_is_refused() {
        for (namespace, image, words) in [
            ("a b", "x", "--namespace"),
            ("-a", "x", "--namespace"),
            ("a", "x\n  hostNetwork: true", "--image"),
            ("a", "", "--image"),
        ] {
            let error = text(namespace, image).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
