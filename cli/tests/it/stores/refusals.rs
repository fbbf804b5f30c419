//! Messages and exit codes when a store refuses a request, and secrets that must appear nowhere.

use super::server::{Deed, KEY_ID, Rule, SECRET, StoreServer, url};
use super::{command, part_names, run, with};
use crate::support::Sandbox;
use crate::support::data::Random;
use hyper::Method;

#[test]
fn bucket_that_is_missing_is_named_for_inputs_and_outputs() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let input = server.put("text", "a\n");
    let missing = "the store answered 404 NoSuchBucket; check the bucket";
    let words = ["s3://nowhere/text", missing];
    run(&sandbox, &server, ["run", "wordcount", "s3://nowhere/text"]).expect_code(4).expect_words(&words);
    let output = ["run", "wordcount", &input, "--output", "s3://nowhere/out"];
    run(&sandbox, &server, output).expect_code(3).expect_words(&["s3://nowhere/out", missing]);
}

#[test]
fn refused_keys_are_said_to_be_so_and_not_tried_again() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let input = server.put("text", "a\n");
    let refused = server.rule(Rule::always(Method::GET, "/data/text", Deed::refuse(403, "AccessDenied")));
    let finished = run(&sandbox, &server, ["run", "wordcount", &input]).expect_code(6);
    let words =
        ["could not look at s3://data/text", "the store refuses these credentials (403 AccessDenied)"];
    finished.expect_words(&words);
    assert_eq!(server.done(refused), 1);
    let wrong =
        command(&sandbox, &server, ["run", "wordcount", &url("other")]).env("AWS_SECRET_ACCESS_KEY", "wrong");
    wrong.finish().expect_code(6).expect_words(&["the store refuses these credentials"]);
}

#[test]
fn keys_that_expire_in_the_middle_end_the_job_with_what_to_do_and_leave_nothing() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let input = server.put("text", Random::seeded(87).text(300_000, &[" ", "\n"]));
    let deed = Deed::refuse(400, "ExpiredToken");
    let expired = server.rule(Rule { skip: 3, ..Rule::once(Method::GET, "/data/text", deed) });
    let flags =
        ["run", "wordcount", &input, "--split-size", "64KiB", "--workers", "1", "--output", "s3://data/out"];
    let finished = run(&sandbox, &server, flags).expect_code(6);
    let words = [
        "could not read s3://data/text",
        "refuses these credentials (400 ExpiredToken)",
        "get new ones",
        "hint: each worker",
    ];
    finished.expect_words(&words);
    assert_eq!(server.done(expired), 1);
    assert_eq!(server.keys("out"), [""; 0]);
}

#[test]
fn refusal_is_reported_with_the_code_of_the_store() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    for (path, status, code, exit, words) in [
        ("/data/old", 400, "ExpiredToken", 6, "refuses these credentials (400 ExpiredToken)"),
        ("/data/far", 301, "PermanentRedirect", 3, "in the region that was asked (301 PermanentRedirect)"),
        ("/data/late", 403, "RequestTimeTooSkewed", 6, "check the clock of this machine"),
    ] {
        let refused = server.rule(Rule::always(Method::GET, path, Deed::refuse(status, code)));
        let input = format!("s3:/{path}");
        run(&sandbox, &server, ["run", "wordcount", &input]).expect_code(exit).expect_words(&[words]);
        assert_eq!(server.done(refused), 1, "{path}");
    }
}

#[test]
fn azure_is_reached_with_the_settings_that_its_environment_has_for_connections() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let refused = server.rule(Rule::always(Method::GET, "/text", Deed::refuse(403, "AuthenticationFailed")));
    let run = sandbox.gristmill(["run", "wordcount", "az://data/text"]);
    let run = run.env("AZURE_STORAGE_ACCOUNT_NAME", "tests").env("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0");
    let run = run
        .env("AZURE_STORAGE_ENDPOINT", format!("http://{}", server.address))
        .env("AZURE_ALLOW_HTTP", "true");
    let words = ["could not look at az://data/text", "refuses these credentials (403 AuthenticationFailed)"];
    run.finish().expect_code(6).expect_words(&words);
    assert_eq!(server.done(refused), 1);
}

#[test]
fn refusal_within_an_answer_that_says_200_is_one_and_is_not_repeated_in_the_words_of_the_store() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let (good, bad) = (server.put("good", "a\n"), server.put("bad", "b\n"));
    let count = |input: &str| {
        let words = ["run", "wordcount", input, "--reduces", "1", "--overwrite", "--output", "s3://data/out"];
        command(&sandbox, &server, words).env("GRISTMILL_LOG", "warn").finish()
    };
    count(&good).expect_code(0);
    let old = part_names(&server, "out").remove(0);
    let text = format!(
        "<DeleteResult><Error><Key>out/{old}</Key><Code>AccessDenied</Code><Message>for {KEY_ID}</Message></Error></DeleteResult>"
    );
    let refused = server.rule(Rule::always(Method::POST, "delete", Deed::Answer(200, text)));
    let told = count(&bad).expect_code(0);
    assert!(0 < server.done(refused));
    assert!(
        told.stderr.contains("could not be removed") && told.stderr.contains("200 AccessDenied"),
        "{}",
        told.stderr
    );
    assert!(!told.stderr.contains(KEY_ID), "{}", told.stderr);
}

#[test]
fn answer_404_to_many_deletes_is_no_success() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let input = server.put("text", "a\n");
    let words = ["run", "wordcount", &input, "--reduces", "1", "--overwrite", "--output", "s3://data/out"];
    let count = || command(&sandbox, &server, words).env("GRISTMILL_LOG", "warn").finish().expect_code(0);
    count();
    let refused = server.rule(Rule::always(Method::POST, "delete", Deed::refuse(404, "NoSuchKey")));
    let told = count();
    assert!(0 < server.done(refused));
    assert!(told.stderr.contains("could not be removed") && told.stderr.contains("404"), "{}", told.stderr);
}

/// The response of a store that lists one object.
fn listing_of(key: &str) -> Deed {
    let page = format!(
        "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>{key}</Key>\
         <LastModified>2026-11-26T00:00:00.000Z</LastModified><ETag>\"e\"</ETag><Size>1</Size></Contents>\
         </ListBucketResult>"
    );
    Deed::Answer(200, page)
}

#[test]
fn listing_with_a_key_that_cannot_be_asked_for_says_which_one() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let odd = server.rule(Rule::always(Method::GET, "list-type=2", listing_of("logs//x")));
    let finished = run(&sandbox, &server, ["run", "wordcount", "s3://data/logs/"]).expect_code(4);
    finished.expect_words(&["could not list s3://data/logs", "\"logs//x\""]);
    assert_eq!(server.done(odd), 1);
}

#[test]
fn store_that_is_busy_for_long_or_silent_is_given_up_and_said_so() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let (busy, silent) = (server.put("busy", "a\n"), server.put("silent", "a\n"));
    let refused = server.rule(Rule::always(Method::GET, "/data/busy", Deed::refuse(503, "SlowDown")));
    let finished = run(&sandbox, &server, ["run", "wordcount", &busy]).expect_code(3);
    finished.expect_words(&[
        "could not look at s3://data/busy",
        "the store answered 503",
        "asked 6 times more",
    ]);
    assert_eq!(server.done(refused), 7);
    let held = server.rule(Rule::always(Method::GET, "/data/silent", Deed::Hold));
    let waiting = command(&sandbox, &server, ["run", "wordcount", &silent]).env("AWS_READ_TIMEOUT", "200ms");
    waiting
        .finish()
        .expect_code(3)
        .expect_words(&["could not look at s3://data/silent", "was silent for too long"]);
    assert_eq!(server.done(held), 7);
    let gone = [("AWS_ENDPOINT_URL", "http://127.0.0.1:1".to_owned())].to_vec();
    let variables = [server.variables(), gone].concat();
    let unreachable = with(sandbox.gristmill(["run", "wordcount", &busy]), variables).finish().expect_code(3);
    unreachable.expect_words(&["could not be reached", "check the network and the endpoint"]);
}

#[test]
fn listing_without_an_end_is_given_up_after_so_many_pages() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let page = "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>true</IsTruncated>\
                <NextContinuationToken>more</NextContinuationToken></ListBucketResult>";
    let endless = server.rule(Rule::always(Method::GET, "list-type=2", Deed::Answer(200, page.to_owned())));
    let finished = run(&sandbox, &server, ["run", "wordcount", "s3://data/logs/"]).expect_code(4);
    finished.expect_words(&["could not list s3://data/logs", "name fewer at a time"]);
    assert_eq!(server.done(endless), 4096);
}

#[test]
fn missing_keys_are_reported_with_the_command_that_exports_them() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let input = server.put("text", "a\n");
    for profile in ["", "work"] {
        let run = sandbox.gristmill(["run", "wordcount", &input, "--reduces", "1", "--quiet"]);
        let finished = with(run, server.place()).env("AWS_PROFILE", profile).finish().expect_code(6);
        let words = ["no credentials were found where this process runs", "aws configure export-credentials"];
        finished.expect_words(&words);
    }
}

#[test]
fn keys_stand_in_no_argument_log_journal_report_or_message() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let input = server.put("text", "a b\n");
    let (trace, report) = (sandbox.text("trace.json"), ["--json", "--output", "s3://data/out"]);
    let flags = ["run", "wordcount", &input, "--workers", "1", "--trace", &trace, "--journal", "journal"];
    let token = "tokenofthetests";
    let run = command(&sandbox, &server, [&flags[..], &report[..]].concat()).env("GRISTMILL_LOG", "trace");
    let told = run.finish().expect_code(0);
    let refused = server.rule(Rule::always(Method::GET, "/data/text", Deed::refuse(403, "AccessDenied")));
    let run = command(&sandbox, &server, ["run", "wordcount", &input]).env("GRISTMILL_LOG", "trace");
    let refusal = run.env("AWS_SESSION_TOKEN", token).finish().expect_code(6);
    assert_eq!(server.done(refused), 1);
    let mut texts =
        vec![told.stderr.clone(), told.stdout_text(), refusal.stderr.clone(), refusal.stdout_text()];
    for name in ["trace.json", "journal"] {
        texts.push(String::from_utf8_lossy(&std::fs::read(sandbox.path(name)).unwrap()).into_owned());
    }
    texts.extend(
        server
            .keys("out")
            .iter()
            .map(|key| String::from_utf8_lossy(&server.get(&format!("out/{key}"))).into_owned()),
    );
    for secret in [SECRET, KEY_ID, token] {
        let found: Vec<&String> = texts.iter().filter(|text| text.contains(secret)).collect();
        assert!(found.is_empty(), "{secret} stands in {found:?}");
    }
    let signed = server.asked();
    assert!(signed.iter().all(|asked| asked.authorization.contains(KEY_ID)), "requests are signed");
}

#[test]
fn endpoint_in_the_clear_beyond_this_machine_needs_somebody_to_ask_for_it() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let far = command(&sandbox, &server, ["run", "wordcount", "s3://data/text"]);
    let finished = far.env("AWS_ENDPOINT_URL", "http://192.0.2.1:9000").finish().expect_code(3);
    finished
        .expect_words(&["http://192.0.2.1:9000 is plain HTTP beyond this machine", "AWS_ALLOW_HTTP=true"]);
}

#[test]
fn endpoint_that_is_no_url_is_told_as_a_setting_and_an_empty_one_as_none() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let input = server.put("text", "a\n");
    let with = |endpoint: &str| {
        let counting = command(&sandbox, &server, ["run", "wordcount", &input, "--quiet"]);
        counting.env("AWS_ENDPOINT_URL", endpoint)
    };
    let refused = with("notaurl").finish().expect_code(3);
    let words = ["AWS_ENDPOINT_URL", "is not a URL that begins with http:// or https://"];
    assert!(!refused.expect_words(&words).stderr.contains("panicked"));
    let address = server.variables().into_iter().find(|(name, _)| *name == "AWS_ENDPOINT_URL").unwrap().1;
    // The older name of the same setting.
    let counted = with("").env("AWS_ENDPOINT", address).finish().expect_code(0);
    assert_eq!(counted.stdout_text(), "a\t1\n");
}

#[test]
fn key_with_a_slash_at_its_end_is_said_to_be_one_that_cannot_be_asked_for() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let odd = server.rule(Rule::always(Method::GET, "list-type=2", listing_of("in/d/")));
    let finished = run(&sandbox, &server, ["run", "wordcount", "s3://data/in/"]).expect_code(4);
    finished.expect_words(&["could not read s3://data/in/d", "its key begins or ends with `/`", "rename it"]);
    assert_eq!(server.done(odd), 1);
}

#[test]
fn answer_that_is_not_the_range_that_was_asked_for_is_told_as_that() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let input = server.put("text", "to be or not to be\n");
    let whole = server.rule(Rule {
        skip: 1,
        ..Rule::always(Method::GET, "/data/text", Deed::Answer(200, "to be".to_owned()))
    });
    let finished = run(&sandbox, &server, ["run", "wordcount", &input]).expect_code(4);
    let finished = finished.expect_words(&[
        "could not read s3://data/text",
        "the answer of the store cannot be used: asked for 19 bytes from byte 0 on",
        "check the endpoint",
    ]);
    assert!(!finished.stderr.contains("could not reach"), "{}", finished.stderr);
    assert!(0 < server.done(whole));
}
