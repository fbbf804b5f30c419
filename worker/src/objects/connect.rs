//! How a store is reached: its endpoint, credentials, time limits and retries, as the environment of this process says.
//!
//! For S3 that is what the AWS tools read: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
//! `AWS_ENDPOINT_URL`, a profile (`profile`), and what a container or machine is told of its role, in this order; for others
//! their own `GOOGLE_...` and `AZURE_...`. Nothing here opens a connection.

use super::classes::ClassifyingClient;
use super::error::{ObjectFailure, RETRIES_MAX, SILENCE_SECONDS_MAX};
use super::profile::{NO_HEADER, Profile, ProfileError, ProfilePlace, fits_header};
use super::url::{ObjectUrl, Scheme};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpClient, HttpConnector, ReqwestConnector};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use std::env;
use std::ffi::OsString;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Longest time until a connection is there.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Longest time that a store may be silent.
const SILENCE_TIME: Duration = Duration::from_secs(SILENCE_SECONDS_MAX);

/// The first pause before a request is sent again; later ones are up to twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// The longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A request is not sent again after this time; its signature holds for a few times as long.
const RETRY_TIME: Duration = Duration::from_secs(120);

/// A store, and what lists it page by page where that can be done.
pub(super) type ReachedStore = (Arc<dyn ObjectStore>, Option<Arc<dyn PaginatedListStore>>);

/// The store of a URL: of its bucket, or of the one object of a web server.
pub(super) fn reach(url: &ObjectUrl) -> Result<ReachedStore, ObjectFailure> {
    match url.scheme() {
        Scheme::S3 => s3(url.authority()),
        Scheme::Gs => {
            let builder = GoogleCloudStorageBuilder::from_env().with_client_options(options());
            let of_environment = variables("GOOGLE_").into_iter();
            let builder =
                of_environment.fold(builder, |builder, (key, value)| builder.with_config(key, value));
            let builder = builder.with_bucket_name(url.authority()).with_retry(retries());
            let store = Arc::new(builder.with_http_connector(Connector).build().map_err(settings)?);
            Ok((store.clone(), Some(store)))
        }
        Scheme::Az => {
            let builder = MicrosoftAzureBuilder::from_env().with_client_options(options());
            let of_environment = variables("AZURE_").into_iter();
            let builder =
                of_environment.fold(builder, |builder, (key, value)| builder.with_config(key, value));
            let builder = builder.with_container_name(url.authority()).with_retry(retries());
            let store = Arc::new(builder.with_http_connector(Connector).build().map_err(settings)?);
            Ok((store.clone(), Some(store)))
        }
        Scheme::Http | Scheme::Https => {
            let options = options().with_allow_http(url.scheme() == Scheme::Http);
            let builder = HttpBuilder::new().with_url(url.to_string()).with_client_options(options);
            let builder = builder.with_retry(retries()).with_http_connector(Connector);
            Ok((Arc::new(builder.build().map_err(settings)?), None))
        }
    }
}

/// What the environment says under names that begin like this, as far as the library knows it. Set last, it counts more than
/// the limits of this program.
fn variables<K: FromStr>(beginning: &str) -> Vec<(K, String)> {
    let of_store = |(name, value): (OsString, OsString)| {
        let name = name.to_str().filter(|name| name.starts_with(beginning))?.to_ascii_lowercase();
        // One that is empty counts as not set, as for the tools of these stores.
        let value = value.into_string().ok().filter(|value| !value.is_empty())?;
        Some((name.parse().ok()?, value))
    };
    env::vars_os().filter_map(of_store).collect()
}

fn s3(bucket: &str) -> Result<ReachedStore, ObjectFailure> {
    let builder = AmazonS3Builder::new().with_client_options(options()).with_retry(retries());
    let builder = builder.with_http_connector(Connector);
    let of_environment = variables("AWS_").into_iter();
    let builder = of_environment.fold(builder, |builder, (key, value)| builder.with_config(key, value));
    // Whatever bucket the environment names, it is not this one.
    let mut builder = builder.with_bucket_name(bucket);
    let is_set = |builder: &AmazonS3Builder, keys: &[AmazonS3ConfigKey]| {
        keys.iter().any(|key| builder.get_config_value(key).is_some_and(|value| !value.is_empty()))
    };
    let keys = [AmazonS3ConfigKey::AccessKeyId, AmazonS3ConfigKey::SecretAccessKey];
    let place = ProfilePlace::of_environment();
    let by_environment = is_set(&builder, &keys);
    let profile = match place.read() {
        // Nobody needs it.
        Err(_) if by_environment => Profile::default(),
        read => read.map_err(of_profile)?,
    };
    if !is_set(&builder, &[AmazonS3ConfigKey::Region, AmazonS3ConfigKey::DefaultRegion])
        && let Some(region) = &profile.region
    {
        builder = builder.with_region(region);
    }
    if !is_set(&builder, &[AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint])
        && let Some(endpoint) = &profile.endpoint
    {
        builder = builder.with_endpoint(endpoint);
    }
    check_texts(&builder)?;
    let builder = check_endpoint(builder)?;
    let by_role = is_set(
        &builder,
        &[
            AmazonS3ConfigKey::WebIdentityTokenFile,
            AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
            AmazonS3ConfigKey::ContainerCredentialsFullUri,
        ],
    );
    let unsigned = builder
        .get_config_value(&AmazonS3ConfigKey::SkipSignature)
        .is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1");
    let builder = if by_environment || by_role || unsigned {
        builder
    } else {
        match place.credentials(&profile).map_err(of_profile)? {
            Some(credentials) => builder.with_credentials(Arc::new(credentials)),
            None if is_true("AWS_EC2_METADATA_DISABLED") => return Err(ObjectFailure::NoCredentials),
            // What the machine is told of its role.
            None => builder,
        }
    };
    let store = Arc::new(builder.build().map_err(settings)?);
    Ok((store.clone(), Some(store)))
}

/// Keys and regions stand in headers; of an endpoint the library would leave out line breaks, wherever they are.
fn check_texts(builder: &AmazonS3Builder) -> Result<(), ObjectFailure> {
    use AmazonS3ConfigKey::{AccessKeyId, DefaultRegion, Endpoint, Region, S3Endpoint, Token};
    let is_odd = |key: &AmazonS3ConfigKey| {
        let value = builder.get_config_value(key);
        value.is_some_and(|value| match key {
            Endpoint | S3Endpoint => value.contains(char::is_control),
            _ => !fits_header(&value),
        })
    };
    match [AccessKeyId, Token, Region, DefaultRegion, Endpoint, S3Endpoint].iter().find(|key| is_odd(key)) {
        None => Ok(()),
        Some(key) => {
            // As most write it.
            let name = match key {
                Endpoint => "AWS_ENDPOINT_URL".to_owned(),
                key => key.as_ref().to_ascii_uppercase(),
            };
            Err(ObjectFailure::Settings {
                detail: format!("{name}, or what a profile has for it, {NO_HEADER}"),
            })
        }
    }
}

/// An endpoint is a URL, and plain HTTP stays on this machine, unless somebody has asked for it.
fn check_endpoint(builder: AmazonS3Builder) -> Result<AmazonS3Builder, ObjectFailure> {
    let keys = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    let Some(endpoint) = keys.iter().find_map(|key| builder.get_config_value(key)) else {
        return Ok(builder);
    };
    // The library takes any text, and panics at the first request.
    let has_host = |url: reqwest::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if !reqwest::Url::parse(&endpoint).is_ok_and(has_host) {
        let detail = "the endpoint of S3, as AWS_ENDPOINT_URL or a profile names it, is no URL that begins with http:// or https://";
        return Err(ObjectFailure::Settings { detail: detail.to_owned() });
    }
    let Some(rest) = endpoint.strip_prefix("http://") else { return Ok(builder) };
    let host = rest.split('/').next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_here = name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match is_here || is_true("AWS_ALLOW_HTTP") {
        true => Ok(builder.with_allow_http(true)),
        false => Err(ObjectFailure::Plaintext { endpoint: format!("http://{host}") }),
    }
}

fn is_true(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
}

fn of_profile(error: ProfileError) -> ObjectFailure {
    let ProfileError { profile, reason } = error;
    ObjectFailure::Profile { profile, reason }
}

/// What a builder refuses. Values that cannot be read it would repeat, whatever somebody has put into the wrong variable.
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
    // No limit for a request as a whole: how long it takes depends on how much it brings.
    options.with_timeout_disabled().with_read_timeout(SILENCE_TIME)
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { init_backoff: PAUSE_FIRST, max_backoff: PAUSE_MAX, base: 2.0 },
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_TIME,
    }
}

/// Makes clients that look at answers.
#[derive(Clone, Copy, Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // The same cryptography as everywhere in this program; an error says that it is there already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(HttpClient::new(ClassifyingClient(ReqwestConnector::default().connect(options)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_with_a_line_break_is_named_and_its_value_is_not() {
        for (key, name) in [
            (AmazonS3ConfigKey::AccessKeyId, "AWS_ACCESS_KEY_ID"),
            (AmazonS3ConfigKey::Token, "AWS_SESSION_TOKEN"),
            (AmazonS3ConfigKey::Region, "AWS_REGION"),
            (AmazonS3ConfigKey::Endpoint, "AWS_ENDPOINT_URL"),
        ] {
            let check = |value: &str| check_texts(&AmazonS3Builder::new().with_config(key, value));
            assert!(check("http://hunter2").is_ok(), "{name}");
            for odd in ["\nhunter2", "hunter2\n", "hunter2\r", "hun\x01ter2", "\thunter2", "hunter2\x7f"] {
                let refused = check(odd).unwrap_err().to_string();
                assert!(refused.contains(name) && refused.contains("line break"), "{odd:?}: {refused}");
                assert!(!refused.contains("hun"), "{refused}");
            }
        }
    }

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
