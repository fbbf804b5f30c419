//! Tests of the addresses on which listeners are allowed.

use super::*;

fn bind(address: &str, transport: Transport, permissions: Permissions) -> Bind {
    Bind { address: address.parse().unwrap(), last_port: 0, transport, permissions }
}

#[test]
fn loopback_needs_no_permission() {
    for address in ["127.0.0.1:0", "127.9.9.9:80", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
        bind(address, Transport::Plain, Permissions::default()).validate(true).unwrap();
    }
}

#[test]
fn each_risk_needs_its_own_flag_and_the_error_names_it() {
    let tls = || Transport::Tls(Identity::generate(&[]).unwrap());
    let none = Permissions::default;
    let refused = |bind: Bind, is_root: bool, flag: &str| {
        let error = bind.validate(is_root).unwrap_err();
        assert!(error.to_string().contains(flag), "{error}");
    };
    refused(bind("192.0.2.1:0", Transport::Plain, none()), false, "--insecure-plaintext");
    refused(bind("192.0.2.1:0", tls(), none()), true, "--allow-root");
    for everywhere in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0"] {
        refused(bind(everywhere, tls(), none()), false, "--listen-everywhere");
        let listen_everywhere = Permissions { listen_everywhere: true, ..none() };
        refused(bind(everywhere, Transport::Plain, listen_everywhere), false, "--insecure-plaintext");
        bind(everywhere, tls(), listen_everywhere).validate(false).unwrap();
    }
    bind("192.0.2.1:0", tls(), none()).validate(false).unwrap();
    let insecure_plaintext = Permissions { insecure_plaintext: true, ..none() };
    bind("192.0.2.1:0", Transport::Plain, insecure_plaintext).validate(false).unwrap();
    bind("192.0.2.1:0", tls(), Permissions { allow_root: true, ..none() }).validate(true).unwrap();
}

#[tokio::test]
async fn port_in_use_is_an_error_of_its_own() {
    let first = Bind::loopback().listen().await.unwrap();
    let again = Bind { address: first.local_addr().unwrap(), ..Bind::loopback() };
    assert!(matches!(again.listen().await.unwrap_err(), BindError::InUse { .. }));
}

#[tokio::test]
async fn address_of_another_machine_is_an_error() {
    let insecure_plaintext = Permissions { insecure_plaintext: true, allow_root: true, ..Default::default() };
    let elsewhere = bind("192.0.2.1:0", Transport::Plain, insecure_plaintext);
    assert!(matches!(elsewhere.listen().await.unwrap_err(), BindError::Listen { .. }));
}
