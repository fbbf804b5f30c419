//! Routes that a worker serves to other workers and submitters: segments, files, listings.

use super::config::WorkerConfig;
use super::{check, files};
use crate::http::{self, Access, Body, RouteAuth, Secret, ServerConfig};
use crate::input::FilePath;
use crate::input::list::list_local;
use crate::response;
use crate::segment::SpillDirs;
use crate::shuffle::pace::OutPace;
use crate::shuffle::serve;
use crate::shuffle::store::SegmentStore;
use files::Served;
use gristmill_scheduler::ids::JobId;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use std::sync::{Arc, OnceLock};

struct ShuffleAuth {
    store: SegmentStore,
    /// Secret that the master sends when the worker has joined.
    list: Arc<OnceLock<Secret>>,
}

impl ShuffleAuth {
    fn list(&self) -> Access {
        self.list.get().cloned().map_or(Access::Closed, Access::Secret)
    }
}

impl RouteAuth for ShuffleAuth {
    fn access(&self, method: &Method, path: &str, _: &str) -> Access {
        if [files::SAMPLE_ROUTE, check::CHECK_ROUTE].contains(&path) && method == Method::POST {
            return self.list();
        }
        let mut parts = path.strip_prefix('/').unwrap_or(path).splitn(2, '/');
        let asked = (parts.next(), parts.next().and_then(|job| job.parse::<JobId>().ok()));
        match asked {
            (Some("shuffle" | "files"), Some(job)) if method == Method::POST => {
                self.store.key(job).map_or(Access::Closed, Access::Secret)
            }
            (Some("list"), None) if method == Method::POST => self.list(),
            _ => Access::Closed,
        }
    }
}

/// Serves segments, files and listings to other workers and submitters.
pub(super) fn serve_shuffle(
    listener: tokio::net::TcpListener,
    config: &WorkerConfig,
    store: SegmentStore,
    list: Arc<OnceLock<Secret>>,
    mut shutdown: tokio::sync::watch::Receiver<bool>,
) {
    let auth = Arc::new(ShuffleAuth { store: store.clone(), list });
    let mut server = ServerConfig::new(config.bind.transport.clone());
    server.host_names.extend(config.settings.advertise.clone());
    let pace = config.settings.nic_bytes_per_second.map(OutPace::new);
    if let Some(pace) = &pace
        && let Err(error) = pace.keep_little_unsent(&listener)
    {
        tracing::warn!(%error, "the size of send buffers could not be set");
    }
    let (plaintext, spill) = (config.bind.permissions.plaintext(), SpillDirs::new(config.spill_dirs.clone()));
    let handler = move |request: Request<Incoming>| {
        let (store, pace, spill) = (store.clone(), pace.clone(), spill.clone());
        async move {
            match request.uri().path() == check::CHECK_ROUTE {
                true => check::answer_check(plaintext, spill, request).await,
                false => respond(store, pace, request).await,
            }
        }
    };
    tokio::spawn(async move {
        let stop = async move {
            let _ = shutdown.wait_for(|stop| *stop).await;
        };
        http::serve(listener, Arc::new(server), auth, handler, stop).await;
    });
}

async fn respond(store: SegmentStore, pace: Option<OutPace>, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if let Some(job) = path.strip_prefix("/shuffle/").and_then(|job| job.parse().ok()) {
        return serve::segments_at(pace.as_ref(), &store, job, request).await;
    }
    if path.starts_with("/files/") {
        return files::serve_range(Served::Any, request).await;
    }
    if path == "/list" {
        return answer_list(request).await;
    }
    response::status(StatusCode::NOT_FOUND)
}

async fn answer_list(request: Request<Incoming>) -> Response<Body> {
    let Ok(body) = http::read_limited(request.into_body(), files::REQUEST_BYTES_MAX).await else {
        return response::status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let Ok(path) = serde_json::from_slice::<FilePath>(&body) else {
        return response::status(StatusCode::BAD_REQUEST);
    };
    let listed = tokio::task::spawn_blocking(move || list_local(&path)).await;
    match listed {
        Ok(Ok(files)) => response::json(StatusCode::OK, &files),
        Ok(Err(error)) => response::json(files::refusal(&error), &crate::error_text::chain(&error)),
        Err(_) => response::status(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
