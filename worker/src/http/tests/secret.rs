//! Tests of secrets, pins, join lines and their files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;

use super::*;

/// Computes the text form from bits, slowly: the definition of base64url.
fn base64_by_definition(bytes: &[u8]) -> String {
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']).collect();
    let padded = format!("{bits}{}", "0".repeat((6 - bits.len() % 6) % 6));
    (0..padded.len())
        .step_by(6)
        .map(|start| alphabet[usize::from_str_radix(&padded[start..start + 6], 2).unwrap()])
        .collect()
}

proptest! {
    #[test]
    fn secret_text_is_base64url_and_reads_back(bytes: [u8; 32]) {
        let secret = Secret::from_bytes(bytes);
        let text = secret.to_text();
        prop_assert_eq!(text.as_str(), base64_by_definition(&bytes));
        prop_assert!(secret.matches(&text));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        prop_assert_eq!(&hex.parse::<Secret>().unwrap(), &secret);
    }

    #[test]
    fn secret_has_one_base64_spelling_only(bytes: [u8; 32], place in 0..43_usize, letter in "[A-Za-z0-9_-]") {
        let secret = Secret::from_bytes(bytes);
        let mut text = secret.to_text().to_string();
        text.replace_range(place..=place, &letter);
        prop_assert_eq!(secret.matches(&text), text == *secret.to_text());
    }

    #[test]
    fn secret_parser_accepts_no_other_text(text in "\\PC{0,70}") {
        let is_base64 = text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        prop_assert!(text.parse::<Secret>().is_err() || is_base64 || is_hex);
    }

    #[test]
    fn join_line_reads_back(bytes: [u8; 32], pin: Option<[u8; 32]>, port in 1_u16.., host in "[a-z0-9.-]{1,30}") {
        let line = JoinLine {
            endpoint: Endpoint { host, port, pin: pin.map(Pin) },
            token: Token::derive(&Secret::from_bytes(bytes), "admin@0").unwrap(),
            plaintext: Plaintext::OnLoopback,
        };
        prop_assert_eq!(&line.to_text().parse::<JoinLine>().unwrap(), &line);
    }
}

#[test]
fn derived_secret_is_hmac_sha256_of_the_purpose() {
    // Test case 1 of RFC 4231: HMAC pads a key of 20 bytes with zeros, so 32 bytes with such zeros give the same
    // result.
    let mut key = [0; 32];
    key[..20].fill(0x0b);
    let expected = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
    assert_eq!(Secret::from_bytes(key).derive("Hi There"), expected.parse().unwrap());
}

#[test]
fn generated_secrets_differ() {
    assert_ne!(Secret::generate().unwrap(), Secret::generate().unwrap());
}

#[test]
fn secret_shows_in_no_debug_or_error_text() {
    let secret = Secret::generate().unwrap();
    let text = secret.to_text();
    let bytes = format!("{:?}", secret.as_bytes());
    let endpoint: Endpoint = "master:7000".parse().unwrap();
    let line = JoinLine {
        endpoint,
        token: Token::derive(&secret, "view@0").unwrap(),
        plaintext: Plaintext::OnLoopback,
    };
    let misread = format!("{}x", *line.to_text()).parse::<JoinLine>().unwrap_err();
    let too_long = format!("{}xx", *text).parse::<Secret>().unwrap_err();
    for shown in [
        format!("{secret:?} {secret}"),
        format!("{line:?}"),
        format!("{:?}", Access::Secret(secret.clone())),
        format!("{misread:?} {misread}"),
        format!("{too_long:?} {too_long}"),
    ] {
        assert!(!shown.contains(&text[..8]), "{shown}");
        assert!(!shown.contains(&bytes), "{shown}");
    }
}

#[test]
fn endpoint_reads_hosts_and_addresses() {
    let check = |text: &str, host: &str, port: u16| {
        let endpoint: Endpoint = text.parse().unwrap();
        assert_eq!((endpoint.host.as_str(), endpoint.port, endpoint.pin), (host, port, None), "{text}");
        assert_eq!(endpoint.to_string(), text);
    };
    check("127.0.0.1:80", "127.0.0.1", 80);
    check("[::1]:65535", "::1", 65535);
    check("node-1.lan:7000", "node-1.lan", 7000);
}

#[test]
fn endpoint_refuses_everything_else() {
    for text in [
        "",
        "host",
        "host:",
        ":80",
        "host:0",
        "host:65536",
        "host:-1",
        "::1:80",
        "[::1]",
        "[::1:80",
        "[host]:80",
        "[127.0.0.1]:80",
        "a b:80",
        "user@host:80",
        "host/path:80",
        "host#x:80",
        "h\r\nx:80",
    ] {
        assert!(text.parse::<Endpoint>().is_err(), "{text:?}");
    }
}

#[test]
fn join_line_refuses_what_is_not_one() {
    let good = JoinLine {
        endpoint: Endpoint { host: "m".into(), port: 1, pin: Some(Pin([3; 32])) },
        token: Token::derive(&cluster_secret(), "work-a@1").unwrap(),
        plaintext: Plaintext::OnLoopback,
    };
    let good = good.to_text();
    for text in [&good[1..], &good[..good.len() - 1], &good.replace('#', "/"), &good.replace(":1#", "#")] {
        assert!(text.parse::<JoinLine>().is_err(), "{text:?}");
    }
}

#[test]
fn endpoint_and_pin_survive_serde() {
    let endpoint = Endpoint { host: "::1".into(), port: 9, pin: Some(Pin([200; 32])) };
    let text = serde_json::to_string(&endpoint).unwrap();
    assert_eq!(serde_json::from_str::<Endpoint>(&text).unwrap(), endpoint);
}

#[test]
fn secret_is_refused_by_formats_for_people() {
    assert!(serde_json::to_string(&cluster_secret()).is_err());
    assert!(serde_json::from_str::<Secret>(&serde_json::to_string(&[7_u8; 32]).unwrap()).is_err());
}

#[test]
fn secret_file_is_private_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state").join("secret");
    let first = Secret::load_or_create(&path).unwrap();
    assert_eq!(Secret::load_or_create(&path).unwrap(), first);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no draft is left behind");
}

#[test]
fn secret_file_is_the_same_for_all_who_create_it_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state").join("secret");
    let secrets: Vec<Secret> = std::thread::scope(|scope| {
        let creators: Vec<_> =
            (0..8).map(|_| scope.spawn(|| Secret::load_or_create(&path).unwrap())).collect();
        creators.into_iter().map(|creator| creator.join().unwrap()).collect()
    });
    assert!(secrets.iter().all(|secret| secret == &secrets[0]));
}

#[test]
fn secret_file_is_refused_when_others_could_read_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state").join("secret");
    Secret::load_or_create(&path).unwrap();
    let refused = || {
        let error = Secret::load_or_create(&path).unwrap_err();
        assert!(matches!(error, SecretError::File(PrivateFileError::Foreign(_))), "{error:?}");
    };
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    refused();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    refused();
}

#[test]
fn secret_file_is_refused_when_it_is_a_link_or_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state").join("secret");
    Secret::load_or_create(&path).unwrap();
    let link = path.with_file_name("link");
    symlink(&path, &link).unwrap();
    assert!(matches!(
        Secret::load_or_create(&link).unwrap_err(),
        SecretError::File(PrivateFileError::Io { action: "open", .. })
    ));
    // A pipe is not waited for.
    let pipe = path.with_file_name("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    assert!(matches!(
        Secret::load_or_create(&pipe).unwrap_err(),
        SecretError::File(PrivateFileError::Content { .. })
    ));
    fs::write(&path, "no secret\n").unwrap();
    assert!(matches!(Secret::load_or_create(&path).unwrap_err(), SecretError::Text { characters: 9 }));
}

#[test]
fn identity_keeps_its_pin_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state").join("key");
    let names = ["localhost".to_owned()];
    let first = Identity::load_or_create(&path, &names).unwrap().pin();
    assert_eq!(Identity::load_or_create(&path, &names).unwrap().pin(), first);
    assert_ne!(Identity::generate(&names).unwrap().pin(), first);
}
