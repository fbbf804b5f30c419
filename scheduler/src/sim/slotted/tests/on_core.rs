//! Tests of the same policies on the live core. With tasks of one slot, nothing to fetch and one worker, the
//! core gives its slots to the same jobs, slot by slot.
//!
//! Outputs are empty, because a reduce with segments to fetch becomes ready after the slots of its job's last maps were
//! given to others; there the models differ. Reduces of several slots would add nothing. Reduces on several workers
//! wait for a slot of their home, which the model does not have.

use super::*;
use crate::command::Command;
use crate::core::{Core, CoreConfig};
use crate::event::{Event, Slots};
use crate::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use crate::job::{JobSpec, MapSpec};
use crate::placement::Pull;
use crate::station::Station;
use crate::units::{Bytes, Span};

/// Machines per job, by slot.
type Slotwise = BTreeMap<u64, BTreeMap<u64, [u32; 2]>>;

fn unit_job(slot: u32, maps: u32, reduces: u32) -> Job {
    job(slot, maps, &vec![1; reduces as usize])
}

fn spec(job: &Job) -> JobSpec {
    JobSpec::new(
        vec![MapSpec::anywhere(Bytes(1)); job.work[Station::Map] as usize],
        job.work[Station::Reduce] as u32,
    )
}

fn on_slots(name: &str, machines: u32, jobs: &[Job]) -> Slotwise {
    let story = story(name, false, machines, jobs);
    let by_job =
        |served: &Vec<SlotService>| served.iter().map(|job| (job.seq, [job.maps, job.reduces])).collect();
    story.slots.iter().map(|(&slot, served)| (slot, by_job(served))).collect()
}

/// Runs the jobs on a core. Its clock is at the start of a slot for all events, except for commit requests in the
/// middle.
fn on_core(name: &str, machines: u32, jobs: &[Job]) -> Slotwise {
    let mut core = Core::new(CoreConfig::default(), policy::by_name(name).unwrap(), Box::new(Pull::new()));
    let joined =
        Event::WorkerJoined { worker: WorkerId(1), host: HostId(1), slots: Slots::Unified(machines) };
    let mut events = vec![joined];
    let mut slotwise = Slotwise::new();
    let (mut next, mut ended) = (0, 0);
    for slot in 1.. {
        while let Some(job) = jobs.get(next).filter(|job| slot_of(job.arrival) <= slot) {
            events.push(Event::JobArrived { job: JobId(next as u32), spec: spec(job).into() });
            next += 1;
        }
        events.push(Event::Tick);
        let mut commands = Vec::new();
        core.handle(Time((slot - 1) * 1_000_000_000), &events, &mut commands);
        let launched: Vec<AttemptId> = commands
            .iter()
            .filter_map(|command| match command {
                Command::Launch { attempt, .. } => Some(*attempt),
                _ => None,
            })
            .collect();
        for attempt in &launched {
            let got = slotwise.entry(slot).or_default().entry(u64::from(attempt.task.job.0)).or_default();
            got[usize::from(attempt.task.kind == TaskKind::Reduce)] += 1;
        }
        // Tasks that write a part of the job's output request a commit: reduces, and maps of jobs without reduces.
        let writes = |attempt: &&AttemptId| {
            attempt.task.kind == TaskKind::Reduce || jobs[attempt.task.job.0 as usize].reduces.is_empty()
        };
        let asks: Vec<Event> =
            launched.iter().filter(writes).map(|&attempt| Event::CommitRequested { attempt }).collect();
        core.handle(Time((slot - 1) * 1_000_000_000 + 500_000_000), &asks, &mut commands);
        let launches = commands.iter().filter(|command| matches!(command, Command::Launch { .. })).count();
        assert_eq!(launches, launched.len(), "slot {slot}: something was launched in the middle");
        core.audit().unwrap();
        ended += commands.iter().filter(|command| matches!(command, Command::JobEnded { .. })).count();
        if ended == jobs.len() {
            break;
        }
        assert!(slot < 10_000, "the jobs do not end");
        events = launched.into_iter().map(finish).collect();
    }
    slotwise
}

fn finish(attempt: AttemptId) -> Event {
    match attempt.task.kind {
        TaskKind::Map => Event::MapFinished {
            attempt,
            output_bytes: Bytes(0),
            took: Span::whole_seconds(1),
            fingerprint: None,
        },
        TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes: Bytes(0), took: Span::default() },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_core_gives_its_slots_to_the_jobs_that_the_model_gives_machines(
        machines in 1..6_u32,
        parts in prop::collection::vec((0..4_u32, 1..8_u32, 0..6_u32), 1..8),
    ) {
        let mut slot = 1;
        let jobs: Vec<Job> = parts.into_iter().map(|(gap, maps, reduces)| {
            slot += gap;
            unit_job(slot, maps, reduces)
        }).collect();
        for name in ["fifo", "fair", "lrpt", "asrpt"] {
            prop_assert_eq!(on_core(name, machines, &jobs), on_slots(name, machines, &jobs), "{}", name);
        }
    }
}
