//! Contents of a store after a job: complete outputs despite failures, and nothing of failed jobs.

use super::server::{Deed, Rule, StoreServer, url};
use super::{assert_whole_and_alone, command, part_names, run, whole, with};
use crate::faults::proxy::{Damage, Link, Strike, Way};
use crate::support::data::Random;
use crate::support::standing::Standing;
use crate::support::{Sandbox, oracle, until};
use hyper::Method;

/// The four jobs with their inputs, and flags that give several maps and parts.
fn jobs(text: &str, left: &str, right: &str) -> Vec<Vec<String>> {
    let shape = ["--split-size", "40KiB", "--reduces", "3"];
    let job = |words: &[&str]| [words, &shape[..]].concat().into_iter().map(str::to_owned).collect();
    vec![
        job(&["wordcount", text]),
        job(&["grep", "a[bc]", text]),
        job(&["sort", text]),
        job(&["join", "--left", left, "--right", right, "--on", "id=id", "--strategy", "repartition"]),
    ]
}

fn table(random: &mut Random, rows: usize, column: &str) -> String {
    let mut text = format!("id,{column}\n");
    for row in 0..rows {
        text.push_str(&format!("{},{column}-{row}\n", random.below(rows)));
    }
    text
}

#[test]
fn four_jobs_from_and_to_a_store_give_what_they_give_from_files_whatever_breaks() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let mut random = Random::seeded(84);
    let text = random.text(200_000, &[" ", "\n"]);
    let (left, right) = (table(&mut random, 2000, "left"), table(&mut random, 2000, "right"));
    let urls =
        [server.put("in/text", &text), server.put("in/left.csv", &left), server.put("in/right.csv", &right)];
    let files = [sandbox.write("text", &text), sandbox.write("l.csv", &left), sandbox.write("r.csv", &right)];
    let local = jobs(&files[0], &files[1], &files[2]);
    let stored = jobs(&urls[0], &urls[1], &urls[2]);
    let link = Link::start("127.0.0.1:0".parse().unwrap(), server.address).unwrap();
    for (local, stored) in local.iter().zip(&stored) {
        let job = &local[0];
        let (here, prefix) = (sandbox.text(job), format!("out/{job}"));
        let words = |arguments: &[String], output: &str| {
            let mut words = vec!["run".to_owned()];
            words.extend_from_slice(arguments);
            words.extend(["--output", output, "--quiet", "--no-sync"].map(str::to_owned));
            words
        };
        sandbox.run_well(words(local, &here));
        let slow_down = || Deed::refuse(503, "SlowDown");
        let busy = server.rule(Rule { times: 2, ..Rule::once(Method::GET, "/in/", slow_down()) });
        let lost = server.rule(Rule { skip: 2, ..Rule::once(Method::GET, "/in/", Deed::LoseAnswer) });
        let part = server.rule(Rule::once(Method::PUT, "/part-00001-", slow_down()));
        let named = server.rule(Rule::once(Method::PUT, "/_SUCCESS", Deed::LoseAnswer));
        // In the middle of the data that is read.
        link.strike(Strike { damage: Damage::Reset, way: Way::ToClient, at: 3000, times: 1 });
        let struck = link.struck();
        let mut variables = server.variables();
        variables.extend(StoreServer::place_at(link.address()));
        let finished = with(sandbox.gristmill(words(stored, &url(&prefix))), variables).finish();
        finished.expect_code(0);
        sandbox.assert_nothing_left();
        assert_whole_and_alone(&server, &prefix, &oracle::whole(here.as_ref()));
        let fired = [busy, lost, part, named].map(|rule| server.done(rule));
        assert_eq!(fired, [2, 1, 1, 1], "{job}: its faults");
        assert_eq!(link.struck(), struck + 1, "{job}: a connection breaks");
        assert_eq!(server.open_uploads(), [""; 0], "{job}");
    }
}

#[test]
fn output_in_a_store_is_the_input_of_the_next_job_by_what_its_success_names() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let text = Random::seeded(85).text(20_000, &[" ", "\n"]);
    let input = server.put("text", &text);
    run(&sandbox, &server, ["run", "sort", &input, "--reduces", "3", "--output", &url("sorted")])
        .expect_code(0);
    let sorted = whole(&server, "sorted");
    // Files that an abandoned attempt, or a user, may leave.
    server.put("sorted/part-00001-0123456789abcdef-7", "never mind\n");
    server.put("sorted/notes", "never mind\n");
    let again = run(&sandbox, &server, ["run", "grep", "", &url("sorted"), "--quiet"]).expect_code(0);
    assert!(again.stdout == sorted);
    let refused = run(&sandbox, &server, ["run", "grep", "", &url("sorted/part-*")]).expect_code(4);
    refused.expect_words(&["s3://data/sorted/part-*", "name the output"]);
    run(&sandbox, &server, ["verify-sort", &url("sorted")]).expect_code(0);
    let lacking = server.path(&format!("sorted/{}", part_names(&server, "sorted")[1]));
    std::fs::remove_file(lacking).unwrap();
    let refused = run(&sandbox, &server, ["run", "grep", "", &url("sorted")]).expect_code(4);
    refused.expect_words(&["part-00001-", "does not exist"]);
    std::fs::remove_file(server.path("sorted/_SUCCESS")).unwrap();
    let refused = run(&sandbox, &server, ["run", "grep", "", &url("sorted")]).expect_code(4);
    refused.expect_words(&["s3://data/sorted", "no `_SUCCESS`"]);
}

#[test]
fn output_that_is_there_is_refused_before_the_job_runs_and_replaced_as_a_whole_if_asked() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let (one, other) = (server.put("one", "a b\n"), server.put("other", "c\n"));
    let count = |input: &str, flags: &[&str]| {
        let arguments = ["run", "wordcount", input, "--reduces", "2", "--output", "s3://data/out"];
        run(&sandbox, &server, [&arguments[..], flags].concat())
    };
    count(&one, &[]).expect_code(0);
    let before = server.keys("out");
    let refused = count(&other, &[]).expect_code(3);
    let refused = refused.expect_words(&["s3://data/out exists and is not empty", "hint: ", "--overwrite"]);
    assert!(!refused.stderr.contains("job-1"), "a job was submitted:\n{}", refused.stderr);
    assert_eq!(server.keys("out"), before);
    count(&other, &["--overwrite"]).expect_code(0);
    assert_whole_and_alone(&server, "out", b"c\t1\n");
    server.put("out/mine", "precious");
    let refused = count(&one, &["--overwrite"]).expect_code(3);
    refused
        .expect_words(&["s3://data/out holds mine", "replaces nothing in a store but the output of a job"]);
    assert_eq!(whole(&server, "out"), b"c\t1\n");
    assert!(!server.keys("out").contains(&"_temporary".to_owned()), "no claim is left");
    let held = count("s3://data/out/mine", &["--overwrite"]).expect_code(3);
    held.expect_words(&["holds s3://data/out/mine, an input of the same job"]);
}

#[test]
fn failed_job_leaves_nothing_and_what_it_was_to_overwrite_stays() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let (good, bad) = (server.put("good", "a\n"), server.put("bad", "good\n".repeat(1000) + "bad\n"));
    let out = ["--output", "s3://data/out", "--reduces", "2"];
    run(&sandbox, &server, [&["run", "wordcount", &*good], &out[..]].concat()).expect_code(0);
    let before = server.keys("out");
    let arguments = [&["run", "faulty", &*bad, "--how", "error", "--overwrite"], &out[..]].concat();
    let faulty = sandbox.program(&crate::user_code::faulty_program(), arguments);
    with(faulty, server.variables()).finish().expect_code(1);
    sandbox.assert_nothing_left();
    assert_eq!(server.keys("out"), before);
    assert_eq!(whole(&server, "out"), b"a\t1\n");
}

#[test]
fn large_part_goes_up_in_pieces_and_is_given_up_when_one_is_refused() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let text = Random::seeded(86).text(20 << 20, &[" ", "\n"]);
    let input = server.put("text", &text);
    let sort = |out: &str| {
        let out = url(out);
        run(&sandbox, &server, ["run", "sort", &input, "--reduces", "1", "--workers", "1", "--output", &out])
    };
    sort("out").expect_code(0);
    let begun = |method: Method, part: &str| {
        server.asked().iter().filter(|asked| asked.method == method && asked.path.contains(part)).count()
    };
    assert_eq!((begun(Method::POST, "uploads"), begun(Method::PUT, "partNumber=3")), (1, 1));
    let mut lines: Vec<&[u8]> = oracle::lines(&text);
    lines.sort_unstable();
    assert!(oracle::lines(&whole(&server, "out")) == lines);
    let refused = server.rule(Rule::always(Method::PUT, "partNumber=2", Deed::refuse(403, "AccessDenied")));
    sort("no").expect_code(6).expect_words(&["could not write s3://data/no/part-00000-", "403 AccessDenied"]);
    assert_eq!(server.done(refused), 1, "nobody tries again with the same keys");
    assert_eq!(begun(Method::DELETE, "uploadId="), 1, "the upload is given up");
    assert_eq!(server.keys("no"), [""; 0]);
}

#[test]
fn large_part_is_there_when_the_answer_to_the_last_request_for_it_is_lost() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let text = Random::seeded(88).text(10 << 20, &[" ", "\n"]);
    let input = server.put("text", &text);
    let lost = server.rule(Rule::once(Method::POST, "uploadId=", Deed::LoseAnswer));
    let out = ["--reduces", "1", "--workers", "1", "--output", "s3://data/out"];
    run(&sandbox, &server, [&["run", "sort", &*input], &out[..]].concat()).expect_code(0);
    assert_eq!(server.done(lost), 1);
    let there = whole(&server, "out");
    let mut lines: Vec<&[u8]> = oracle::lines(&text);
    lines.sort_unstable();
    assert!(oracle::lines(&there) == lines);
    assert_whole_and_alone(&server, "out", &there);
    let parts = server.asked().iter().filter(|asked| asked.path.contains("partNumber=1")).count();
    assert_eq!(parts, 1, "it is uploaded once");
}

#[test]
fn list_of_bad_records_is_that_of_the_output_that_counts() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let join = |table: &str, out: &str| {
        let table = server.put(table, "a,b\n1,2\n3,4,5\n6,7\n");
        let tables = ["run", "join", "--left", &table, "--right", &table, "--on", "a=a", "--overwrite"];
        let flags = ["--skip-bad-records", "5", "--strategy", "repartition", "--output", out];
        run(&sandbox, &server, [&tables[..], &flags].concat())
    };
    join("old.csv", "s3://data/out").expect_code(0);
    let before = server.get("out/_BAD_RECORDS");
    assert!(String::from_utf8_lossy(&before).contains("s3://data/old.csv\t"));
    let deed = Deed::refuse(403, "AccessDenied");
    let refused = server.rule(Rule::always(Method::PUT, "/_SUCCESS", deed));
    join("new.csv", "s3://data/out").expect_code(6);
    join("new.csv", "s3://data/fresh").expect_code(6);
    assert_eq!(server.done(refused), 2);
    assert!(server.get("out/_BAD_RECORDS") == before, "the list of an output that does not count");
    assert_eq!(server.keys("fresh"), [""; 0]);
}

#[test]
fn named_outputs_and_bad_records_lie_beside_the_parts() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let lines: String = (0..2000)
        .map(|number| format!("{} {number}\n", if number % 7 == 0 { "odd" } else { "line" }))
        .collect();
    let input = server.put("lines", &lines);
    let shape =
        ["--how", "error", "--in-reduce", "--aside", "--reduces", "3", "--split-size", "4KiB", "--output"];
    let arguments = [&["run", "faulty", &*input], &shape[..], &["s3://data/out"]].concat();
    let faulty = sandbox.program(&crate::user_code::faulty_program(), arguments);
    with(faulty, server.variables()).finish().expect_code(0);
    sandbox.assert_nothing_left();
    let names = part_names(&server, "out");
    let odd: Vec<String> = server.keys("out/odd");
    assert!(!odd.is_empty() && odd.iter().all(|name| names.contains(name)), "{odd:?} of {names:?}");
    let read = run(&sandbox, &server, ["run", "grep", "", "s3://data/out/odd", "--quiet"]).expect_code(0);
    let expected = lines.lines().filter(|line| line.starts_with("odd")).count();
    assert_eq!(read.stdout_text().lines().count(), expected);
    // A file that an abandoned attempt may leave.
    server.put("out/odd/part-00001-0123456789abcdef-7", "odd, and never to be read\n");
    let flags = ["run", "grep", "odd", "s3://data/out", "--recursive", "--quiet"];
    let read = run(&sandbox, &server, flags).expect_code(0);
    assert_eq!(read.stdout_text().lines().count(), expected);
    let broken = server.put("broken.csv", "a,b\n1,2\n3,4,5\n6,7\n");
    let out = url("left-out");
    let skip = [
        "run",
        "join",
        "--left",
        &broken,
        "--right",
        &broken,
        "--on",
        "a=a",
        "--skip-bad-records",
        "5",
        "--strategy",
        "repartition",
    ];
    run(&sandbox, &server, [&skip[..], &["--output", &out]].concat()).expect_code(0);
    let told = String::from_utf8(server.get("left-out/_BAD_RECORDS")).unwrap();
    assert!(told.contains("s3://data/broken.csv\t"), "{told}");
}

#[test]
fn detached_job_is_closed_by_its_master_which_needs_credentials_of_its_own() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let input = server.put("text", "a b\n");
    let standing = standing(&sandbox, &server);
    let submit = ["submit", "wordcount", &input, "--detach", "--reduces", "1", "--output", "s3://data/out"];
    let job = command(&sandbox, &server, submit).finish().expect_code(0).stdout_text().trim().to_owned();
    until("the end of the job", || (standing.job(&job)["state"] == "succeeded").then_some(()));
    assert_whole_and_alone(&server, "out", b"a\t1\nb\t1\n");
    // The submitter makes the claim first and tests the store's conditions on it. Then its master takes it
    // over.
    let deed = Deed::refuse(403, "AccessDenied");
    let refused = server.rule(Rule { skip: 2, ..Rule::once(Method::PUT, "/elsewhere/_temporary", deed) });
    let submit = ["submit", "wordcount", &input, "--detach", "--output", "s3://data/elsewhere"];
    let finished = command(&sandbox, &server, submit).finish().expect_code(3);
    finished.expect_words(&["the master cannot use the output of a detached job", "403 AccessDenied"]);
    assert_eq!(server.done(refused), 1);
    assert_eq!(server.keys("elsewhere"), [""; 0]);
    standing.end();
}

/// A master and a worker that find the server.
fn standing<'a>(sandbox: &'a Sandbox, server: &StoreServer) -> Standing<'a> {
    let master = command(sandbox, server, ["master"]).start();
    let join = crate::support::standing::await_join_line(&master);
    let worker = command(sandbox, server, ["worker", "--workers", "1", "--slots", "1"]).start();
    let standing = Standing::new(sandbox, master, vec![worker], join);
    standing.await_workers(1);
    standing
}
