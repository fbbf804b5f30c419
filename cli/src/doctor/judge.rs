//! Judgement of the facts: the problems, and a remedy for each.

use super::facts::{ClusterFacts, DoctorFacts, LocalFacts, MasterFacts, Unheard, WorkerFacts};
use gristmill_runtime::plural::counted;
use gristmill_scheduler::units::Bytes;

/// Minimum memory of a worker process, including that of the program itself.
const WORKER_BYTES_MIN: u64 = 64 << 20;

/// Minimum for the limit of open files and connections of a process.
const DESCRIPTORS_MIN: u64 = 1024;

/// Largest difference of clocks that does not confuse readers of files and logs.
const CLOCKS_APART_MS_MAX: i64 = 2000;

/// A problem, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Diagnosis {
    pub wrong: String,
    pub remedy: String,
}

/// All problems, in the order in which they are found.
#[derive(Default)]
struct Findings(Vec<Diagnosis>);

impl Findings {
    fn add(&mut self, wrong: String, remedy: impl Into<String>) {
        self.0.push(Diagnosis { wrong, remedy: remedy.into() });
    }

    fn check(&mut self, is_wrong: bool, wrong: String, remedy: &str) {
        if is_wrong {
            self.add(wrong, remedy);
        }
    }
}

/// Returns all problems, those of this machine first.
pub(super) fn judge(facts: &DoctorFacts) -> Vec<Diagnosis> {
    let mut findings = Findings::default();
    judge_machine(&facts.machine, &mut findings);
    match &facts.master {
        MasterFacts::None => {}
        MasterFacts::Unusable { why, remedy } => findings.add(why.clone(), *remedy),
        MasterFacts::There(cluster) => {
            judge_cluster(cluster, &mut findings);
            for worker in &cluster.workers {
                judge_worker(worker, cluster, facts.machine.reserve_bytes, &mut findings);
            }
        }
    }
    findings.0
}

fn judge_machine(facts: &LocalFacts, findings: &mut Findings) {
    let needed = u64::from(facts.workers) * WORKER_BYTES_MIN;
    let workers = counted(u64::from(facts.workers), "worker process needs", "worker processes need");
    let available = facts.memory_available_bytes;
    findings.check(
        available < needed,
        format!("{} of memory are free, and {workers} {}", Bytes(available), Bytes(needed)),
        "end other programs, or start fewer --workers",
    );
    let (named, whole) = (facts.memory_named_bytes.unwrap_or(0), facts.memory_bytes);
    findings.check(
        named > whole,
        format!("--memory is {}, and this machine or its control group has {}", Bytes(named), Bytes(whole)),
        "name less, or nothing: then 25 % of it is used",
    );
    for (directory, free) in &facts.spill_dirs {
        let path = directory.display();
        match free {
            Err(why) => findings.add(
                format!("nothing can be written to the spill directory {path}: {why}"),
                "create it, or name another with --spill-dir or TMPDIR",
            ),
            Ok(free) => findings.check(
                *free < facts.reserve_bytes,
                format!(
                    "{} are free in the spill directory {path}, less than the {} that spills leave free",
                    Bytes(*free),
                    Bytes(facts.reserve_bytes)
                ),
                "free some space, name another with --spill-dir, or lower --disk-reserve",
            ),
        }
    }
    judge_descriptors("a process", facts.descriptors, findings);
}

fn judge_descriptors(who: &str, allowed: u64, findings: &mut Findings) {
    findings.check(
        allowed < DESCRIPTORS_MIN,
        format!("{who} may have {allowed} files and connections open, fewer than {DESCRIPTORS_MIN}"),
        "raise the limit there: `ulimit -n 65536`, or LimitNOFILE= of the service",
    );
}

fn judge_cluster(facts: &ClusterFacts, findings: &mut Findings) {
    findings.check(
        facts.own_build != facts.build,
        format!("this program is build {}, and the master's is {}", facts.own_build, facts.build),
        "use the same file everywhere: copy it, or restart master and workers with this one",
    );
    if let Some(trouble) = &facts.trouble {
        let wrong = format!("the master accepts no jobs: {trouble}");
        findings.add(wrong, "free some space where its state directory is, or fix what it reports");
    }
    findings.check(
        facts.workers.is_empty(),
        "the master has no workers: jobs wait".to_owned(),
        "start one with `gristmill cluster worker`, on another machine with --join FILE",
    );
    for (lost, since) in &facts.given_up {
        let (worker, host, pid, since) = (lost.worker, &lost.host, lost.pid, since.seconds());
        findings.add(
            format!(
                "{worker} on {host} was lost {since:.0} s ago, as it sent nothing; the end of its process {pid} was not \
                 reported"
            ),
            format!("check that this machine runs and reaches the master; {}", remedy_of_hanging(host, pid)),
        );
    }
}

/// Remedy for a process that may hang.
fn remedy_of_hanging(host: &str, pid: u32) -> String {
    format!(
        "on {host}, `ps -o stat= -p {pid}` prints T if the process was stopped: then `kill -CONT {pid}`; else its disk or \
         machine hangs, or `kill -KILL {pid}` and `gristmill cluster worker` starts another in its place"
    )
}

fn judge_worker(facts: &WorkerFacts, all: &ClusterFacts, reserve_bytes: u64, findings: &mut Findings) {
    let (host, pid) = (&facts.host, facts.pid);
    let who = format!("{} on {host}", facts.worker);
    if facts.away {
        let wrong = format!("{who} is disconnected, and expected back");
        return findings.add(wrong, "check that it runs, and that its machine reaches the master");
    }
    let (check, offset_ms) = match &facts.check {
        Ok(heard) => heard,
        Err(Unheard::Unreached(why)) => {
            return findings.add(
                format!("{who} is not reached from here: {why}"),
                "open its port in the firewall (`cluster worker --listen ADDR:PORT-PORT` fixes it), or start it with --advertise \
                 HOST under which it is reached",
            );
        }
        Err(Unheard::Hangs(limit)) => {
            let seconds = limit.as_secs_f64();
            return findings.add(
                format!(
                    "{who} hangs: its process {pid} accepts connections, and sent nothing for {seconds} s"
                ),
                remedy_of_hanging(host, pid),
            );
        }
    };
    findings.check(
        check.disk_free_bytes < reserve_bytes,
        format!(
            "{} are free in a spill directory of {who}, less than the {} of --disk-reserve",
            Bytes(check.disk_free_bytes),
            Bytes(reserve_bytes)
        ),
        "free some space there, or start it with another --spill-dir",
    );
    findings.check(
        check.build != all.build,
        format!("{who} is build {}, and the master's is {}", check.build, all.build),
        "restart it with the master's file",
    );
    judge_descriptors(&who, check.descriptors, findings);
    findings.check(
        offset_ms.abs() > CLOCKS_APART_MS_MAX,
        format!("the clock of {who} is {:+.1} s from the one here", *offset_ms as f64 / 1000.0),
        "let both follow a server: `timedatectl set-ntp true`",
    );
    for (peer, why) in all.workers.iter().zip(&check.unreached) {
        // A worker that hangs is reported once, by its own finding.
        if let Some(why) = why
            && !matches!(peer.check, Err(Unheard::Hangs(_)))
        {
            findings.add(
                format!("{who} does not reach {} at {}: {why}", peer.worker, peer.endpoint),
                "open that port in the firewalls between them, or give that worker an --advertise HOST",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_runtime::api::GivenUpWorker;
    use gristmill_scheduler::ids::WorkerId;
    use gristmill_scheduler::units::Span;
    use gristmill_worker::agent::check::WorkerCheck;
    use gristmill_worker::http::Endpoint;
    use std::time::Duration;

    fn healthy() -> DoctorFacts {
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
                    unreached: vec![None, None],
                },
                30,
            )),
        };
        DoctorFacts {
            machine: LocalFacts {
                memory_bytes: 8 << 30,
                memory_available_bytes: 4 << 30,
                memory_named_bytes: Some(2 << 30),
                workers: 2,
                spill_dirs: vec![("/tmp".into(), Ok(10 << 30))],
                reserve_bytes: 1 << 30,
                descriptors: 65536,
            },
            master: MasterFacts::There(ClusterFacts {
                own_build: "b".to_owned(),
                build: "b".to_owned(),
                trouble: None,
                workers: vec![worker(1), worker(2)],
                given_up: Vec::new(),
            }),
        }
    }

    /// Returns the cluster of these facts.
    fn cluster_facts(facts: &mut DoctorFacts) -> &mut ClusterFacts {
        match &mut facts.master {
            MasterFacts::There(cluster) => cluster,
            _ => unreachable!("healthy facts have one"),
        }
    }

    /// Report of the second worker.
    fn second_check(facts: &mut DoctorFacts) -> &mut (WorkerCheck, i64) {
        cluster_facts(facts).workers[1].check.as_mut().unwrap()
    }

    #[test]
    fn a_healthy_box_has_no_findings_with_a_master_or_without() {
        assert_eq!(judge(&healthy()), []);
        assert_eq!(judge(&DoctorFacts { master: MasterFacts::None, ..healthy() }), []);
    }

    #[test]
    fn each_fault_is_found_alone_and_named_with_what_to_do() {
        type DoctorFault = (fn(&mut DoctorFacts), &'static str);
        let faults: [DoctorFault; 16] = [
            (
                |it| it.machine.memory_available_bytes = 100 << 20,
                "of memory are free, and 2 worker processes need",
            ),
            (|it| it.machine.memory_named_bytes = Some(9 << 30), "--memory is 9"),
            (|it| it.machine.spill_dirs[0].1 = Ok(1 << 20), "are free in the spill directory /tmp"),
            (
                |it| it.machine.spill_dirs[0].1 = Err("read-only".into()),
                "nothing can be written to the spill directory /tmp: read-only",
            ),
            (|it| it.machine.descriptors = 256, "may have 256 files and connections open"),
            (
                |it| it.master = MasterFacts::Unusable { why: "the master is silent".into(), remedy: "wait" },
                "the master is silent",
            ),
            (|it| cluster_facts(it).own_build = "c".into(), "this program is build c, and the master's is b"),
            (|it| cluster_facts(it).trouble = Some("disk full".into()), "accepts no jobs: disk full"),
            (|it| cluster_facts(it).workers.clear(), "has no workers"),
            (
                |it| cluster_facts(it).workers[1].check = Err(Unheard::Unreached("refused".into())),
                "worker-2 on host is not reached from here: refused",
            ),
            (
                |it| cluster_facts(it).workers[1].check = Err(Unheard::Hangs(Duration::from_secs(3))),
                "worker-2 on host hangs: its process 4002 accepts connections, and sent nothing for 3 s",
            ),
            (
                |it| {
                    let one =
                        GivenUpWorker { worker: WorkerId(3), host: "host".into(), pid: 4003, given_up_ns: 0 };
                    cluster_facts(it).given_up.push((one, Span::whole_seconds(40)));
                },
                "worker-3 on host was lost 40 s ago, as it sent nothing; the end of its process 4003 ",
            ),
            (|it| second_check(it).1 = -90_000, "the clock of worker-2 on host is -90.0 s"),
            (
                |it| second_check(it).0.disk_free_bytes = 7,
                "7 B are free in a spill directory of worker-2 on host",
            ),
            (|it| second_check(it).0.build = "old".into(), "worker-2 on host is build old"),
            (
                |it| second_check(it).0.unreached[0] = Some("no route".into()),
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
    fn worker_that_hangs_is_named_once_whatever_the_others_report_of_the_route_to_it() {
        let mut facts = healthy();
        cluster_facts(&mut facts).workers[0].check = Err(Unheard::Hangs(Duration::from_secs(3)));
        second_check(&mut facts).0.unreached[0] = Some("gave up".into());
        let findings = judge(&facts);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].wrong.starts_with("worker-1 on host hangs: "), "{findings:?}");
        assert!(findings[0].remedy.contains("`kill -CONT 4001`"), "{findings:?}");
    }
}
