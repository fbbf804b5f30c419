//! `up` and `down` on hosts of ssh. A stand-in for `ssh` runs commands on this machine, in a home directory
//! for each host. `scripts/places` tests real servers.

use crate::support::sandbox::{Finished, PROGRAM};
use crate::support::standing::Standing;
use crate::support::{Sandbox, TIMEOUT, process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A host called `silent` never responds, and `refuses` rejects all logins. A host with a file `gone` next to
/// its home directory is unreachable.
const SSH: &str = "#!/bin/sh
while [ \"$1\" != -- ]; do shift; done
case $2 in
    silent) exec sleep 600;;
    refuses) echo 'Permission denied (publickey).' >&2; exit 255;;
esac
if [ -e \"$HOMES/$2.gone\" ]; then echo 'No route to host' >&2; exit 255; fi
unset XDG_STATE_HOME GRISTMILL_STATE
HOME=$HOMES/$2; export HOME; mkdir -p \"$HOME\"; cd \"$HOME\"; exec sh -c \"$3\"
";

struct Hosts {
    sandbox: Sandbox,
}

impl Hosts {
    fn named(text: &str) -> Self {
        let sandbox = Sandbox::new();
        let ssh = sandbox.write("bin/ssh", SSH);
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        sandbox.write("hosts", text);
        fs::create_dir(sandbox.path("homes")).unwrap();
        Self { sandbox }
    }

    fn gristmill(&self, words: &[&str]) -> Finished {
        let path = format!("{}:{}", self.sandbox.text("bin"), std::env::var("PATH").unwrap());
        let invocation = self.sandbox.gristmill(words).env("PATH", path);
        invocation.env("HOMES", self.sandbox.path("homes")).start().finish_within(TIMEOUT)
    }

    fn up(&self, further: &[&str]) -> Finished {
        let hosts = self.sandbox.text("hosts");
        let words = ["up", "--on", "ssh", "--hosts", &hosts, "--listen", "127.0.0.1", "--program", PROGRAM];
        let small = ["--workers-per-host", "1", "--", "--memory", "32MiB"];
        self.gristmill(&[&words[..], &small, further].concat())
    }

    fn record(&self) -> Value {
        serde_json::from_slice(&fs::read(self.sandbox.path("state/up/record.json")).unwrap()).unwrap()
    }

    fn assert_nothing_left(&self) {
        self.sandbox.assert_nothing_left();
        assert!(!self.sandbox.path("state/up/record.json").exists());
        for home in fs::read_dir(self.sandbox.path("homes")).unwrap() {
            let guests = home.unwrap().path().join(".local/state/gristmill/guests");
            assert!(!guests.exists(), "{}", guests.display());
        }
    }
}

#[test]
fn cluster_on_hosts_of_ssh_comes_up_once_runs_a_job_and_goes_down_whole() {
    let hosts = Hosts::named("alpha\nrefuses # today\nada@beta\n");
    let up = hosts.up(&[]).expect_code(0);
    up.expect_words(&[
        "refuses does not take part: could not be reached: Permission denied (publickey)",
        "2 workers have joined",
    ]);
    let mode = fs::metadata(hosts.sandbox.path("state/up/record.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    hosts.up(&[]).expect_code(3).expect_words(&["workers on ada@beta, alpha is up already"]);

    let input = hosts.sandbox.write("text", "a b\nb\n");
    let printed =
        hosts.gristmill(&["submit", "wordcount", &input, "--reduces", "1", "--quiet"]).expect_code(0);
    assert_eq!(printed.stdout_text(), "a\t1\nb\t2\n");

    hosts.gristmill(&["down"]).expect_code(0);
    hosts.assert_nothing_left();
    let logs = fs::read_dir(hosts.sandbox.path("state/logs")).unwrap().count();
    assert_eq!(logs, 2, "those of the two hosts that took part");
    hosts.gristmill(&["down"]).expect_code(3).expect_words(&["nothing is up"]);
    let standing = Standing::start(&hosts.sandbox, 0);
    let down = hosts.sandbox.gristmill(["down"]).finish().expect_code(3);
    down.expect_words(&["a master started by hand runs in", "end it with SIGTERM"]);
    standing.end();
}

#[test]
fn nothing_stays_up_when_every_host_hangs() {
    let hosts = Hosts::named("silent\n");
    let up = hosts.up(&[]).expect_code(5);
    up.expect_words(&["silent does not take part: `ssh` did not end within 30s", "no host takes part"]);
    hosts.assert_nothing_left();
}

#[test]
fn workers_that_cannot_start_say_why_and_leave_nothing() {
    let hosts = Hosts::named("alpha\n");
    let up = hosts.up(&["--spill-dir", "/proc/nowhere"]).expect_code(5);
    up.expect_words(&["alpha does not take part: could not start workers", "/proc/nowhere"]);
    hosts.assert_nothing_left();
}

#[test]
fn host_that_is_away_when_all_goes_down_is_named_and_tried_again() {
    let hosts = Hosts::named("alpha\nbeta\n");
    hosts.up(&[]).expect_code(0);
    let gone = hosts.sandbox.write("homes/beta.gone", "");
    hosts
        .gristmill(&["down"])
        .expect_code(5)
        .expect_words(&["beta could not be brought down", "No route to host"]);
    fs::remove_file(gone).unwrap();
    let record = hosts.record();
    assert_eq!(record["place"]["ssh"]["hosts"], serde_json::json!(["beta"]));
    hosts.gristmill(&["down"]).expect_code(0);
    hosts.assert_nothing_left();
}

#[test]
fn down_refuses_while_a_job_runs_and_abandons_it_with_now() {
    let hosts = Hosts::named("alpha\n");
    hosts.up(&[]).expect_code(0);
    let out = hosts.sandbox.text("out");
    let job = ["submit", "synthetic", "--maps", "1", "--map-time", "60s", "--detach", "--output", &out];
    hosts.gristmill(&job).expect_code(0);
    hosts.gristmill(&["down"]).expect_code(3).expect_words(&["1 job has not ended", "--now"]);
    hosts.gristmill(&["down", "--now"]).expect_code(0).expect_words(&["1 job is abandoned"]);
    hosts.assert_nothing_left();
}

#[test]
fn workers_whose_master_was_killed_are_brought_down_all_the_same() {
    let hosts = Hosts::named("alpha\n");
    hosts.up(&[]).expect_code(0);
    let holder = fs::read_to_string(hosts.sandbox.path("state/lock")).unwrap();
    process::kill(holder.split(' ').nth(1).unwrap().parse().unwrap());
    hosts.gristmill(&["down"]).expect_code(0);
    hosts.assert_nothing_left();
}
