//! What an attached submitter offers to workers that do not see its files: its inputs, and a place for parts.
//!
//! Runs only when the master is not on this machine's loopback. Serves the files of one job to whoever has the
//! job's key. Not here: planning the job (`submit`).

use gristmill_worker::agent::files::{Served, serve_range};
use gristmill_worker::answer;
use gristmill_worker::commit::{TEMPORARY, publish};
use gristmill_worker::http::{Body, Door, Doors, Secret, ServerConfig, Transport, serve};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;

/// Bytes of a part that are written at once.
const WRITE_BYTES: usize = 1 << 20;

struct KeyDoors(Secret);

impl Doors for KeyDoors {
    fn secret_for(&self, method: &Method, path: &str) -> Door {
        match (method, path) {
            (&Method::POST, path) if path.starts_with("/files/") => Door::Secret(self.0.clone()),
            (&Method::PUT, path) if path.starts_with("/parts/") => Door::Secret(self.0.clone()),
            _ => Door::Closed,
        }
    }
}

/// Serves until dropped (the task it is spawned in is aborted).
pub async fn run(listener: TcpListener, transport: Transport, key: Secret, files: Served, output: PathBuf) {
    let config = Arc::new(ServerConfig::new(transport));
    let handler = move |request: Request<Incoming>| respond(files.clone(), output.clone(), request);
    serve(listener, config, Arc::new(KeyDoors(key)), handler, std::future::pending()).await;
}

async fn respond(files: Served, output: PathBuf, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if path.starts_with("/files/") {
        return serve_range(files, request).await;
    }
    let Some(put) = PutPart::parse(&path) else { return answer::status(StatusCode::NOT_FOUND) };
    match receive(&output, &put, request.into_body()).await {
        Ok(()) => answer::status(StatusCode::OK),
        Err(Refusal::Broken) => answer::status(StatusCode::BAD_REQUEST),
        Err(Refusal::Disk(source)) => {
            answer::bytes(StatusCode::INSUFFICIENT_STORAGE, format!("could not write {}: {source}", put.name))
        }
    }
}

/// `/parts/JOB/ATTEMPT/NAME/BYTES/CRC/REPLACE`
struct PutPart {
    attempt: String,
    name: String,
    bytes: u64,
    crc32c: u32,
    replace: bool,
}

impl PutPart {
    fn parse(path: &str) -> Option<Self> {
        let mut fields = path.strip_prefix("/parts/")?.split('/');
        let _job = fields.next()?;
        let attempt = fields.next()?.to_owned();
        let name = fields.next()?.to_owned();
        let bytes = fields.next()?.parse().ok()?;
        let crc32c = u32::from_str_radix(fields.next()?, 16).ok()?;
        let replace = fields.next()? == "1";
        // Both become file names: nothing but what a worker of ours would send.
        let plain =
            attempt.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.');
        let safe = plain && !attempt.starts_with('.') && crate::output_dir::is_part(&name);
        (safe && fields.next().is_none()).then_some(Self { attempt, name, bytes, crc32c, replace })
    }
}

enum Refusal {
    /// The body is not what was announced.
    Broken,
    Disk(io::Error),
}

async fn receive(output: &Path, put: &PutPart, mut body: Incoming) -> Result<(), Refusal> {
    let folder = output.join(TEMPORARY).join(format!("{}.received", put.attempt));
    let built = folder.join(&put.name);
    let result = async {
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(Refusal::Disk(error)),
            _ => {}
        }
        let file = fs::File::create(&built).map_err(Refusal::Disk)?;
        let mut file = io::BufWriter::with_capacity(WRITE_BYTES, file);
        let (mut bytes, mut crc) = (0, 0);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Refusal::Broken)?.into_data() else { continue };
            bytes += data.len() as u64;
            if put.bytes < bytes {
                return Err(Refusal::Broken);
            }
            crc = crc32c::crc32c_append(crc, &data);
            file.write_all(&data).map_err(Refusal::Disk)?;
        }
        if (bytes, crc) != (put.bytes, put.crc32c) {
            return Err(Refusal::Broken);
        }
        let file = file.into_inner().map_err(|error| Refusal::Disk(error.into_error()))?;
        file.sync_all().map_err(Refusal::Disk)?;
        publish(&built, &output.join(&put.name), put.replace).map_err(Refusal::Disk)
    };
    let result = result.await;
    let _ = fs::remove_dir_all(&folder);
    result
}

#[cfg(test)]
mod tests {
    use super::PutPart;

    #[test]
    fn part_paths_that_name_other_files_are_refused() {
        assert!(PutPart::parse("/parts/job-1/reduce-0.0/part-00000/12/0000beef/0").is_some());
        for path in [
            "/parts/job-1/reduce-0.0/../12/0/0",
            "/parts/job-1/../part-00000/12/0/0",
            "/parts/job-1/reduce-0.0/part-0000x/12/0/0",
            "/parts/job-1/reduce-0.0/_SUCCESS/12/0/0",
            "/parts/job-1/reduce-0.0/part-00000/12/0/0/more",
            "/parts/job-1/%2e%2e/part-00000/12/0/0",
            "/parts/job-1/reduce-0.0/part-00000/-1/0/0",
        ] {
            assert!(PutPart::parse(path).is_none(), "{path}");
        }
    }
}
