//! Submitters that name paths outside their files. A submission must never make a master or a worker write,
//! move or remove anything outside the output directory of its job. Neither links nor another user's
//! directories may defeat that.
//!
//! The submissions are written by hand, as no client of the product would write them.

use crate::support::http::{Answer, request_with};
use crate::support::standing::Standing;
use crate::support::{Sandbox, is_root, oracle};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{chown, lchown, symlink};
use std::path::Path;

/// An unprivileged user.
const OTHER_USER: u32 = 65534;

/// Content of files that must not change.
const PRIVATE: &str = "precious";

/// A submission of a job of one map without input and one reduce, to be closed by the master.
fn submission(sandbox: &Sandbox, standing: &Standing<'_>, output: &str, probe: &str) -> Value {
    let status = sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
    let key = &standing.join.key;
    // A different key for each output: a submission with a key that the master knows is the same job again.
    let turn = output.bytes().map(usize::from).sum::<usize>() % 42;
    let permit_key = [&key[turn..42], &key[..turn], &key[42..]].concat();
    // Encoded lists of splits: one without pieces, and none.
    let (one, none) = ("AQAAAA==", "AA==");
    json!({
        "schema": 1, "build": status["build"], "name": "wordcount",
        "parameters": parameters(sandbox, standing),
        "splits": one, "reduces": 1, "cuts": [], "side": none,
        "output": sandbox.text(output), "output_probe": probe, "output_made": false, "submitter": null,
        "key": key, "permit_key": permit_key, "weight": 1.0, "pool": null, "attempts_max": 1, "sync": false,
        "record_bytes_max": 1_000_000, "expansion_max": 10, "hang_ms": 60_000, "attached": false,
        "remarks": [], "columns": null,
    })
}

/// Parameters of a job as a client would submit it.
fn parameters(sandbox: &Sandbox, standing: &Standing<'_>) -> Value {
    let input = sandbox.write("honest-text", "a\n");
    let out = sandbox.text("honest");
    let arguments = ["submit", "wordcount", &input, "--output", &out, "--overwrite"];
    sandbox.gristmill(arguments).finish().expect_code(0);
    // A submission contains them as text.
    Value::from(standing.job("job-1")["parameters"].to_string())
}

/// Sends a submission and waits until its job, if any, has ended.
fn submit(standing: &Standing<'_>, submission: &Value) -> Answer {
    let (host, bearer) = (standing.join.address.to_string(), format!("Bearer {}", standing.join.token));
    let headers = [("Host", host.as_str()), ("Authorization", bearer.as_str())];
    let body = submission.to_string();
    request_with(standing.join.address, "POST", "/api/v1/jobs", &headers, body.as_bytes())
}

fn check_private(path: &Path) {
    assert_eq!(fs::read_to_string(path).unwrap_or_default(), PRIVATE, "{} was touched", path.display());
}

fn check_refused(answer: &Answer, words: &str) {
    let said = String::from_utf8_lossy(&answer.body);
    assert!(answer.status == 400 && said.contains(words), "{} {said}", answer.status);
}

#[test]
fn submission_whose_claim_leads_elsewhere_removes_nothing_there() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    // From `a/b/out/_temporary/probe-x` this leads to `a/b/private`, from `a/b/out/_replaced-x` to
    // `a/private`.
    let leads_out = "probe-x/../../../private";
    for directory in
        ["_temporary/probe-x", "_temporary/abandoning-x", "_temporary/closing-x", "_replaced-x", "_claim-x"]
    {
        fs::create_dir_all(sandbox.path("a/b/out").join(directory)).unwrap();
    }
    fs::create_dir(sandbox.path("a/b/private")).unwrap();
    sandbox.write("a/private/file", PRIVATE);
    let refused = submit(&standing, &submission(&sandbox, &standing, "a/b/out", leads_out));
    check_private(&sandbox.path("a/private/file"));
    check_refused(&refused, "is not 1 to 64 of A-Z");
    standing.end();
}

#[test]
fn submission_whose_claim_is_no_plain_name_writes_nowhere() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let home = sandbox.path("home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("x"), "").unwrap();
    let absolute = home.join("x").display().to_string();
    for probe in
        [absolute.as_str(), "../../home/x", "..", "", "probe-$(x)", "probe-x\n", "probe-x.y", "probe-\u{e9}"]
    {
        let submission = submission(&sandbox, &standing, "out", probe);
        // If attached, only the workers look at the claim.
        for attached in [true, false] {
            let mut submission = submission.clone();
            submission["attached"] = attached.into();
            check_refused(&submit(&standing, &submission), "is not 1 to 64 of A-Z");
        }
    }
    assert_eq!(oracle::names(&home), ["x"]);
    standing.end();
}

#[test]
fn links_in_an_output_directory_are_followed_by_neither_master_nor_worker() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    // The claim itself.
    let start_file = sandbox.write("home/start-file", PRIVATE);
    fs::create_dir_all(sandbox.path("claimed/_temporary")).unwrap();
    symlink(&start_file, sandbox.path("claimed/_temporary/probe-x")).unwrap();
    let refused = submit(&standing, &submission(&sandbox, &standing, "claimed", "probe-x"));
    check_private(Path::new(&start_file));
    check_refused(&refused, "not_shared");
    // The file in which an attempt builds its part.
    sandbox.write("built/_temporary/probe-x", "");
    symlink(&start_file, sandbox.path("built/_temporary/probe-x-reduce-0.0")).unwrap();
    submit(&standing, &submission(&sandbox, &standing, "built", "probe-x"));
    check_private(Path::new(&start_file));
    let jobs = sandbox.gristmill(["jobs", "--json"]).finish().expect_code(0).json();
    let job = jobs.as_array().unwrap().iter().find(|job| job["output"] == sandbox.text("built")).unwrap();
    assert_eq!(job["attempts"]["failed_other"], 1, "an attempt met the link: {job}");
    assert_eq!(oracle::names(&sandbox.path("built")), ["_SUCCESS", "part-00000"]);
    // The directory with both, which would be emptied at the end.
    let private = sandbox.write("private/file", PRIVATE);
    sandbox.write("private/probe-x", "");
    fs::create_dir(sandbox.path("whole")).unwrap();
    symlink(sandbox.path("private"), sandbox.path("whole/_temporary")).unwrap();
    let refused = submit(&standing, &submission(&sandbox, &standing, "whole", "probe-x"));
    check_private(Path::new(&private));
    check_refused(&refused, "not_shared");
    standing.end();
}

#[test]
fn output_directory_of_another_user_is_refused_by_master_and_client() {
    if !is_root("an output directory of another user") {
        return;
    }
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    // Only the directory with the claim is the other user's, or only the claim, or all.
    let claims = ["_temporary/probe-x", "_temporary", ""];
    for (number, foreign) in claims.iter().enumerate() {
        let name = format!("out-{number}");
        sandbox.write(&format!("{name}/_temporary/probe-x"), "");
        for path in &claims[..=number] {
            chown(sandbox.path(&name).join(path), Some(OTHER_USER), None).unwrap();
        }
        let refused = submit(&standing, &submission(&sandbox, &standing, &name, "probe-x"));
        check_refused(&refused, "not_shared");
        check_refused(&refused, "belongs to user 65534");
        assert!(sandbox.path(&name).join("_temporary/probe-x").exists(), "{foreign}");
    }
    let input = sandbox.write("text", "a\n");
    fs::create_dir(sandbox.path("theirs")).unwrap();
    chown(sandbox.path("theirs"), Some(OTHER_USER), None).unwrap();
    // A link of the other user leads to this user's file, which would be replaced.
    let ours = sandbox.write("ours/file", PRIVATE);
    symlink(sandbox.path("ours"), sandbox.path("their-link")).unwrap();
    lchown(sandbox.path("their-link"), Some(OTHER_USER), None).unwrap();
    for output in ["theirs", "their-link"] {
        let arguments = ["submit", "wordcount", &input, "--overwrite", "--output", &sandbox.text(output)];
        let refused = sandbox.gristmill(arguments).finish().expect_code(3);
        refused.expect_words(&[output, "belongs to user 65534"]);
    }
    check_private(Path::new(&ours));
    standing.end();
}
