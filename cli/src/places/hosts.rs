//! Names of hosts for `ssh`, from a file.

use crate::usage::usage;
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::path::Path;

/// Reads a file of hosts, one on each line. A name goes to `ssh` as one word and never looks like one of its options.
///
/// # Errors
/// A file that cannot be read, or a line that is not a host.
pub fn read_hosts(path: &Path) -> anyhow::Result<BTreeSet<String>> {
    let file = if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path };
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("could not read the hosts in {}", path.display()))?;
    parse(&text).map_err(|error| usage(format!("--hosts {}: {error}", path.display())))
}

fn parse(text: &str) -> Result<BTreeSet<String>, String> {
    let mut hosts = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_@:%".contains(&byte);
        let host = line.rsplit('@').next().unwrap_or_default();
        if line.is_empty() {
            continue;
        }
        if host.is_empty() || line.starts_with('-') || host.starts_with('-') || !line.bytes().all(plain) {
            return Err(format!("line {}: `{line}` is not a host: write [USER@]HOST", number + 1));
        }
        if host.matches(':').count() == 1 {
            return Err(format!("line {}: `{line}` has a port: write it into ssh's settings", number + 1));
        }
        hosts.insert(line.to_owned());
    }
    if hosts.is_empty() { Err("it names no host".to_owned()) } else { Ok(hosts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_with_their_users() {
        let hosts = parse("# ours\nnode1\n\nada@node2  # big\nfe80::1\nnode1\n").unwrap();
        assert_eq!(hosts.iter().collect::<Vec<_>>(), ["ada@node2", "fe80::1", "node1"]);
    }

    #[test]
    fn line_that_is_not_a_host_is_refused_with_its_number() {
        for (text, words) in [
            ("", "no host"),
            ("a\n-oProxyCommand=x", "line 2: `-oProxyCommand=x` is not a host"),
            ("ada@-x", "is not a host"),
            ("a;b", "is not a host"),
            ("$(x)", "is not a host"),
            ("node workers=4", "is not a host"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}
