//! What of the facts is wrong, and what to do about each.

use super::facts::{ClusterFacts, Facts, MachineFacts, MasterFacts, ThreadsFacts, Unheard, WorkerFacts};
use gristmill_runtime::api::GivenUpWorker;
use gristmill_scheduler::units::Bytes;

/// Memory that a worker process needs at least, with what the program itself takes.
const WORKER_BYTES_MIN: u64 = 64 << 20;

/// Files and connections that a process should be allowed to have open.
const DESCRIPTORS_MIN: u64 = 1024;

/// Clocks further apart than this confuse whoever compares times of files and logs.
const CLOCKS_APART_MS_MAX: i64 = 2000;

/// The beginning of 2024, milliseconds since 1970: before it this program was not there.
const WALL_MS_MIN: u64 = 1_704_067_200_000;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub wrong: String,
    pub remedy: String,
}

fn finding(wrong: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { wrong: wrong.into(), remedy: remedy.into() }
}

/// All that is wrong, this machine first.
pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = machine(&facts.machine);
    match &facts.master {
        MasterFacts::None => {}
        MasterFacts::Unusable { why, remedy } => findings.push(finding(why, *remedy)),
        MasterFacts::There(there) => {
            findings.extend(cluster(there));
            for worker in &there.workers {
                findings.extend(of_worker(worker, there, facts.machine.reserve_bytes));
            }
        }
    }
    findings
}

fn machine(facts: &MachineFacts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = facts
        .deaf
        .iter()
        .map(|(address, why)| {
            let wrong = format!("nothing can listen on {address}: {why}");
            finding(wrong, "end what listens there, or name other ports; `ss -ltnp` shows who it is")
        })
        .collect();
    let needed = u64::from(facts.workers) * WORKER_BYTES_MIN;
    if facts.memory_available_bytes < needed {
        let (free, workers) = (Bytes(facts.memory_available_bytes), facts.workers);
        findings.push(finding(
            format!("{free} of memory are free, and {workers} worker process(es) need {}", Bytes(needed)),
            "end other programs, or take fewer --workers",
        ));
    }
    if let Some(named) = facts.memory_named_bytes.filter(|named| facts.memory_bytes < *named) {
        findings.push(finding(
            format!(
                "--memory is {}, and this machine or its control group has {}",
                Bytes(named),
                Bytes(facts.memory_bytes)
            ),
            "name less, or nothing: then a quarter of what there is is taken",
        ));
    }
    findings.extend(folders(facts));
    if let Some(path) = &facts.missing {
        let wrong = format!("{} does not exist on this machine", path.display());
        findings.push(finding(wrong, "check the name, or mount it here"));
    }
    if let Some((folder, why)) = &facts.state {
        let wrong = format!("nothing can be written to {}, for the state folder: {why}", folder.display());
        findings.push(finding(
            wrong,
            "mend that before a master is to begin there, or name another with --state",
        ));
    }
    if facts.descriptors < DESCRIPTORS_MIN {
        findings.push(finding(
            format!(
                "a process may have {} files and connections open, fewer than {DESCRIPTORS_MIN}",
                facts.descriptors
            ),
            "raise the limit: `ulimit -n 65536`, or LimitNOFILE= of the service",
        ));
    }
    findings.extend(threads(facts));
    if facts.wall_ms < WALL_MS_MIN {
        findings.push(finding(
            "the clock of this machine stands before 2024",
            "set it, and let it follow a server: `timedatectl set-ntp true`",
        ));
    }
    if facts.replaced {
        findings.push(finding(
            "the file of this program was replaced since it was started: workers would be another build",
            "start it anew",
        ));
    }
    findings
}

fn threads(facts: &MachineFacts) -> Option<Finding> {
    let ThreadsFacts { allowed, running } = *facts.threads.as_ref()?;
    let (needed, workers) = (facts.threads_needed, facts.workers);
    let wanted = running.saturating_add(needed);
    (allowed < wanted).then(|| {
        finding(
            format!(
                "this user may run {allowed} threads and processes, {running} run already, and a master with {workers} worker \
                 process(es) needs {needed} more"
            ),
            format!(
                "raise the limit: `ulimit -u {wanted}` or more, nproc in /etc/security/limits.conf, or LimitNPROC= of the \
                 service; or take fewer --workers or --slots"
            ),
        )
    })
}

fn folders(facts: &MachineFacts) -> Vec<Finding> {
    let judge = |folder: &super::facts::FolderFacts| {
        let path = folder.path.display();
        match &folder.free {
            Err(why) => Some(finding(
                format!("nothing can be written to the spill folder {path}: {why}"),
                "make it, or name another with --spill-dir or TMPDIR",
            )),
            Ok(free) if *free < facts.reserve_bytes => Some(finding(
                format!(
                    "{} are free in the spill folder {path}, less than the {} that spills leave free",
                    Bytes(*free),
                    Bytes(facts.reserve_bytes)
                ),
                "free some space, name another with --spill-dir, or lower --disk-reserve",
            )),
            Ok(_) => None,
        }
    };
    facts.folders.iter().filter_map(judge).collect()
}

fn cluster(facts: &ClusterFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if facts.own_build != facts.build {
        findings.push(finding(
            format!("this program is build {}, and the master's is {}", facts.own_build, facts.build),
            "use the same file everywhere: copy it, or start master and workers anew with this one",
        ));
    }
    if let Some(trouble) = &facts.trouble {
        findings.push(finding(
            format!("the master takes no jobs: {trouble}"),
            "free some space where its state folder is, or mend what it says",
        ));
    }
    if facts.workers.is_empty() {
        findings.push(finding(
            "the master has no workers: jobs wait",
            "start one with `gristmill worker`, on another machine with --join FILE",
        ));
    }
    findings.extend(facts.given_up.iter().map(|(one, since)| {
        let GivenUpWorker { worker, host, pid, .. } = one;
        finding(
            format!(
                "{worker} on {host} was given up {:.0} s ago, as nothing was heard of it; its process {pid} was not said to \
                 have ended",
                since.seconds()
            ),
            format!(
                "look whether that machine runs and reaches the master; {}",
                remedy_of_standing_still(host, *pid)
            ),
        )
    }));
    findings
}

/// What to do about a process that may stand still.
fn remedy_of_standing_still(host: &str, pid: u32) -> String {
    format!(
        "on {host}, `ps -o stat= -p {pid}` says T if the process was stopped: then `kill -CONT {pid}`; else its disk or \
         machine hangs, or `kill -KILL {pid}` and `gristmill worker` starts another in its place"
    )
}

fn of_worker(facts: &WorkerFacts, all: &ClusterFacts, reserve_bytes: u64) -> Vec<Finding> {
    let who = format!("{} on {}", facts.worker, facts.host);
    if facts.away {
        let wrong = format!("the connection to {who} is gone, and it is expected back");
        return vec![finding(wrong, "look whether it runs, and whether its machine reaches the master")];
    }
    let mut findings = Vec::new();
    let (check, offset_ms) = match &facts.check {
        Ok(answered) => answered,
        Err(why) => return vec![unheard(facts, &who, why)],
    };
    if check.disk_free_bytes < reserve_bytes {
        let (free, reserve) = (Bytes(check.disk_free_bytes), Bytes(reserve_bytes));
        let wrong =
            format!("{free} are free in a spill folder of {who}, less than the {reserve} of --disk-reserve");
        findings.push(finding(wrong, "free some space there, or start it with another --spill-dir"));
    }
    if check.build != all.build {
        let wrong = format!("{who} is build {}, and the master's is {}", check.build, all.build);
        findings.push(finding(wrong, "start it anew with the master's file"));
    }
    if check.descriptors < DESCRIPTORS_MIN {
        let wrong = format!(
            "{who} may have {} files and connections open, fewer than {DESCRIPTORS_MIN}",
            check.descriptors
        );
        findings
            .push(finding(wrong, "raise the limit there: `ulimit -n 65536`, or LimitNOFILE= of the service"));
    }
    if CLOCKS_APART_MS_MAX < offset_ms.abs() {
        let seconds = *offset_ms as f64 / 1000.0;
        let wrong = format!("the clock of {who} is {seconds:+.1} s from the one here");
        findings.push(finding(wrong, "let both follow a server: `timedatectl set-ntp true`"));
    }
    if let (Some(false), Some(path)) = (check.sees, &all.path) {
        let wrong = format!("{who} does not see {}", path.display());
        let remedy =
            "mount it there under the same name, or stay attached: then files go over HTTP, without --detach";
        findings.push(finding(wrong, remedy));
    }
    // A probe that came and went proves more than names and sizes do.
    let differs = check.sees_probe.map_or(check.fingerprint != all.fingerprint, |sees| !sees);
    if let (Some(true), Some(path), true) = (check.sees, &all.path, differs) {
        let wrong = format!("{who} sees something else under {} than this machine", path.display());
        let remedy =
            "mount the same directory on both, or stay attached: then files go over HTTP, without --detach";
        findings.push(finding(wrong, remedy));
    }
    for (peer, why) in all.workers.iter().zip(&check.unreached) {
        // Nobody hears of one that stands still: that is said once, of itself.
        if let Some(why) = why
            && !matches!(peer.check, Err(Unheard::StandsStill(_)))
        {
            let wrong = format!("{who} does not reach {} at {}: {why}", peer.worker, peer.endpoint);
            findings.push(finding(
                wrong,
                "open that port in the firewalls between them, or give that worker an --advertise HOST",
            ));
        }
    }
    findings
}

/// A worker that did not say how it is.
fn unheard(facts: &WorkerFacts, who: &str, why: &Unheard) -> Finding {
    let (pid, host) = (facts.pid, &facts.host);
    match why {
        Unheard::Unreached(why) => finding(
            format!("{who} is not reached from here: {why}"),
            "open its port in the firewall (`worker --listen ADDR:PORT-PORT` fixes it), or start it with --advertise \
             HOST under which it is reached",
        ),
        Unheard::StandsStill(limit) => finding(
            format!(
                "{who} stands still: its process {pid} takes connections, and has said nothing on one for {} s",
                limit.as_secs_f64()
            ),
            remedy_of_standing_still(host, pid),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::FolderFacts;
    use super::*;
    use gristmill_scheduler::ids::WorkerId;
    use gristmill_scheduler::units::Span;
    use gristmill_worker::agent::check::WorkerCheck;
    use gristmill_worker::http::Endpoint;
    use std::time::Duration;

    fn healthy() -> Facts {
        let worker = |number: u32| WorkerFacts {
            worker: WorkerId(number),
            host: "host".to_owned(),
            pid: 4000 + number,
            endpoint: Endpoint { host: "192.0.2.1".to_owned(), port: 7000 + number as u16, pin: None },
            away: false,
            check: Ok((
                WorkerCheck {
                    wall_ms: 0,
                    descriptors: 65536,
                    disk_free_bytes: 10 << 30,
                    build: "b".to_owned(),
                    sees: Some(true),
                    sees_probe: Some(true),
                    fingerprint: None,
                    unreached: vec![None, None],
                },
                30,
            )),
        };
        Facts {
            machine: MachineFacts {
                deaf: Vec::new(),
                memory_bytes: 8 << 30,
                memory_available_bytes: 4 << 30,
                memory_named_bytes: Some(2 << 30),
                missing: None,
                workers: 2,
                folders: vec![FolderFacts { path: "/tmp".into(), free: Ok(10 << 30) }],
                state: None,
                reserve_bytes: 1 << 30,
                descriptors: 65536,
                threads: Some(ThreadsFacts { allowed: 1000, running: 900 }),
                threads_needed: 100,
                wall_ms: WALL_MS_MIN + 1,
                replaced: false,
            },
            master: MasterFacts::There(ClusterFacts {
                own_build: "b".to_owned(),
                build: "b".to_owned(),
                trouble: None,
                path: Some("/data".into()),
                fingerprint: Some(7),
                workers: vec![worker(1), worker(2)],
                given_up: Vec::new(),
            }),
        }
    }

    /// The cluster of these facts.
    fn there(facts: &mut Facts) -> &mut ClusterFacts {
        match &mut facts.master {
            MasterFacts::There(cluster) => cluster,
            _ => unreachable!("healthy facts have one"),
        }
    }

    /// What the second worker says.
    fn said(facts: &mut Facts) -> &mut (WorkerCheck, i64) {
        there(facts).workers[1].check.as_mut().unwrap()
    }

    #[test]
    fn a_healthy_box_has_no_findings_with_a_master_or_without() {
        assert_eq!(judge(&healthy()), []);
        assert_eq!(judge(&Facts { master: MasterFacts::None, ..healthy() }), []);
    }

    #[test]
    fn each_fault_is_found_alone_and_named_with_what_to_do() {
        type Fault = (fn(&mut Facts), &'static str);
        let faults: [Fault; 25] = [
            (
                |it| it.machine.deaf.push(("[::1]:7".into(), "in use".into())),
                "nothing can listen on [::1]:7: in use",
            ),
            (
                |it| it.machine.memory_available_bytes = 100 << 20,
                "of memory are free, and 2 worker process(es) need",
            ),
            (|it| it.machine.memory_named_bytes = Some(9 << 30), "--memory is 9"),
            (|it| it.machine.folders[0].free = Ok(1 << 20), "are free in the spill folder /tmp"),
            (
                |it| it.machine.folders[0].free = Err("read-only".into()),
                "nothing can be written to the spill folder /tmp: read-only",
            ),
            (
                |it| it.machine.state = Some(("/state".into(), "read-only".into())),
                "nothing can be written to /state, for the state folder: read-only",
            ),
            (|it| it.machine.descriptors = 256, "may have 256 files and connections open"),
            (
                |it| it.machine.threads = Some(ThreadsFacts { allowed: 999, running: 900 }),
                "may run 999 threads and processes, 900 run already, and a master with 2 worker process(es) needs 100 more",
            ),
            (|it| it.machine.wall_ms = 5, "the clock of this machine stands before 2024"),
            (|it| it.machine.replaced = true, "was replaced since it was started"),
            (
                |it| it.master = MasterFacts::Unusable { why: "the master is silent".into(), remedy: "wait" },
                "the master is silent",
            ),
            (|it| there(it).own_build = "c".into(), "this program is build c, and the master's is b"),
            (|it| there(it).trouble = Some("disk full".into()), "takes no jobs: disk full"),
            (|it| there(it).workers.clear(), "has no workers"),
            (
                |it| there(it).workers[1].check = Err(Unheard::Unreached("refused".into())),
                "worker-2 on host is not reached from here: refused",
            ),
            (
                |it| there(it).workers[1].check = Err(Unheard::StandsStill(Duration::from_secs(3))),
                "worker-2 on host stands still: its process 4002 takes connections, and has said nothing on one for 3 s",
            ),
            (
                |it| {
                    let one =
                        GivenUpWorker { worker: WorkerId(3), host: "host".into(), pid: 4003, given_up_ns: 0 };
                    there(it).given_up.push((one, Span::whole_seconds(40)));
                },
                "worker-3 on host was given up 40 s ago, as nothing was heard of it; its process 4003 ",
            ),
            (|it| said(it).1 = -90_000, "the clock of worker-2 on host is -90.0 s"),
            (|it| said(it).0.disk_free_bytes = 7, "7 B are free in a spill folder of worker-2 on host"),
            (|it| said(it).0.build = "old".into(), "worker-2 on host is build old"),
            (|it| said(it).0.sees = Some(false), "worker-2 on host does not see /data"),
            (|it| it.machine.missing = Some("/data".into()), "/data does not exist on this machine"),
            (
                |it| said(it).0.sees_probe = Some(false),
                "worker-2 on host sees something else under /data than this machine",
            ),
            (
                |it| (said(it).0.sees_probe, said(it).0.fingerprint) = (None, Some(8)),
                "worker-2 on host sees something else under /data than this machine",
            ),
            (
                |it| said(it).0.unreached[0] = Some("no route".into()),
                "worker-2 on host does not reach worker-1 at 192.0.2.1:7001: no route",
            ),
        ];
        for (inject, words) in faults {
            let mut facts = healthy();
            inject(&mut facts);
            let findings = judge(&facts);
            assert_eq!(findings.len(), 1, "{words}: {findings:?}");
            assert!(findings[0].wrong.contains(words), "{words}: {findings:?}");
            assert!(!findings[0].remedy.is_empty());
        }
    }

    #[test]
    fn limit_of_threads_comes_with_one_that_suffices_and_none_is_no_finding() {
        let mut facts = healthy();
        facts.machine.threads = Some(ThreadsFacts { allowed: 128, running: 40 });
        let findings = judge(&facts);
        assert!(findings[0].remedy.contains("`ulimit -u 140` or more"), "{findings:?}");
        facts.machine.threads = None;
        assert_eq!(judge(&facts), []);
    }

    #[test]
    fn worker_that_stands_still_is_named_once_whatever_the_others_say_of_the_way_to_it() {
        let mut facts = healthy();
        there(&mut facts).workers[0].check = Err(Unheard::StandsStill(Duration::from_secs(3)));
        said(&mut facts).0.unreached[0] = Some("gave up".into());
        let findings = judge(&facts);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].wrong.starts_with("worker-1 on host stands still: "), "{findings:?}");
        assert!(findings[0].remedy.contains("`kill -CONT 4001`"), "{findings:?}");
    }
}
