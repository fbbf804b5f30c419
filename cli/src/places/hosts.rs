//! File with the hosts of `up --on ssh`: one on each line, with a port and a number of workers where they differ.
//!
//! A name goes to `ssh` as one word and never looks like one of its options.

use super::ssh::SshHost;
use crate::usage::usage;
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Most hosts.
const HOSTS_MAX: usize = 1000;

/// Longest file, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Most workers of one host.
const WORKERS_MAX: u32 = 1000;

/// Reads the file; `-` is standard input.
///
/// # Errors
/// A file that cannot be read, or a line that does not name a host.
pub fn read(path: &Path) -> anyhow::Result<Vec<SshHost>> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().take(FILE_BYTES_MAX).read_to_string(&mut text),
        false => File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text)),
    };
    read.with_context(|| format!("could not read the hosts in {}", path.display()))?;
    parse(&text).map_err(|error| usage(format!("--hosts {}: {error}", path.display())))
}

fn parse(text: &str) -> Result<Vec<SshHost>, String> {
    let mut hosts = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let host = parse_line(line).map_err(|reason| format!("line {}: `{line}` {reason}", number + 1))?;
        if !seen.insert((host.target.clone(), host.port)) {
            return Err(format!("line {}: `{line}` is named twice", number + 1));
        }
        hosts.push(host);
    }
    match hosts.len() {
        0 => Err("it names no host".to_owned()),
        1..=HOSTS_MAX => Ok(hosts),
        count => Err(format!("it names {count} hosts; the maximum is {HOSTS_MAX}")),
    }
}

fn parse_line(line: &str) -> Result<SshHost, String> {
    let mut words = line.split_whitespace();
    let named = words.next().unwrap_or_default();
    let (target, port) = match named.rsplit_once(':') {
        // An IPv6 address without a port has several.
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (named, None),
    };
    let port = match port.map(str::parse::<u16>) {
        None => None,
        Some(Ok(port)) if port != 0 => Some(port),
        Some(_) => return Err("has an invalid port".to_owned()),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_@:%".contains(&byte);
    let host = target.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || target.starts_with('-') || host.starts_with('-') || !target.bytes().all(plain) {
        return Err("is not a host: write [USER@]HOST[:PORT] [workers=N]".to_owned());
    }
    let workers = match words.next() {
        None => None,
        Some(word) => {
            let number = word.strip_prefix("workers=").and_then(|number| number.parse::<u32>().ok());
            let workers = number.filter(|number| (1..=WORKERS_MAX).contains(number));
            Some(workers.ok_or_else(|| format!("`{word}` is not workers=N"))?)
        }
    };
    if let Some(word) = words.next() {
        return Err(format!("`{word}` is unexpected; write [USER@]HOST[:PORT] [workers=N]"));
    }
    Ok(SshHost { target: target.to_owned(), port, workers, touched: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_with_user_port_and_workers() {
        let hosts = parse("# ours\nnode1\n\nada@node2:2222  workers=3 # big\nfe80::1\n").unwrap();
        let told: Vec<_> = hosts.iter().map(|host| (host.target.as_str(), host.port, host.workers)).collect();
        assert_eq!(
            told,
            [("node1", None, None), ("ada@node2", Some(2222), Some(3)), ("fe80::1", None, None)]
        );
    }

    #[test]
    fn line_that_is_not_a_host_is_refused_with_its_number() {
        for (text, words) in [
            ("", "no host"),
            ("a\n-oProxyCommand=x", "line 2: `-oProxyCommand=x` is not a host"),
            ("ada@-x", "is not a host"),
            ("a;b", "is not a host"),
            ("$(x)", "is not a host"),
            ("node:0", "has an invalid port"),
            ("node:ssh", "has an invalid port"),
            ("node workers=0", "is not workers=N"),
            ("node slots=4", "is not workers=N"),
            ("node workers=1 x", "`x` is unexpected"),
            ("node\nnode", "line 2: `node` is named twice"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}
