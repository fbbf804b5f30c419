//! Liveness and readiness probes of the master, and its metrics.

use super::super::gauges;
use super::super::input::MasterHandle;
use gristmill_worker::http::Body;
use gristmill_worker::response;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use std::time::Duration;

/// Metrics for Prometheus.
pub(in crate::master) const METRICS_PATH: &str = "/metrics";
/// Succeeds if the process runs.
const HEALTH_PATH: &str = "/healthz";
/// Succeeds if the master responds.
const READY_PATH: &str = "/readyz";
/// A master that takes longer to read its state is not ready.
const READY_TIMEOUT: Duration = Duration::from_secs(1);

/// True if the request is public: the response holds no data.
pub(in crate::master) fn is_open(method: &Method, path: &str) -> bool {
    *method == Method::GET && (path == HEALTH_PATH || path == READY_PATH)
}

/// Responds to a probe or with the metrics; `None` if the request is neither.
pub(super) async fn respond(handle: &MasterHandle, method: &Method, path: &str) -> Option<Response<Body>> {
    match (method, path) {
        (&Method::GET, HEALTH_PATH) => Some(response::status(StatusCode::NO_CONTENT)),
        (&Method::GET, READY_PATH) => {
            let asked = tokio::time::timeout(READY_TIMEOUT, handle.call(|_, _| ())).await;
            let ready = matches!(asked, Ok(Some(())));
            Some(response::status(if ready {
                StatusCode::NO_CONTENT
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            }))
        }
        (&Method::GET, METRICS_PATH) => {
            let Some(text) = handle.call(|state, now| gauges::text(state, now)).await else {
                return Some(response::status(StatusCode::SERVICE_UNAVAILABLE));
            };
            let mut response = response::bytes(StatusCode::OK, text);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(gauges::CONTENT_TYPE));
            Some(response)
        }
        _ => None,
    }
}
