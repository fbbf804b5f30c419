//! Classification of the responses of a store, from their status and the error code of the protocol.
//!
//! `object_store` does not expose the status of most failures, so each response is inspected before it
//! receives it ([`ClassifyingClient`]). A refusal becomes an error of our own type, which is found again
//! among the causes of the returned error. This module decides which refusals are retried; `object_store`
//! retries them.

use gristmill_worker::objects::ObjectFailure;
use http_body_util::{BodyExt, Limited};
use hyper::header::{CONTENT_TYPE, LOCATION};
use hyper::{Method, StatusCode};
use memchr::memmem;
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum bytes of a refusal that are read for its code.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// Maximum length of a code, bytes.
const CODE_BYTES_MAX: usize = 64;

/// Hosts that provide a cloud machine with its role's credentials.
const METADATA_HOSTS: [&str; 5] =
    ["169.254.169.254", "169.254.170.2", "169.254.170.23", "[fd00:ec2::254]", "metadata.google.internal"];

/// Refusing response of a store.
#[derive(Debug, thiserror::Error)]
#[error("status {status}")]
struct StoreRefusal {
    status: u16,
    /// Error code of the store.
    code: Option<String>,
}

impl StoreRefusal {
    /// True if a retry of the same request may succeed.
    fn is_passing(&self) -> bool {
        let passing =
            ["SlowDown", "InternalError", "RequestTimeout", "ConditionalRequestConflict", "OperationAborted"];
        let code = self.code.as_deref();
        matches!(self.status, 408 | 429 | 500..) || code.is_some_and(|code| passing.contains(&code))
    }

    fn failure(&self) -> ObjectFailure {
        let (status, code) = (self.status, self.code.clone());
        match (status, self.code.as_deref().unwrap_or_default()) {
            (_, "NoSuchBucket" | "ContainerNotFound") => ObjectFailure::Refused { status, code },
            (
                _,
                "PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException",
            ) => ObjectFailure::Region { status, code },
            (301 | 302 | 307 | 308, _) => ObjectFailure::Region { status, code },
            (401 | 403, _)
            | (
                _,
                "InvalidToken"
                | "AccessDenied"
                | "ExpiredToken"
                | "ExpiredTokenException"
                | "TokenRefreshRequired",
            ) => ObjectFailure::Forbidden { status, code },
            (404 | 410, _) | (_, "NoSuchKey") => ObjectFailure::Missing,
            // The second code is Azure's for an object that was to be created and exists.
            (412, _) | (409, "BlobAlreadyExists") => ObjectFailure::Condition,
            // The range of an object that is shorter than it was.
            (416, _) => ObjectFailure::Changed,
            _ if self.is_passing() => ObjectFailure::Overloaded { status, code },
            _ => ObjectFailure::Refused { status, code },
        }
    }
}

/// The host that would provide a machine's credentials does not exist.
#[derive(Debug, thiserror::Error)]
#[error("no role")]
struct NoRole;

/// An object has an unsupported encoding.
#[derive(Debug, thiserror::Error)]
#[error("content encoding {0:?}")]
pub(crate) struct UnreadEncoding(pub(crate) String);

/// Returns the failure that an error of the library represents.
pub(crate) fn failure(error: &object_store::Error) -> ObjectFailure {
    let mut kind = None;
    let mut last: &(dyn Error + 'static) = error;
    let mut next = Some(last);
    while let Some(cause) = next {
        if let Some(refusal) = cause.downcast_ref::<StoreRefusal>() {
            return refusal.failure();
        }
        if let Some(UnreadEncoding(encoding)) = cause.downcast_ref() {
            return ObjectFailure::Encoding { encoding: encoding.clone() };
        }
        if cause.is::<NoRole>() {
            return ObjectFailure::NoCredentials;
        }
        if let Some(http) = cause.downcast_ref::<HttpError>() {
            kind = Some(http.kind());
        }
        (last, next) = (cause, cause.source());
    }
    match (kind, error) {
        (Some(HttpErrorKind::Timeout), _) => ObjectFailure::Silent,
        (Some(_), _) => ObjectFailure::Unreachable { detail: last.to_string() },
        (None, object_store::Error::NotSupported { .. }) => ObjectFailure::NoRanges,
        // Some stores respond with 304, which is not a refusal, to a condition that is not met.
        (None, object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
            ObjectFailure::Condition
        }
        // Azure responds to many deletions at once, and the library parses that.
        (None, object_store::Error::NotFound { .. }) => ObjectFailure::Missing,
        (None, object_store::Error::PermissionDenied { .. }) => {
            ObjectFailure::Forbidden { status: 403, code: None }
        }
        (None, _) => ObjectFailure::Answer { detail: last.to_string() },
    }
}

/// Shared by all attempts of a write request. It records if one of them may have been carried out,
/// whatever the response to the last one: the library retries a request without response.
#[derive(Clone, Debug, Default)]
pub(crate) struct MayBeDone(Arc<AtomicBool>);

impl MayBeDone {
    pub(crate) fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Records the result of an attempt.
    fn learn(&self, answer: &Result<HttpResponse, HttpError>) {
        let surely_not = match answer {
            Ok(answer) => {
                answer.status().is_client_error() || answer.status() == StatusCode::SERVICE_UNAVAILABLE
            }
            Err(error) => error.kind() == HttpErrorKind::Connect,
        };
        if !surely_not {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Client that inspects responses.
#[derive(Debug)]
pub(crate) struct ClassifyingClient(pub(crate) HttpClient);

impl ClassifyingClient {
    async fn request(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let for_credentials = request.uri().host().is_some_and(|host| METADATA_HOSTS.contains(&host));
        let is_post = request.method() == Method::POST;
        let may_be_done = request.extensions().get::<MayBeDone>().cloned();
        let answer = self.0.execute(request).await;
        if let Some(may_be_done) = may_be_done {
            may_be_done.learn(&answer);
        }
        let answer = match answer {
            Err(_) if for_credentials => return Err(HttpError::new(HttpErrorKind::Unknown, NoRole)),
            answer => answer?,
        };
        let status = answer.status();
        // S3 sends a redirection without location for a bucket in another region.
        let leads_nowhere = status.is_redirection()
            && status != StatusCode::NOT_MODIFIED
            && !answer.headers().contains_key(LOCATION);
        if !status.is_client_error() && !status.is_server_error() && !leads_nowhere {
            return if is_post && is_xml(&answer) { refused_in_body(answer).await } else { Ok(answer) };
        }
        if for_credentials {
            return Err(HttpError::new(HttpErrorKind::Unknown, NoRole));
        }
        let (head, body) = answer.into_parts();
        let of_header = head.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
        let code = match of_header {
            Some(code) => plain(code.as_bytes()),
            None => code_of(body).await,
        };
        Err(StoreRefusal { status: status.as_u16(), code }.into())
    }
}

impl From<StoreRefusal> for HttpError {
    fn from(refusal: StoreRefusal) -> Self {
        // The kind only controls whether the library retries.
        let kind = if refusal.is_passing() { HttpErrorKind::Request } else { HttpErrorKind::Unknown };
        HttpError::new(kind, refusal)
    }
}

fn is_xml(answer: &HttpResponse) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.ends_with("/xml"))
}

/// Detects a refusal in the body. S3 starts some responses before it knows the result, and has one for
/// many objects, so a response with status 200 may contain a refusal.
async fn refused_in_body(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (head, body) = answer.into_parts();
    let bytes = body.collect().await?.to_bytes();
    match memmem::find(&bytes, b"<Error>").map(|at| find_code(&bytes[at..])) {
        Some(code) => Err(StoreRefusal { status: head.status.as_u16(), code }.into()),
        None => Ok(HttpResponse::from_parts(head, bytes.into())),
    }
}

impl HttpService for ClassifyingClient {
    // In the form that `async_trait` generates.
    fn call<'life0, 'async_trait>(
        &'life0 self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(self.request(request))
    }
}

/// Returns the text between `<Code>` and `</Code>`, as sent by S3 and compatible stores.
async fn code_of(body: HttpResponseBody) -> Option<String> {
    find_code(&Limited::new(body, REFUSAL_BYTES_MAX).collect().await.ok()?.to_bytes())
}

fn find_code(bytes: &[u8]) -> Option<String> {
    let begin = memmem::find(bytes, b"<Code>")? + b"<Code>".len();
    let length = memmem::find(&bytes[begin..], b"</Code>")?;
    plain(&bytes[begin..begin + length])
}

/// Returns a code, if it is one word of letters and digits.
fn plain(code: &[u8]) -> Option<String> {
    let good = (1..=CODE_BYTES_MAX).contains(&code.len()) && code.iter().all(u8::is_ascii_alphanumeric);
    good.then(|| String::from_utf8_lossy(code).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_worker::objects::ObjectFault;

    fn failure_of(status: u16, code: &str) -> ObjectFailure {
        StoreRefusal { status, code: Some(code.to_owned()).filter(|code| !code.is_empty()) }.failure()
    }

    #[test]
    fn refusals_are_told_apart_by_status_and_code() {
        for (status, code, expected) in [
            (403, "AccessDenied", ObjectFault::Credentials),
            (400, "ExpiredToken", ObjectFault::Credentials),
            (400, "AuthorizationHeaderMalformed", ObjectFault::Settings),
            (404, "NoSuchKey", ObjectFault::Object),
            (503, "SlowDown", ObjectFault::Route),
            (500, "", ObjectFault::Route),
            (400, "InvalidArgument", ObjectFault::Object),
        ] {
            assert_eq!(failure_of(status, code).fault(), expected, "{status} {code}");
        }
        assert!(matches!(failure_of(404, ""), ObjectFailure::Missing));
        assert!(matches!(failure_of(404, "NoSuchBucket"), ObjectFailure::Refused { .. }));
        assert!(matches!(failure_of(412, "PreconditionFailed"), ObjectFailure::Condition));
        assert!(matches!(failure_of(409, "BlobAlreadyExists"), ObjectFailure::Condition));
        assert!(matches!(failure_of(409, "ConditionalRequestConflict"), ObjectFailure::Overloaded { .. }));
        assert!(matches!(failure_of(200, "AccessDenied"), ObjectFailure::Forbidden { .. }));
        assert!(matches!(failure_of(200, "InternalError"), ObjectFailure::Overloaded { .. }));
        assert!(matches!(failure_of(301, "PermanentRedirect"), ObjectFailure::Region { .. }));
        assert!(matches!(failure_of(301, ""), ObjectFailure::Region { .. }));
        assert!(matches!(failure_of(400, "ExpiredToken"), ObjectFailure::Forbidden { .. }));
        let words = failure_of(403, "AccessDenied").to_string();
        assert!(words.contains("403 AccessDenied"), "{words}");
    }

    #[test]
    fn refusal_is_found_among_the_causes_of_what_the_library_answers() {
        let refusal = StoreRefusal { status: 400, code: Some("ExpiredToken".to_owned()) };
        let http = HttpError::new(HttpErrorKind::Unknown, refusal);
        let error = object_store::Error::Generic { store: "S3", source: Box::new(http) };
        assert!(matches!(failure(&error), ObjectFailure::Forbidden { status: 400, .. }));
        let timeout = HttpError::new(HttpErrorKind::Timeout, std::io::Error::other("slow"));
        let error = object_store::Error::Generic { store: "S3", source: Box::new(timeout) };
        assert!(matches!(failure(&error), ObjectFailure::Silent));
    }

    #[test]
    fn what_the_library_found_out_by_itself_is_told_apart_too() {
        let (path, source) = (|| "k".to_owned(), || "of the test".into());
        let unmet = object_store::Error::AlreadyExists { path: path(), source: source() };
        assert!(matches!(failure(&unmet), ObjectFailure::Condition));
        let missing = object_store::Error::NotFound { path: path(), source: source() };
        assert!(matches!(failure(&missing), ObjectFailure::Missing));
    }

    #[test]
    fn code_is_a_word_or_none_whatever_a_server_sends() {
        let code = |text: &'static str| {
            let body = http_body_util::Full::new(bytes::Bytes::from(text));
            let body = HttpResponseBody::new(body.map_err(|never| match never {}));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(code_of(body))
        };
        assert_eq!(code("<Error><Code>NoSuchKey</Code></Error>").as_deref(), Some("NoSuchKey"));
        for text in ["", "<Code>", "<Code></Code>", "<Code>a\u{1b}[2J</Code>", "<html>no</html>"] {
            assert_eq!(code(text), None, "{text:?}");
        }
    }
}
