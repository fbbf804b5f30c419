//! Tests of the synthetic job's rules: its times, its slices and its keys.

use super::*;
use clap::{Args, FromArgMatches};
use gristmill_worker::testing::Trial;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn job(flags: &[&str]) -> Synthetic {
    let command = Synthetic::augment_args(clap::Command::new("synthetic").no_binary_name(true));
    Synthetic::from_arg_matches(&command.try_get_matches_from(flags).unwrap()).unwrap()
}

#[test]
fn maps_emit_the_same_pairs_with_steps_and_without_and_spend_their_time() {
    let mut all = BTreeSet::new();
    for time in [Duration::from_millis(30), STEPPING_MIN] {
        let flags = ["--maps", "3", "--reduce-time", "0ms", "--map-bytes", "12345", "--map-time"];
        let time_text = format!("{}ms", time.as_millis());
        let job = job(&[&flags[..], &[&time_text]].concat());
        assert_eq!(job.steps(), if time < STEPPING_MIN { 0 } else { STEPS });
        let begun = Instant::now();
        let parts = Trial::from_plan(job.plan().unwrap()).parts(2).run().unwrap().parts;
        assert!(begun.elapsed() >= time);
        let numbers = |part: &Vec<u8>| -> Vec<u64> {
            let text = String::from_utf8(part.clone()).unwrap();
            text.split_whitespace().map(|number| number.parse().unwrap()).collect()
        };
        let found: Vec<Vec<u64>> = parts.iter().map(numbers).collect();
        assert_eq!((found[0][0] + found[1][0], found[0][1] + found[1][1]), (3 * 124, 3 * 12345), "{found:?}");
        all.insert(parts);
    }
    assert_eq!(all.len(), 1, "pairs follow from the seed alone");
}

#[test]
fn default_job_is_that_of_no_flags() {
    assert_eq!(format!("{:?}", Synthetic::default()), format!("{:?}", job(&[])));
}

#[test]
fn tasks_draw_different_times_that_depend_only_on_seed_and_task() {
    let job = job(&["--map-time", "exp:50ms", "--seed", "7"]);
    let time = |stream, task| job.map_time.draw(&mut job.draws(stream, task));
    assert_eq!(time(TaskStream::Map, 3), time(TaskStream::Map, 3));
    assert_ne!(time(TaskStream::Map, 3), time(TaskStream::Map, 4));
    assert_ne!(time(TaskStream::Map, 3), time(TaskStream::Reduce, 3));
}

#[test]
fn work_that_is_told_beforehand_is_what_the_tasks_draw() {
    let job = job(&[
        "--maps",
        "3",
        "--map-time",
        "exp:50ms",
        "--reduce-time",
        "uniform:1ms..9ms",
        "--map-bytes",
        "10",
    ]);
    let work = job.work(2).unwrap();
    let drawn = |task| job.map_work(task, &mut job.draws(TaskStream::Map, task)).0.as_secs_f64();
    assert_eq!(work.map_seconds, [drawn(0), drawn(1), drawn(2)]);
    assert_eq!(work.reduce_seconds, [0, 1].map(|task| job.reduce_work(task).as_secs_f64()));
    assert_eq!(work.shuffle_bytes, 30.0);
    let unread = Synthetic { times: Some("file".into()), ..Synthetic::default() };
    assert_eq!(unread.work(1), None, "the file has not been read yet");
}

#[test]
fn passing_time_ends_as_soon_as_the_task_is_cancelled() {
    for flags in [&["--spin"][..], &[]] {
        let mut looks = 0;
        job(flags).pass(Duration::from_secs(3600), || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }
}

#[test]
fn passing_time_takes_at_least_that_time_and_what_the_looks_take_on_top() {
    let (time, look) = (Duration::from_millis(25), Duration::from_millis(10));
    for flags in [&["--spin"][..], &[]] {
        let (start, mut looks) = (Instant::now(), 0);
        job(flags).pass(time, || {
            std::thread::sleep(look);
            looks += 1;
            false
        });
        assert!(time + look * looks <= start.elapsed(), "{looks} looks");
    }
}

#[test]
fn reduces_have_a_border_for_each_slice_up_to_a_limit() {
    assert_eq!(borders(Duration::ZERO), 0);
    assert_eq!(borders(Duration::from_nanos(1)), 1);
    assert_eq!(borders(2 * BORDER_EVERY), 2);
    assert_eq!(borders(Duration::from_secs(3600)), BORDERS_MAX);
}

proptest! {
    #[test]
    fn keys_go_to_a_partition_that_exists_and_borders_to_their_own(
        key in prop::collection::vec(any::<u8>(), 0..=KEY_BYTES),
        partitions in 1..200_u32,
        place in any::<u32>(),
        count in 1..=BORDERS_MAX,
    ) {
        prop_assert!(SpreadPartitioner.partition(&key, partitions) < partitions);
        let (partition, index) = (place % partitions, place % count);
        let key = Border { partition, index }.key(count);
        prop_assert_eq!(SpreadPartitioner.partition(&key, partitions), partition);
        prop_assert_eq!(Border::from_key(&key).map(|border| border.index), Some(index));
    }

    #[test]
    fn borders_of_a_reduce_ascend(count in 2..=BORDERS_MAX) {
        let keys: Vec<_> = (0..count).map(|index| Border { partition: 3, index }.key(count)).collect();
        prop_assert!(keys.is_sorted());
        prop_assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), count as usize);
    }
}

#[test]
fn keys_are_spread_evenly_over_partitions() {
    let mut draws = job(&[]).draws(TaskStream::Map, 0);
    let mut counts = [0_u32; 10];
    for _ in 0..100_000 {
        counts[SpreadPartitioner.partition(&draws.next_u64().to_be_bytes(), 10) as usize] += 1;
    }
    assert!(counts.iter().all(|count| (9_000..11_000).contains(count)), "{counts:?}");
}

#[test]
fn parameters_travel_as_text() {
    let job = job(&["--map-time", "uniform:10ms..90ms", "--map-bytes", "1MiB"]);
    let text = serde_json::to_string(&job).unwrap();
    let back: Synthetic = serde_json::from_str(&text).unwrap();
    assert_eq!(back.map_time, job.map_time);
    assert_eq!(back.map_bytes, 1 << 20);
}
