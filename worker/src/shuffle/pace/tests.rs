//! Tests of rates, and of the order of bytes.

use super::bucket::TokenBucket;
use super::lanes::{GRACE, PacedLanes};
use super::*;
use crate::protocol::{LaneOrder, LaneShare};
use crate::shuffle::pace::incoming::TIMEOUT;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::Span;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn rate(bytes_per_second: u64) -> NonZeroU64 {
    NonZeroU64::new(bytes_per_second).unwrap()
}

fn order(grants: &[(u32, LaneShare)]) -> LaneOrder {
    let grants = grants.iter().map(|&(job, share)| (JobId(job), share)).collect();
    LaneOrder { grants, ..LaneOrder::default() }
}

/// Lets bytes pass for some time, as many as possible each millisecond; a granted request asks again at once. Returns
/// bytes by job.
fn run(lanes: &mut PacedLanes, from: Time, milliseconds: u64, chunk: u64) -> BTreeMap<u32, u64> {
    let mut had = BTreeMap::new();
    for tick in 0..milliseconds {
        let now = from + Span::milliseconds(tick);
        while let Some((job, request)) = lanes.grant(now) {
            *had.entry(job.0).or_default() += chunk;
            lanes.request(job, request, chunk);
        }
    }
    had
}

/// Opens one request of each of these jobs, numbered as its job, that asks for a chunk.
fn asking(lanes: &mut PacedLanes, jobs: &[u32], chunk: u64) {
    for &job in jobs {
        lanes.open(JobId(job));
        lanes.request(JobId(job), u64::from(job), chunk);
    }
}

proptest! {
    #[test]
    fn bucket_passes_what_the_rate_allows_and_no_more_than_a_burst_and_a_chunk_beyond(
        bytes_per_second in 1_000..10_000_000_000_u64,
        pauses in prop::collection::vec(0..20_000_000_u64, 1..100),
    ) {
        let mut bucket = TokenBucket::new(rate(bytes_per_second), Time::ZERO);
        let (mut now, mut passed) = (Time::ZERO, 0);
        let chunk = chunk_bytes(rate(bytes_per_second));
        let within = |now: Time| u128::from(now.0) * u128::from(bytes_per_second) / 1_000_000_000;
        let burst = u128::from(bucket.burst_bytes);
        for pause in pauses {
            // A late caller that takes all that is available then.
            now = bucket.ready_at(now) + Span(pause);
            while bucket.take(chunk, now) {
                passed += u128::from(chunk);
            }
            prop_assert!(now < bucket.ready_at(now));
            prop_assert!(passed <= within(now) + burst + u128::from(chunk), "{passed} by {now:?}");
            if pauses_fit(pause, bytes_per_second, burst) {
                prop_assert!(within(now) <= passed, "{passed} by {now:?}");
            } else {
                // Bytes beyond the capacity of the bucket are lost; the count restarts.
                (bucket, now, passed) = (TokenBucket::new(rate(bytes_per_second), Time::ZERO), Time::ZERO, 0);
            }
        }
    }

    #[test]
    fn paced_bytes_follow_the_weights_within_two_chunks(
        weights in prop::collection::vec(1..8_u32, 1..5),
        megabytes in 1..100_u64,
    ) {
        let bytes_per_second = rate(megabytes * 1_000_000);
        let chunk = chunk_bytes(bytes_per_second);
        let grants: Vec<_> =
            (1..).zip(&weights).map(|(job, &weight)| (job, LaneShare::Weight(f64::from(weight)))).collect();
        let mut lanes = PacedLanes::new(bytes_per_second, Time::ZERO);
        lanes.order(&order(&grants));
        let jobs: Vec<u32> = grants.iter().map(|&(job, _)| job).collect();
        asking(&mut lanes, &jobs, chunk);
        let had = run(&mut lanes, Time::ZERO, 2000, chunk);
        let total: u64 = had.values().sum();
        for (job, weight) in (1..).zip(&weights) {
            let due = total as f64 * f64::from(*weight) / f64::from(weights.iter().sum::<u32>());
            let off = (had.get(&job).copied().unwrap_or(0) as f64 - due).abs();
            prop_assert!(off <= 2.0 * chunk as f64 * weights.len() as f64, "{had:?} of {weights:?}");
        }
    }
}

/// True if the bucket did not overflow during this pause.
fn pauses_fit(pause: u64, bytes_per_second: u64, burst: u128) -> bool {
    u128::from(pause) * u128::from(bytes_per_second) < burst * 1_000_000_000
}

#[test]
fn paced_bytes_all_go_to_the_most_urgent_job_while_it_asks() {
    let mut lanes = PacedLanes::new(rate(10_000_000), Time::ZERO);
    lanes.order(&order(&[(2, LaneShare::All), (1, LaneShare::All)]));
    asking(&mut lanes, &[1, 2, 3], 16_000);
    let had = run(&mut lanes, Time::ZERO, 1000, 16_000);
    assert_eq!(had.keys().copied().collect::<Vec<_>>(), [2]);
    assert!((9_900_000..10_200_000).contains(&had[&2]), "{had:?}");
    lanes.close(JobId(2), 2);
    let had = run(&mut lanes, Time::ZERO + Span::whole_seconds(1), 1000, 16_000);
    assert_eq!(had.keys().copied().collect::<Vec<_>>(), [1]);
}

#[test]
fn paced_bytes_go_to_the_oldest_request_of_a_job() {
    let mut lanes = PacedLanes::new(rate(10_000_000), Time::ZERO);
    for request in [7, 3, 5] {
        lanes.open(JobId(1));
        lanes.request(JobId(1), request, 1000);
    }
    let served: Vec<u64> =
        std::iter::from_fn(|| lanes.grant(Time::ZERO)).map(|(_, request)| request).collect();
    assert_eq!(served, [3, 5, 7]);
}

#[test]
fn paced_bytes_wait_for_the_urgent_job_to_ask_again_but_not_for_long() {
    let mut lanes = PacedLanes::new(rate(10_000_000), Time::ZERO);
    lanes.order(&order(&[(1, LaneShare::All), (2, LaneShare::All)]));
    asking(&mut lanes, &[1, 2], 1000);
    assert_eq!(lanes.grant(Time::ZERO), Some((JobId(1), 1)));
    let grace_over = Time::ZERO + GRACE;
    assert_eq!((lanes.grant(Time::ZERO), lanes.wake_at(Time::ZERO)), (None, Some(grace_over)));
    assert_eq!(lanes.grant(grace_over), Some((JobId(2), 2)));
}

#[test]
fn paced_bytes_do_not_wait_for_an_urgent_job_whose_requests_are_over() {
    let mut lanes = PacedLanes::new(rate(10_000_000), Time::ZERO);
    lanes.order(&order(&[(1, LaneShare::All), (2, LaneShare::All)]));
    asking(&mut lanes, &[1, 2], 1000);
    assert_eq!(lanes.grant(Time::ZERO), Some((JobId(1), 1)));
    lanes.close(JobId(1), 1);
    assert_eq!(lanes.grant(Time::ZERO), Some((JobId(2), 2)));
    assert!(lanes.asking.is_empty());
}

#[test]
fn paced_bytes_of_a_job_that_the_order_leaves_out_come_last() {
    let mut lanes = PacedLanes::new(rate(10_000_000), Time::ZERO);
    lanes.order(&LaneOrder { only: true, ..order(&[(2, LaneShare::All)]) });
    asking(&mut lanes, &[1, 2], 1000);
    assert_eq!(lanes.grant(Time::ZERO), Some((JobId(2), 2)));
    lanes.close(JobId(2), 2);
    assert_eq!(lanes.grant(Time::ZERO), Some((JobId(1), 1)));
}

#[tokio::test(start_paused = true)]
async fn fetches_take_as_long_as_the_rate_says() {
    let pace = InPace::start(rate(1_000_000));
    let began = Instant::now();
    let fetches = (0..4_u32).map(|number| {
        let stream = pace.open(JobId(number), u64::from(number));
        tokio::spawn(async move { stream.pass(500_000).await })
    });
    for fetch in fetches.collect::<Vec<_>>() {
        assert_eq!(fetch.await.unwrap(), Ok(()));
    }
    let took = began.elapsed().as_secs_f64();
    assert!((1.9..2.01).contains(&took), "{took} s for 2 MB at 1 MB/s");
}

#[tokio::test(start_paused = true)]
async fn fetch_of_an_urgent_job_passes_before_one_that_began_earlier() {
    let pace = InPace::start(rate(1_000_000));
    pace.order(order(&[(2, LaneShare::All), (1, LaneShare::All)]));
    let began = Instant::now();
    let fetch = |job: u32| {
        let stream = pace.open(JobId(job), u64::from(job));
        tokio::spawn(async move {
            assert_eq!(stream.pass(500_000).await, Ok(()));
            began.elapsed().as_secs_f64()
        })
    };
    let late = fetch(1);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let urgent = fetch(2);
    let (urgent, late) = (urgent.await.unwrap(), late.await.unwrap());
    assert!(urgent < 0.65, "{urgent} s: 0.1 s late, 0.5 s of bytes");
    assert!((0.9..1.01).contains(&late), "{late} s");
}

#[tokio::test(start_paused = true)]
async fn fetch_gives_way_when_nothing_is_left_to_it() {
    let pace = InPace::start(rate(1_000_000));
    pace.order(order(&[(2, LaneShare::All), (1, LaneShare::All)]));
    let urgent = pace.open(JobId(2), 2);
    let urgent = tokio::spawn(async move { urgent.pass(20_000_000).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    assert_eq!(pace.open(JobId(1), 1).pass(1).await, Err(Preempted));
    assert_eq!(began.elapsed().as_secs(), TIMEOUT.as_secs());
    assert_eq!(urgent.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn fetch_of_a_job_that_the_order_leaves_out_ends_and_frees_its_place() {
    let pace = InPace::start(rate(1_000_000));
    pace.order(LaneOrder { only: true, ..LaneOrder::default() });
    let began = Instant::now();
    assert_eq!(pace.open(JobId(1), 1).pass(500_000).await, Ok(()));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn answers_go_out_in_turn_and_as_fast_as_the_rate_says() {
    let pace = OutPace::new(rate(1_000_000));
    let began = Instant::now();
    let answers = (0..2).map(|_| {
        let pace = pace.clone();
        tokio::spawn(async move {
            for _ in 0..50 {
                pace.pass(10_000).await;
            }
            began.elapsed().as_secs_f64()
        })
    });
    for answer in answers.collect::<Vec<_>>() {
        let took = answer.await.unwrap();
        assert!((0.8..1.01).contains(&took), "{took} s for half of 1 MB at 1 MB/s, beside another");
    }
}

#[tokio::test(start_paused = true)]
async fn fetch_gives_way_at_once_when_its_job_is_forgotten() {
    let pace = InPace::start(rate(1_000_000));
    let began = Instant::now();
    let stream = pace.open(JobId(1), 1);
    let fetch = tokio::spawn(async move { stream.pass(10_000_000).await });
    tokio::time::sleep(Duration::from_millis(10)).await;
    pace.forget(JobId(2));
    pace.forget(JobId(1));
    assert_eq!(fetch.await.unwrap(), Err(Preempted));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}
