//! Links that are slow, silent, one-way or corrupt.

use super::cluster::Cluster;
use super::proxy::{Damage, Rule, Strike, Treatment, Way};
use super::row::{Effect, Scene, rows, three};
use crate::support::{Sandbox, until};
use std::time::{Duration, Instant};

rows! {
    /// A worker and the master cannot reach each other for two seconds: no work is repeated.
    Link two_seconds_without_the_master_change_nothing: ["N01"]
        at [Shuffle, Idle, Map, Spill, Merge, Reduce, BeforeCommit, AfterCommit]
        else "no worker and master need each other"
        within 10 s on three => silence_for_two_seconds;
    /// A worker and the master can no longer reach each other.
    Link worker_cut_off_from_the_master_changes_nothing: ["N02"]
        at [Reduce, Map, Spill, Shuffle, Merge, BeforeCommit, AfterCommit]
        else "no worker and master need each other"
        within 20 s on three => silence;
    /// Messages of a worker do not reach the master.
    Link worker_that_the_master_does_not_hear_changes_nothing: ["N03"]
        at [Map, Spill, Shuffle, Merge, Reduce, BeforeCommit, AfterCommit]
        else "no worker and master need each other"
        within 20 s on three => silence_to_the_master;
    /// Messages of the master do not reach a worker.
    Link worker_that_does_not_hear_the_master_changes_nothing: ["N03"]
        at [BeforeCommit, Map, Spill, Shuffle, Merge, Reduce, AfterCommit]
        else "no worker and master need each other"
        within 20 s on three => silence_from_the_master;
    /// The connection between a worker and the master is reset.
    Link reset_connection_to_the_master_changes_nothing: ["N09"]
        at [Shuffle, Idle, Map, Spill, Merge, Reduce, BeforeCommit, AfterCommit]
        else "no worker and master need each other"
        within 10 s on three => reset_master;
    /// Two workers cannot reach each other, while the master reaches both.
    Link two_workers_that_do_not_hear_each_other_change_nothing: ["N04"]
        at [Shuffle, Map, ShuffleFromDisk]
        else "no worker needs another"
        within 20 s on three => silence_between_two;
    /// One worker and all others cannot reach each other, while the master reaches all.
    Link worker_that_hears_no_other_changes_nothing: ["N05"]
        at [Shuffle, Map, ShuffleFromDisk]
        else "no worker needs another"
        within 20 s on three => silence_to_all_others;
    /// Everything arrives 50 ms late.
    Link delay_changes_nothing: ["N07"]
        at [Shuffle, Idle, Map, Spill, Merge, Reduce, BeforeCommit, AfterCommit]
        else "nothing goes over a link"
        within 20 s on three => delay_all;
    /// A worker's shuffle server sends at 1 Mbit/s.
    Link worker_that_sends_slowly_changes_nothing: ["N08"]
        at [Shuffle, Map, ShuffleFromDisk]
        else "no worker serves another"
        within 20 s on three => throttle_one;
    /// A worker's shuffle server sends byte by byte, ten per second.
    Link worker_that_drips_changes_nothing: ["N12"]
        at [Shuffle, Map, ShuffleFromDisk]
        else "no worker serves another"
        within 20 s on three => drip_one;
    /// Connections are reset in the middle of a segment.
    Link reset_in_a_segment_changes_nothing: ["N09"]
        at [Shuffle, Map, ShuffleFromDisk]
        else "no segment travels"
        within 20 s on three => reset_segments;
    /// Segments end too early, without an error of the connection.
    Link segment_that_is_cut_short_changes_nothing: ["N10"]
        at [Shuffle, Map, ShuffleFromDisk]
        else "no segment travels"
        within 20 s on three => cut_segments;
    /// One bit of a segment is flipped.
    Link flipped_bit_in_a_segment_changes_nothing: ["N11"]
        at [Shuffle, Map, ShuffleFromDisk]
        else "no segment travels"
        within 20 s on three => flip_segments;
}

/// The byte at which a connection is damaged: after the head of a response.
const IN_A_SEGMENT: u64 = 1000;

fn silence_for_two_seconds<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    const PAUSE: Duration = Duration::from_secs(2);
    let link = scene.cluster.to_master(scene.victim());
    link.set([Rule::all(Treatment::Hold)]);
    let start = Instant::now();
    Effect::at_least_once(|| link.treated()).unnoticed().heals(move || {
        until("the silence to pass", || (PAUSE <= start.elapsed()).then_some(()));
        link.heal();
    })
}

fn silent<'s>(scene: &'s Scene<'s>, rule: Rule) -> Effect<'s> {
    let link = scene.cluster.to_master(scene.victim());
    link.set([rule]);
    Effect::at_least_once(|| link.treated())
}

fn silence<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    silent(scene, Rule::all(Treatment::Hold))
}

fn silence_to_the_master<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    silent(scene, Rule::one_way(Treatment::Hold, Way::ToServer))
}

fn silence_from_the_master<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    silent(scene, Rule::one_way(Treatment::Hold, Way::ToClient))
}

fn reset_master<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let link = scene.cluster.to_master(scene.victim());
    link.set([Rule::all(Treatment::Refuse)]);
    until("the connection to be reset", || (0 < link.treated()).then_some(()));
    link.heal();
    Effect::at_least_once(|| link.treated())
}

fn delay_all<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let cluster = scene.cluster;
    for worker in 0..cluster.len() {
        let rule = Rule::all(Treatment::Delay(Duration::from_millis(50)));
        cluster.to_master(worker).set([rule]);
        cluster.set_rules(worker, [rule]);
    }
    Effect::at_least_once(|| cluster.fired().1)
}

/// Holds all bytes between the victim and these workers.
fn silence_between<'s>(scene: &'s Scene<'s>, others: impl Iterator<Item = usize>) -> Effect<'s> {
    let (cluster, victim) = (scene.cluster, scene.victim());
    let from = |worker| Rule::from_process(Treatment::Hold, cluster.pid(worker));
    let others: Vec<usize> = others.collect();
    others.iter().for_each(|other| cluster.set_rules(*other, [from(victim)]));
    cluster.set_rules(victim, others.into_iter().map(from));
    Effect::at_least_once(|| cluster.fired().1)
}

fn silence_between_two<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    silence_between(scene, [scene.other()].into_iter())
}

fn silence_to_all_others<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    silence_between(scene, scene.others())
}

/// Applies a treatment to what a worker other than the victim serves.
fn hinder_one<'s>(scene: &'s Scene<'s>, treatment: Treatment) -> Effect<'s> {
    let cluster = scene.cluster;
    cluster.set_rules(scene.other(), [Rule::one_way(treatment, Way::ToClient)]);
    Effect::at_least_once(|| cluster.fired().1)
}

fn throttle_one<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    hinder_one(scene, Treatment::Throttle(125_000))
}

fn drip_one<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    hinder_one(scene, Treatment::Drip(Duration::from_millis(100)))
}

/// Damages the first two connections of each worker's server that reach this byte.
fn damage<'s>(scene: &'s Scene<'s>, damage: Damage) -> Effect<'s> {
    let cluster = scene.cluster;
    for worker in 0..cluster.len() {
        cluster.strike(worker, Strike { damage, way: Way::ToClient, at: IN_A_SEGMENT, times: 2 });
    }
    Effect::proven(|| cluster.fired().0, 1..=6)
}

fn reset_segments<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    damage(scene, Damage::Reset)
}

fn cut_segments<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    damage(scene, Damage::Truncate)
}

fn flip_segments<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    damage(scene, Damage::Flip)
}

#[test]
fn detached_job_is_accepted_while_its_submitter_cannot_reach_one_of_the_workers() {
    let sandbox = Sandbox::new();
    let fleet = three(&sandbox).unwrap();
    let cluster = Cluster::start(&sandbox, &fleet);
    cluster.set_rules(0, [Rule::all(Treatment::Refuse)]);
    let (input, output) = (sandbox.write("text", "b a\na\n"), sandbox.text("out"));
    let submit = ["submit", "wordcount", &input, "--detach", "--reduces", "1", "--output", &output];
    let job = sandbox.gristmill(submit).finish().expect_code(0).stdout_text();
    assert!(0 < cluster.fired().1, "nobody has tried to reach the worker");
    cluster.heal();
    sandbox.gristmill(["wait", job.trim(), "--quiet"]).finish().expect_code(0);
    assert_eq!(cluster.end(), Vec::<String>::new());
}
