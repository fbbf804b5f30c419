//! Tests of the system's own use of the processors of a host.

use super::*;
use crate::sim::cluster::SystemWork;

fn on_one_core(workers: u32, slots: u32, work: SystemWork) -> Config {
    let mut config = unified(workers, slots);
    config.workers.iter_mut().for_each(|worker| worker.host = 0);
    Config { system: Some(SystemWork { cores: 1, ..work }), ..config }
}

fn ends_of(config: &Config, job: Job) -> Vec<f64> {
    ends(&watch(config, TestDeciders::new(Fifo::new()), &[job]).unwrap())
}

#[test]
fn tiny_tasks_take_what_the_system_takes_for_them_one_after_the_other() {
    let config = on_one_core(1, 4, SystemWork { task: [2.0, 5.0], ..SystemWork::default() });
    // Maps have the processor until 2, 4, 6 and 8. The report of the first waits for the 6 s of the others at each of
    // its four stops; then the reduce runs.
    assert_eq!(ends_of(&config, job(0.0, &[0.0; 4], &[0.0])), [2.0 + 4.0 * 6.0 + 5.0]);
    let two = Config { system: config.system.map(|work| SystemWork { cores: 2, ..work }), ..config };
    assert_eq!(ends_of(&two, job(0.0, &[0.0; 4], &[0.0])), [2.0 + 4.0 * 2.0 + 5.0]);
}

#[test]
fn long_tasks_hide_what_the_system_takes_for_others() {
    let config = on_one_core(1, 2, SystemWork { task: [1.0, 0.0], ..SystemWork::default() });
    // One starts to sleep at 1, the other at 2.
    assert_eq!(ends_of(&config, job(0.0, &[10.0, 10.0], &[0.0])), [12.0]);
}

#[test]
fn bytes_cost_the_map_that_puts_them_out_and_the_reduce_that_takes_them_in() {
    let config = on_one_core(1, 1, SystemWork { byte: [0.01, 0.02], ..SystemWork::default() });
    let job = Job { shuffle_bytes: 100.0, ..job(0.0, &[3.0], &[4.0]) };
    assert_eq!(ends_of(&config, job), [3.0 + 1.0 + 4.0 + 2.0]);
}

#[test]
fn outputs_that_are_fetched_wait_for_a_processor_and_those_read_in_place_do_not() {
    let config = on_one_core(2, 1, SystemWork { fetch: 1.0, ..SystemWork::default() });
    let job = Job { shuffle_bytes: 4e6, ..job(0.0, &[2.0, 2.0], &[1.0, 1.0]) };
    // Each home fetches one output; the second waits for the first at both stops of its report, until 5.
    assert_eq!(ends_of(&config, job.clone()), [6.0]);
    let alone = on_one_core(1, 2, SystemWork { fetch: 1.0, ..SystemWork::default() });
    assert_eq!(ends_of(&alone, job), [3.0]);
}

#[test]
fn request_takes_all_outputs_along_that_wait() {
    let config = on_one_core(2, 2, SystemWork { request: 3.0, ..SystemWork::default() });
    let job = Job { shuffle_bytes: 4e6, ..job(0.0, &[1.0; 4], &[0.0]) };
    // The home sends one request for the two outputs of the other worker.
    assert_eq!(ends_of(&config, job), [1.0 + 3.0]);
}

#[test]
fn bytes_from_another_worker_cost_beside_the_request() {
    let config = on_one_core(2, 1, SystemWork { fetch_byte: 0.01, ..SystemWork::default() });
    let job = Job { shuffle_bytes: 200.0, ..job(0.0, &[1.0; 2], &[0.0]) };
    assert_eq!(ends_of(&config, job), [1.0 + 1.0]);
}

#[test]
fn report_waits_for_a_processor_at_each_of_its_stops() {
    let config = on_one_core(1, 2, SystemWork { task: [3.0, 0.0], ..SystemWork::default() });
    // The maps have the processor until 3 and until 6; when the first ends, it is busy for 2 s more, four times.
    let seen = watch(&config, TestDeciders::new(Fifo::new()), &[job(0.0, &[1.0, 0.0], &[])]).unwrap();
    assert_eq!(ends(&seen), [4.0 + 4.0 * 2.0]);
}

#[test]
fn segments_cost_also_where_they_are_read_in_place() {
    let config = on_one_core(1, 4, SystemWork { fetch: 9.0, segment: 0.25, ..SystemWork::default() });
    let job = Job { shuffle_bytes: 4e6, ..job(0.0, &[2.0], &[1.0; 4]) };
    assert_eq!(ends_of(&config, job), [2.0 + 4.0 * 0.25 + 1.0]);
}

#[test]
fn costs_out_of_range_are_refused_by_name() {
    let none = Config { system: Some(SystemWork::default()), ..unified(1, 1) };
    let refused = |config: &Config| {
        watch(config, TestDeciders::new(Fifo::new()), &[job(0.0, &[1.0], &[1.0])]).err().unwrap().to_string()
    };
    assert!(refused(&none).contains("cores"), "{}", refused(&none));
    let negative = on_one_core(1, 1, SystemWork { fetch: -1.0, ..SystemWork::default() });
    assert!(refused(&negative).contains("-1"), "{}", refused(&negative));
}
