//! Connection settings of stores: endpoint, credentials, time limits and retries, from the environment of
//! this process.
//!
//! For S3 these are `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
//! `AWS_ENDPOINT_URL`, and the role of a container or machine. Other stores have their own `GOOGLE_...`
//! and `AZURE_...`. This module opens no connection. Not here: the profiles of the AWS tools, which `aws
//! configure export-credentials --format env` converts to variables.

use crate::classes::ClassifyingClient;
use gristmill_worker::objects::{ObjectFailure, ObjectUrl, RETRIES_MAX, SILENCE_SECONDS_MAX, Scheme};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpClient, HttpConnector, ReqwestConnector};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use reqwest::Url;
use std::env;
use std::ffi::OsString;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Timeout for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Timeout for a response of a store.
const SILENCE_TIME: Duration = Duration::from_secs(SILENCE_SECONDS_MAX);

/// First pause before a request is retried. Later pauses are up to twice as long as the previous one.
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// Maximum pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Time after which a request is not retried. Its signature is valid for several times as long.
const RETRY_TIME: Duration = Duration::from_secs(120);

/// Store, and its interface for listing page by page if it has one.
pub(crate) type ReachedStore = (Arc<dyn ObjectStore>, Option<Arc<dyn PaginatedListStore>>);

/// Connects a builder to a bucket, with the environment variables of this prefix. They are applied after
/// the limits of this program, so they take precedence.
macro_rules! bucket {
    ($builder:expr, $names:literal, $with_name:ident, $url:expr) => {{
        let builder = $builder.with_client_options(options()).with_retry(retries());
        let of_environment = variables($names).into_iter();
        let builder = of_environment.fold(builder, |builder, (key, value)| builder.with_config(key, value));
        // A bucket named in the environment has no effect.
        builder.$with_name($url.authority()).with_http_connector(Connector)
    }};
}

/// Connects to the store of a URL: its bucket, or the one object of a web server.
pub(crate) fn reach(url: &ObjectUrl) -> Result<ReachedStore, ObjectFailure> {
    match url.scheme() {
        Scheme::S3 => {
            listed(checked(bucket!(AmazonS3Builder::new(), "AWS_", with_bucket_name, url))?.build())
        }
        Scheme::Gs => {
            let builder = GoogleCloudStorageBuilder::from_env();
            listed(bucket!(builder, "GOOGLE_", with_bucket_name, url).build())
        }
        Scheme::Az => {
            let builder = MicrosoftAzureBuilder::from_env();
            listed(bucket!(builder, "AZURE_", with_container_name, url).build())
        }
        Scheme::Http | Scheme::Https => {
            let options = options().with_allow_http(url.scheme() == Scheme::Http);
            let builder = HttpBuilder::new().with_url(url.to_string()).with_client_options(options);
            let builder = builder.with_retry(retries()).with_http_connector(Connector);
            Ok((Arc::new(builder.build().map_err(settings)?), None))
        }
    }
}

fn listed<S: ObjectStore + PaginatedListStore>(
    built: object_store::Result<S>,
) -> Result<ReachedStore, ObjectFailure> {
    let store = Arc::new(built.map_err(settings)?);
    Ok((store.clone(), Some(store)))
}

/// Returns the environment variables of this prefix that the library knows.
fn variables<K: FromStr>(names: &str) -> Vec<(K, String)> {
    let of_store = |(name, value): (OsString, OsString)| {
        let name = name.to_str().filter(|name| name.starts_with(names))?.to_ascii_lowercase();
        // An empty value counts as unset, as in the tools of these stores. Values from key files may end
        // with a line break.
        let value = value.into_string().ok().map(|value| value.trim().to_owned());
        Some((name.parse().ok()?, value.filter(|value| !value.is_empty())?))
    };
    env::vars_os().filter_map(of_store).collect()
}

/// Checks that an endpoint is a URL, and that plain HTTP stays on this machine unless it is allowed. Keys
/// come from the environment, or else from a role.
fn checked(builder: AmazonS3Builder) -> Result<AmazonS3Builder, ObjectFailure> {
    use AmazonS3ConfigKey as Key;
    let builder = check_endpoint(builder)?;
    let by_environment = [
        Key::AccessKeyId,
        Key::SecretAccessKey,
        Key::WebIdentityTokenFile,
        Key::ContainerCredentialsRelativeUri,
        Key::ContainerCredentialsFullUri,
        Key::SkipSignature,
    ];
    let has_keys =
        by_environment.iter().any(|key| builder.get_config_value(key).is_some_and(|value| is_set(&value)));
    // The machine's role must not be used instead of a profile.
    let by_profile = env::var_os("AWS_PROFILE").is_some_and(|name| !name.is_empty());
    match !has_keys && (by_profile || is_true("AWS_EC2_METADATA_DISABLED")) {
        true => Err(ObjectFailure::NoCredentials),
        false => Ok(builder),
    }
}

fn is_set(value: &str) -> bool {
    !value.is_empty() && value != "false"
}

fn check_endpoint(builder: AmazonS3Builder) -> Result<AmazonS3Builder, ObjectFailure> {
    let keys = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    let Some(endpoint) = keys.iter().find_map(|key| builder.get_config_value(key)) else {
        return Ok(builder);
    };
    // The library accepts any text, and panics at the first request.
    let is_usable = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let Some(url) = Url::parse(&endpoint).ok().filter(is_usable) else {
        let detail =
            "the endpoint of S3 (AWS_ENDPOINT_URL) is not a URL that begins with http:// or https://";
        return Err(ObjectFailure::Settings { detail: detail.to_owned() });
    };
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse();
    let is_here = host == "localhost" || ip.is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    match url.scheme() {
        "https" => Ok(builder),
        _ if is_here || is_true("AWS_ALLOW_HTTP") => Ok(builder.with_allow_http(true)),
        _ => Err(ObjectFailure::Plaintext { endpoint: url.origin().ascii_serialization() }),
    }
}

fn is_true(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
}

/// Converts an error of a builder. Values that cannot be parsed are not repeated, as a variable may
/// contain a secret by mistake.
fn settings(error: object_store::Error) -> ObjectFailure {
    let detail = match error {
        object_store::Error::Generic { store: "Config", .. } => {
            "one of its times, numbers or switches cannot be read, such as AWS_READ_TIMEOUT=60s".to_owned()
        }
        other => other.to_string(),
    };
    ObjectFailure::Settings { detail }
}

fn options() -> ClientOptions {
    let options = ClientOptions::new().with_connect_timeout(CONNECT_TIME);
    // No timeout for a request as a whole, because its duration depends on its size.
    options.with_timeout_disabled().with_read_timeout(SILENCE_TIME)
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { init_backoff: PAUSE_FIRST, max_backoff: PAUSE_MAX, base: 2.0 },
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_TIME,
    }
}

/// Creates clients that inspect responses.
#[derive(Clone, Copy, Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // The same cryptography as everywhere in this program. An error means that it is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(HttpClient::new(ClassifyingClient(ReqwestConnector::default().connect(options)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_spoken_on_loopback_alone() {
        let try_endpoint = |endpoint: &str| check_endpoint(AmazonS3Builder::new().with_endpoint(endpoint));
        for endpoint in
            ["http://127.0.0.1:9000", "http://[::1]:9000/x", "http://localhost", "https://s3.example.org"]
        {
            assert!(try_endpoint(endpoint).is_ok(), "{endpoint}");
        }
        for endpoint in
            ["http://192.0.2.1:9000", "http://127.0.0.1.example.org", "http://localhost@example.org/"]
        {
            let refused = try_endpoint(endpoint).unwrap_err();
            assert!(matches!(refused, ObjectFailure::Plaintext { .. }), "{endpoint}: {refused}");
        }
        for endpoint in ["notaurl", "localhost:9000", "ftp://127.0.0.1", "http://", "https:// x"] {
            let refused = try_endpoint(endpoint).unwrap_err();
            assert!(matches!(refused, ObjectFailure::Settings { .. }), "{endpoint}: {refused}");
        }
    }
}
