//! The live page: its access control, and that its files show nothing of a cluster.

use crate::input::fifo;
use crate::support::http::{request, request_with};
use crate::support::sandbox::PROGRAM;
use crate::support::standing::Standing;
use crate::support::{Sandbox, until};
use std::io::Write;
use std::path::Path;

/// A link of the page, as `gristmill cluster page` prints it: its address and its code.
fn link(sandbox: &Sandbox) -> String {
    sandbox.gristmill(["page"]).finish().expect_code(0).stdout_text().trim().to_owned()
}

fn code_of(link: &str) -> String {
    link.split_once("/#enter=").unwrap_or_else(|| panic!("{link} has no code")).1.to_owned()
}

#[test]
fn files_of_the_page_are_open_say_what_scripts_may_do_and_name_nothing_of_the_cluster() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "word\n");
    sandbox.gristmill(["submit", "grep", "secretword", &input]).finish().expect_code(0);
    let host = standing.join.address.to_string();
    for path in ["/", "/page.js", "/page.css"] {
        let answer = request(standing.join.address, "GET", path, &[("Host", &host)]);
        assert_eq!(answer.status, 200, "{path}");
        let policy = "content-security-policy: default-src 'none'; script-src 'self';";
        assert!(answer.head.contains(policy), "{path}: {}", answer.head);
        let text = answer.text();
        assert!(!text.contains("secretword") && !text.contains("vm/"), "{path}");
        let foreign = [("Host", host.as_str()), ("Sec-Fetch-Site", "cross-site")];
        assert_eq!(request(standing.join.address, "GET", path, &foreign).status, 403, "{path}");
    }
    standing.end();
}

#[test]
fn link_of_the_page_opens_it_once_for_looking_and_for_nothing_else() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let link = link(&sandbox);
    let (address, host) = (standing.join.address, standing.join.address.to_string());
    assert!(link.starts_with(&format!("http://{host}/#enter=")), "{link}");
    let enter = |code: &str| {
        let body = format!("{{\"code\":\"{code}\"}}");
        request_with(address, "POST", "/page/enter", &[("Host", &host)], body.as_bytes())
    };
    assert_eq!(enter("nothing").status, 403);
    let entered = enter(&code_of(&link));
    assert_eq!(entered.status, 200, "{}", entered.text());
    let token: serde_json::Value = serde_json::from_slice(&entered.body).unwrap();
    let again = enter(&code_of(&link));
    assert_eq!(again.status, 403);
    assert!(again.text().contains("was used before"), "{}", again.text());

    let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
    let with = [("Host", host.as_str()), ("Authorization", bearer.as_str())];
    assert_eq!(request(address, "GET", "/api/v1/jobs", &with).status, 200);
    for (method, path) in
        [("POST", "/api/v1/shutdown"), ("POST", "/api/v1/jobs/job-1/cancel"), ("PUT", "/api/v1/policy")]
    {
        assert_eq!(request(address, method, path, &with).status, 403, "{method} {path}");
    }
    standing.end();
}

/// A request to try: method, additional headers, and the status of the response.
type Try<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);

#[test]
fn page_that_may_cancel_is_for_who_may_submit_and_cancels_by_post_and_not_for_foreign_pages() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let (address, host) = (standing.join.address, standing.join.address.to_string());
    let (out, view) = (sandbox.text("out"), sandbox.text("view"));
    let job = ["submit", "synthetic", "--maps", "1", "--map-time", "600s", "--detach", "--output", &out];
    sandbox.gristmill(job).finish().expect_code(0);
    until("its map to run", || (standing.job("job-1")["maps"]["running"] == 1).then_some(()));
    sandbox.gristmill(["token", "new", "view", "--output", &view]).finish().expect_code(0);
    let refused = sandbox.gristmill(["page", "--may-cancel", "--join", &view]).finish();
    refused.expect_code(6).expect_words(&["does not allow", "hint: "]);

    let bearer = |flags: &[&str]| {
        let link = sandbox.gristmill([&["page"], flags].concat()).finish().expect_code(0).stdout_text();
        let body = format!("{{\"code\":\"{}\"}}", code_of(link.trim()));
        let entered = request_with(address, "POST", "/page/enter", &[("Host", &host)], body.as_bytes());
        let token: serde_json::Value = serde_json::from_slice(&entered.body).unwrap();
        format!("Bearer {}", token["token"].as_str().unwrap())
    };
    let (looks, cancels) = (bearer(&[]), bearer(&["--may-cancel"]));
    assert!(cancels.starts_with("Bearer submit@admin@0:"), "{cancels}");
    let ask = |method: &str, path: &str, more: &[(&str, &str)]| {
        request(address, method, path, &[&[("Host", host.as_str())], more].concat()).status
    };
    let (cancel, own) = ("/api/v1/jobs/job-1/cancel", format!("http://{host}"));
    let with = ("Authorization", cancels.as_str());
    let tries: [Try<'_>; 7] = [
        ("POST", &[], 401),
        ("POST", &[("Authorization", looks.as_str())], 403),
        ("POST", &[with, ("Origin", "http://127.0.0.1:1")], 403),
        ("POST", &[with, ("Sec-Fetch-Site", "cross-site")], 403),
        ("POST", &[("Cookie", cancels.as_str()), ("Origin", &own)], 401),
        ("GET", &[with], 404),
        ("PUT", &[with], 403),
    ];
    for (method, shown, status) in tries {
        assert_eq!(ask(method, cancel, shown), status, "{method} {shown:?}");
    }
    for path in ["/api/v1/shutdown", "/api/v1/tokens", "/api/v1/workers/worker-1/drain"] {
        assert_eq!(ask("POST", path, &[with]), 403, "{path}");
    }
    assert_eq!(standing.job("job-1")["state"], "running");
    assert_eq!(ask("POST", cancel, &[with, ("Origin", &own), ("Sec-Fetch-Site", "same-origin")]), 204);
    sandbox.gristmill(["wait", "job-1"]).finish().expect_code(8);
    let path = sandbox.gristmill(["explain", "job-1"]).finish().expect_code(0).stdout_text();
    let last = path.lines().rfind(|line| line.contains(" on worker-1"));
    assert!(
        last.is_some_and(|step| step.ends_with("map-0 on worker-1: ran when the job was stopped")),
        "{path}"
    );
    standing.end();
}

#[test]
fn page_of_a_run_is_shown_by_a_link_and_stays_until_enter() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "to be or not to be\n");
    let pipe = sandbox.path("enter");
    fifo(&pipe);
    // Opened for both, so that neither side waits for the other.
    let mut person = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let script =
        format!("exec \"$0\" run wordcount {input} --show --reduces 1 --workers 1 < {}", pipe.display());
    let running = sandbox.program(Path::new("sh"), ["-c", &script, PROGRAM]).start();
    until("the end of the job", || {
        running.stderr().contains("the page stays until you press Enter").then_some(())
    });
    let said = running.stderr();
    let link = said.split_once("live page: ").and_then(|(_, rest)| rest.lines().next()).unwrap();
    let host = link.strip_prefix("http://").and_then(|rest| rest.split_once("/#")).unwrap().0;
    let address = host.parse().unwrap();
    let body = format!("{{\"code\":\"{}\"}}", code_of(link));
    let entered = request_with(address, "POST", "/page/enter", &[("Host", host)], body.as_bytes());
    let token: serde_json::Value = serde_json::from_slice(&entered.body).unwrap();
    let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
    let jobs = request(address, "GET", "/api/v1/jobs", &[("Host", host), ("Authorization", &bearer)]);
    let jobs: serde_json::Value = serde_json::from_slice(&jobs.body).unwrap();
    assert_eq!(jobs[0]["state"], "succeeded");
    assert!(!running.has_ended());
    person.write_all(b"\n").unwrap();
    assert_eq!(running.finish().expect_code(0).stdout_text(), "be\t2\nnot\t1\nor\t1\nto\t2\n");
}

#[test]
fn page_of_no_run_that_cannot_begin_is_named() {
    let sandbox = Sandbox::new();
    let missing = sandbox.text("nowhere");
    let early = sandbox.run(["run", "wordcount", &missing, "--show", "--workers", "1"]).expect_code(4);
    let said = &early.stderr;
    assert!(!said.contains("live page") && !said.contains("Enter"), "{said}");
}

#[test]
fn measures_need_a_token_that_may_look_and_probes_none() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let (address, host) = (standing.join.address, standing.join.address.to_string());
    for probe in ["/healthz", "/readyz"] {
        let answer = request(address, "GET", probe, &[("Host", &host)]);
        assert_eq!((answer.status, answer.body.len()), (204, 0), "{probe}");
    }
    assert_eq!(request(address, "GET", "/metrics", &[("Host", &host)]).status, 401);
    let input = sandbox.write("text", "word\n");
    sandbox.gristmill(["submit", "wordcount", &input]).finish().expect_code(0);
    let file = sandbox.text("view.join");
    sandbox.gristmill(["token", "new", "view", "--output", &file]).finish().expect_code(0);
    let line = std::fs::read_to_string(&file).unwrap();
    let bearer = format!("Bearer {}", line.trim().split_once('#').unwrap().1);
    let answer = request(address, "GET", "/metrics", &[("Host", &host), ("Authorization", &bearer)]);
    let text = answer.text();
    for measure in [
        "gristmill_workers{state=\"connected\"} 1\n",
        "gristmill_jobs{state=\"succeeded\"} 1\n",
        "gristmill_slots_running{kind=\"map\"} 0\n",
        "# TYPE gristmill_worker_memory_bytes gauge\n",
    ] {
        assert!(text.contains(measure), "{measure} is not in\n{text}");
    }
    standing.end();
}
