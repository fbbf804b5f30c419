//! Limits of fetching: requests and bytes in flight, retries and their pauses.

use gristmill_scheduler::units::Span;

/// Target requests per second on a paced network, which sets their size.
const PACED_REQUESTS_PER_SECOND: u64 = 20;

/// Minimum size of a request on a paced network.
const PACED_REQUEST_BYTES_MIN: u64 = 64 << 10;

/// Limits of fetching.
#[derive(Clone, Debug)]
pub struct FetchLimits {
    /// Maximum requests in flight over all sources that are at least as urgent as any of them, where small ones may count
    /// a quarter; twice as many in total.
    pub requests_max: usize,
    /// The same maximum per source.
    pub requests_per_source_max: usize,
    /// Maximum maps in one request.
    pub maps_per_request_max: usize,
    /// Maximum expected bytes of one request of several maps while an order is in force.
    pub request_bytes_max: u64,
    /// True if this also applies without an order, because one may come before a request ends.
    pub always_short: bool,
    /// Maximum tries of one output before it is reported as failed.
    pub tries_max: u32,
    /// Pause before the second try; it doubles with each further one.
    pub pause: Span,
    /// Longest pause.
    pub pause_max: Span,
    /// Consecutive failed requests to one source, each sent after the failure of the previous one, after which the
    /// route counts as cut if they took `route_patience`. All that waits there is then reported as failed, however
    /// often it was tried.
    pub route_failures_max: u32,
    /// Minimum time for that. Faster failures are counted for each output, with its pauses.
    pub route_patience: Span,
    /// Time of a local resource shortage during which failed tries do not count.
    pub shortage_max: Span,
}

impl Default for FetchLimits {
    /// Returns 8 requests in total, 2 per source, 16 maps or 4 MiB in each. Failed requests get 4 tries with
    /// pauses of 0.1, 0.2 and 0.4 s, which do not count in the first 10 s of a shortage. A route is cut after
    /// 2 failures of a second or more.
    fn default() -> Self {
        Self {
            requests_max: 8,
            requests_per_source_max: 2,
            maps_per_request_max: 16,
            request_bytes_max: 4 << 20,
            always_short: false,
            tries_max: 4,
            pause: Span::milliseconds(100),
            pause_max: Span::whole_seconds(5),
            route_failures_max: 2,
            route_patience: Span::whole_seconds(1),
            shortage_max: Span::whole_seconds(10),
        }
    }
}

impl FetchLimits {
    /// Sets requests short enough for a network that is limited to this many bytes per second: 50 ms of it, and at
    /// least 64 KiB.
    #[must_use]
    pub fn paced(self, bytes_per_second: u64) -> Self {
        let short = (bytes_per_second / PACED_REQUESTS_PER_SECOND).max(PACED_REQUEST_BYTES_MIN);
        Self { request_bytes_max: short.min(self.request_bytes_max), always_short: true, ..self }
    }
}
