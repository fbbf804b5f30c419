//! Jobs that wait for the others of their batch, so that all arrive at one instant. Nothing of a batch is accepted before
//! it is complete: a client that is disconnected before that has no job.

use super::input::Submitted;
use crate::api::{ApiError, BATCH_JOBS_MAX, BATCH_NAME_MAX, ErrorCode, Submission};
use gristmill_scheduler::units::{Span, Time};
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// Time for which the first job of a batch waits for the last.
const BATCH_TIMEOUT: Span = Span::whole_seconds(60);

/// Submission, and the receiver of its response.
pub(super) type WaitingJob = (Box<Submission>, oneshot::Sender<Submitted>);

struct Batch {
    since: Time,
    jobs: u32,
    /// Jobs by their place.
    waiting: BTreeMap<u32, WaitingJob>,
}

/// Incomplete batches by name.
#[derive(Default)]
pub(super) struct Batches(BTreeMap<String, Batch>);

impl Batches {
    /// Adds a submission. Returns the jobs that arrive now: that of a submission without a batch, or all of a batch that
    /// is complete, in their order. A submission whose client is gone makes place for its repetition.
    pub(super) fn add(&mut self, now: Time, job: WaitingJob) -> Vec<WaitingJob> {
        let Some(place) = job.0.batch.clone() else { return vec![job] };
        self.0.values_mut().for_each(|batch| batch.waiting.retain(|_, (_, reply)| !reply.is_closed()));
        self.0.retain(|_, batch| !batch.waiting.is_empty());
        let waiting: usize = self.0.values().map(|batch| batch.waiting.len()).sum();
        let known = self.0.get(&place.batch);
        let wrong = match known {
            _ if place.jobs > BATCH_JOBS_MAX => {
                format!("a batch of {} jobs, at most {BATCH_JOBS_MAX}", place.jobs)
            }
            _ if place.batch.len() > BATCH_NAME_MAX => {
                format!("its name has more than {BATCH_NAME_MAX} bytes")
            }
            _ if place.place >= place.jobs => format!("place {} of {} jobs", place.place, place.jobs),
            _ if waiting >= BATCH_JOBS_MAX as usize => {
                format!("{waiting} jobs wait for the rest of their batches")
            }
            Some(batch) if batch.jobs != place.jobs => {
                format!("it has {} jobs, not {}", batch.jobs, place.jobs)
            }
            Some(batch) if batch.waiting.contains_key(&place.place) => {
                format!("place {} is taken", place.place)
            }
            _ => String::new(),
        };
        if !wrong.is_empty() {
            refuse(job, format!("the batch `{}`: {wrong}", place.batch));
            return Vec::new();
        }
        let batch = || Batch { since: now, jobs: place.jobs, waiting: BTreeMap::new() };
        let entry = self.0.entry(place.batch.clone()).or_insert_with(batch);
        entry.waiting.insert(place.place, job);
        if (entry.waiting.len() as u32) < place.jobs {
            return Vec::new();
        }
        let complete = self.0.remove(&place.batch);
        complete.into_iter().flat_map(|batch| batch.waiting.into_values()).collect()
    }

    /// Refuses the jobs of batches that were not completed in time.
    pub(super) fn give_up(&mut self, now: Time) {
        for (name, batch) in self.0.extract_if(.., |_, batch| now.since(batch.since) >= BATCH_TIMEOUT) {
            let found = batch.waiting.len();
            let words =
                format!("the batch `{name}`: {found} of {} jobs came within {BATCH_TIMEOUT}", batch.jobs);
            batch.waiting.into_values().for_each(|job| refuse(job, words.clone()));
        }
    }
}

fn refuse((_, reply): WaitingJob, message: String) {
    let _ = reply.send(Err(ApiError { code: ErrorCode::Spec, message }));
}

#[cfg(test)]
mod tests {
    use super::super::state::tests::submission;
    use super::*;
    use crate::api::BatchPlace;
    use tokio::sync::oneshot::Receiver;

    fn job(batch: &str, jobs: u32, place: u32) -> (WaitingJob, Receiver<Submitted>) {
        let (reply, response) = oneshot::channel();
        let batch = Some(BatchPlace { batch: batch.to_owned(), jobs, place });
        ((Box::new(crate::api::Submission { batch, ..submission() }), reply), response)
    }

    fn places(jobs: &[WaitingJob]) -> Vec<u32> {
        jobs.iter().filter_map(|(job, _)| Some(job.batch.as_ref()?.place)).collect()
    }

    fn refusal(mut response: Receiver<Submitted>) -> String {
        response.try_recv().unwrap().err().unwrap().message
    }

    #[test]
    fn batch_arrives_as_a_whole_in_the_order_of_places() {
        let mut batches = Batches::default();
        let (jobs, mut responses): (Vec<_>, Vec<_>) =
            [2, 0, 1].map(|place| job("a", 3, place)).into_iter().unzip();
        let (other, _other_response) = job("b", 2, 0);
        let mut jobs = jobs.into_iter();
        assert!(batches.add(Time(0), jobs.next().unwrap()).is_empty());
        assert!(batches.add(Time(1), other).is_empty());
        assert!(batches.add(Time(1), jobs.next().unwrap()).is_empty());
        let complete = batches.add(Time(2), jobs.next().unwrap());
        assert_eq!(places(&complete), [0, 1, 2]);
        assert!(
            responses.iter_mut().all(|response| response.try_recv().is_err()),
            "the master responds to them"
        );
        assert_eq!(batches.0.len(), 1);
    }

    #[test]
    fn incomplete_batch_is_refused_after_its_timeout_and_not_before() {
        let mut batches = Batches::default();
        let (first, response) = job("a", 2, 0);
        batches.add(Time(5), first);
        batches.give_up(Time(4) + BATCH_TIMEOUT);
        assert_eq!(batches.0.len(), 1);
        batches.give_up(Time(5) + BATCH_TIMEOUT);
        assert!(batches.0.is_empty());
        assert_eq!(refusal(response), "the batch `a`: 1 of 2 jobs came within 60.00 s");
    }

    #[test]
    fn job_whose_client_is_gone_makes_place_for_its_repetition() {
        let mut batches = Batches::default();
        let (first, response) = job("a", 2, 0);
        batches.add(Time(0), first);
        let (same, refused) = job("a", 2, 0);
        batches.add(Time(0), same);
        assert_eq!(refusal(refused), "the batch `a`: place 0 is taken");
        drop(response);
        let (again, _response) = job("a", 2, 0);
        assert!(batches.add(Time(0), again).is_empty());
        let (last, _last_response) = job("a", 2, 1);
        assert_eq!(places(&batches.add(Time(0), last)), [0, 1]);
    }

    #[test]
    fn batches_that_cannot_be_are_refused() {
        let mut batches = Batches::default();
        let mut wrong = |batch: &str, jobs, place| {
            let (job, response) = job(batch, jobs, place);
            assert!(batches.add(Time(0), job).is_empty());
            refusal(response)
        };
        assert_eq!(wrong("a", 1001, 0), "the batch `a`: a batch of 1001 jobs, at most 1000");
        assert_eq!(wrong("a", 2, 2), "the batch `a`: place 2 of 2 jobs");
        assert!(wrong(&"a".repeat(65), 2, 1).ends_with("its name has more than 64 bytes"));
        let mut responses = Vec::new();
        for place in 0..999 {
            let (job, response) = job("full", 1000, place);
            batches.add(Time(0), job);
            responses.push(response);
        }
        let (job, _response) = job("b", 2, 0);
        assert!(batches.add(Time(0), job).is_empty());
        let (late, refused) = self::job("b", 2, 1);
        assert!(batches.add(Time(0), late).is_empty());
        assert_eq!(refusal(refused), "the batch `b`: 1000 jobs wait for the rest of their batches");
    }
}
