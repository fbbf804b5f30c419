//! Limits of fetching.

use gristmill_scheduler::units::Span;

/// On a paced network a request is meant to take a second divided by this.
const PACED_REQUESTS_PER_SECOND: u64 = 20;

/// A request may always bring so many bytes, however slow the network is made to be.
const PACED_REQUEST_BYTES_MIN: u64 = 64 << 10;

/// Limits of fetching.
#[derive(Clone, Debug)]
pub struct FetchLimits {
    /// Requests in flight over all sources that are at least as urgent as any of them; twice as many in all.
    pub requests_max: usize,
    /// The same to one source.
    pub requests_per_source_max: usize,
    /// Maps in one request.
    pub maps_per_request_max: usize,
    /// Bytes expected of one request of several maps while an order is in force.
    pub request_bytes_max: u64,
    /// Whether that holds without an order too, because one may come before a request is over.
    pub always_short: bool,
    /// Tries of one output before it is reported as not to be had.
    pub tries_max: u32,
    /// Pause before the second try; doubles with each further one.
    pub pause: Span,
    /// Longest pause.
    pub pause_max: Span,
    /// Requests to one source, each sent after the one before had failed, after which the way to it counts as cut if they
    /// have taken `route_patience`: all that waits there is then reported as not to be had, however often it was tried.
    pub route_failures_max: u32,
    /// The least time for that. Failures that come faster are counted for each output, with its pauses.
    pub route_patience: Span,
    /// For so long this worker may lack the means to ask before its tries count.
    pub shortage_max: Span,
}

impl Default for FetchLimits {
    /// 8 requests in all, 2 for each source, 16 maps or 4 MiB in each; 4 tries with pauses of 0.1, 0.2 and 0.4 s,
    /// which do not count for the first 10 s of a shortage; 2 failures of a second or more for a way that is cut.
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
    /// With requests that are short enough for a network that is held to this many bytes in a second: 50 ms of it,
    /// and 64 KiB at least.
    #[must_use]
    pub fn paced(self, bytes_per_second: u64) -> Self {
        let short = (bytes_per_second / PACED_REQUESTS_PER_SECOND).max(PACED_REQUEST_BYTES_MIN);
        Self { request_bytes_max: short.min(self.request_bytes_max), always_short: true, ..self }
    }
}
