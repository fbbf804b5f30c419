//! Tests of the submitter's route for parts, over real connections.

use super::*;
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId};
use gristmill_worker::commit::{TEMPORARY, built_name};
use gristmill_worker::http::{Endpoint, HttpError, Plaintext, Pool, Timeouts};
use std::path::PathBuf;

/// A submitter that receives parts into a directory.
struct Stand {
    directory: tempfile::TempDir,
    endpoint: Endpoint,
    key: Secret,
    permit_key: Secret,
    serving: tokio::task::JoinHandle<()>,
}

impl Stand {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(TEMPORARY)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::of_address(listener.local_addr().unwrap(), None);
        let (key, permit_key) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        let auth = SubmitterAuth { key: key.clone(), permit_key: permit_key.clone() };
        let files = Served::Listed(Arc::default());
        let parts = Parts {
            name: "probe-1".parse().unwrap(),
            directory: Arc::new(Directory::open(&directory.path().join(TEMPORARY)).unwrap()),
            sync: true,
        };
        let serving = tokio::spawn(run(listener, Transport::Plain, auth, files, Some(parts)));
        Self { directory, endpoint, key, permit_key, serving }
    }

    fn built(&self, attempt: AttemptId) -> PathBuf {
        self.directory.path().join(TEMPORARY).join(built_name(&"probe-1".parse().unwrap(), attempt))
    }

    fn permit(&self, attempt: AttemptId) -> Secret {
        permit(&self.permit_key, &attempt.file_name())
    }

    /// Sends a part. Returns the submitter's response.
    async fn put(&self, attempt: AttemptId, content: &str, secret: &Secret) -> Result<FileStamp, StatusCode> {
        let (bytes, crc) = (content.len(), crc32c::crc32c(content.as_bytes()));
        let path = format!("/parts/{}/{bytes}/{crc:08x}", attempt.file_name());
        let body = http::full(content.to_owned());
        let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
        match pool.request(&self.endpoint, Some(secret), Method::PUT, &path, body).await {
            Ok(mut answer) => {
                Ok(serde_json::from_slice(&answer.body_mut().collect(1000).await.unwrap()).unwrap())
            }
            Err(HttpError::Unauthorized { .. }) => Err(StatusCode::UNAUTHORIZED),
            Err(HttpError::Status { status, .. }) => Err(status),
            Err(other) => panic!("{other}"),
        }
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn attempt(epoch: u32) -> AttemptId {
    TaskId::reduce(JobId(1), 0).attempt(epoch)
}

#[tokio::test]
async fn part_is_taken_with_the_permit_of_its_attempt_and_with_nothing_else() {
    let stand = Stand::start().await;
    // A worker that has left knows the job's key, and its former permit.
    for secret in [&stand.key, &stand.permit(attempt(0)), &stand.permit_key.derive("reduce-0.1")] {
        let answer = stand.put(attempt(1), "not allowed", secret).await;
        assert_eq!(answer, Err(StatusCode::UNAUTHORIZED));
    }
    assert_eq!(fs::read_dir(stand.directory.path().join(TEMPORARY)).unwrap().count(), 0);
    let stamp = stand.put(attempt(1), "allowed", &stand.permit(attempt(1))).await.unwrap();
    assert_eq!(fs::read_to_string(stand.built(attempt(1))).unwrap(), "allowed");
    assert_eq!(stamp, FileStamp::from_metadata(&fs::metadata(stand.built(attempt(1))).unwrap()));
}

#[tokio::test]
async fn part_of_an_earlier_attempt_is_beside_that_of_the_later_and_each_is_sent_once() {
    let stand = Stand::start().await;
    let later = stand.put(attempt(1), "of the later", &stand.permit(attempt(1))).await.unwrap();
    stand.put(attempt(0), "of the earlier", &stand.permit(attempt(0))).await.unwrap();
    let again = stand.put(attempt(1), "another one!", &stand.permit(attempt(1))).await;
    assert_eq!(again, Err(StatusCode::CONFLICT));
    assert_eq!(later, FileStamp::from_metadata(&fs::metadata(stand.built(attempt(1))).unwrap()));
    assert_eq!(fs::read_to_string(stand.built(attempt(1))).unwrap(), "of the later");
    let names = fs::read_dir(stand.directory.path().join(TEMPORARY)).unwrap();
    assert_eq!(names.count(), 2, "nothing is left of what was refused");
}

#[tokio::test]
async fn part_of_a_named_output_lies_beside_that_of_the_main_one() {
    let stand = Stand::start().await;
    let permit = stand.permit(attempt(0));
    let path = format!("/parts/reduce-0.0/4/{:08x}/errors", crc32c::crc32c(b"some"));
    let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
    let put = pool.request(&stand.endpoint, Some(&permit), Method::PUT, &path, http::full("some")).await;
    put.unwrap();
    stand.put(attempt(0), "main", &permit).await.unwrap();
    let built = stand.built(attempt(0));
    assert_eq!(fs::read_to_string(&built).unwrap(), "main");
    assert_eq!(fs::read_to_string(format!("{}.errors", built.display())).unwrap(), "some");
}

#[tokio::test]
async fn file_of_any_reduce_is_taken_whatever_the_number_of_partitions() {
    let stand = Stand::start().await;
    // Rests of divided reduces have the indices from the number of partitions on.
    for index in [0, 1, 2, 99_999, 1 << 25, u32::MAX] {
        let rest = TaskId::reduce(JobId(1), index).attempt(2);
        let stamp = stand.put(rest, "a rest", &stand.permit(rest)).await.unwrap();
        assert_eq!(fs::read_to_string(stand.built(rest)).unwrap(), "a rest", "{index}");
        assert_eq!(stamp, FileStamp::from_metadata(&fs::metadata(stand.built(rest)).unwrap()));
        let other = TaskId::reduce(JobId(1), index).attempt(3);
        assert_eq!(stand.put(other, "a rest", &stand.permit(rest)).await, Err(StatusCode::UNAUTHORIZED));
    }
}

#[tokio::test]
async fn part_for_a_directory_that_was_removed_is_refused_as_gone() {
    let stand = Stand::start().await;
    fs::remove_dir_all(stand.directory.path().join(TEMPORARY)).unwrap();
    let answer = stand.put(attempt(0), "too late", &stand.permit(attempt(0))).await;
    assert_eq!(answer, Err(StatusCode::GONE));
}

#[test]
fn part_paths_that_name_other_files_are_refused() {
    assert!(PutPart::parse("/parts/reduce-0.0/12/0000beef").is_some_and(|put| put.output.is_none()));
    let named = PutPart::parse("/parts/reduce-0.0/12/0000beef/errors").unwrap();
    assert_eq!(named.output.unwrap().as_str(), "errors");
    for path in [
        "/parts/../12/0",
        "/parts/.hidden/12/0",
        "/parts//12/0",
        "/parts/reduce-0.0/12/0/one/more",
        "/parts/reduce-0.0/12/0/",
        "/parts/reduce-0.0/12/0/..",
        "/parts/reduce-0.0/12/0/_temporary",
        "/parts/reduce-0.0/12/0/-",
        "/parts/reduce-0.0/12/0/part-00000",
        "/parts/reduce-0.0/12/0/arriving-1",
        "/parts/%2e%2e/12/0",
        "/parts/reduce-0.0/-1/0",
        "/parts/reduce-0.0/12/xyz",
    ] {
        assert!(PutPart::parse(path).is_none(), "{path}");
    }
}
