//! An S3 server in the test's own process: s3s over a directory, behind a gate that logs requests and applies
//! the test's rules to some of them.
//!
//! Signatures are checked. Conditional requests are handled one at a time, since the directory reads and
//! writes in two steps. Each [`Rule`] counts its matches, so that a test can prove that its fault has fired.
//! Below `/web/` the gate is a web server with ranges, and below `/whole/` one without. Below `/web/as-gzip/`
//! it sends that `Content-Encoding`.

use crate::support::{Sandbox, process};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, RANGE,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The access key that the server knows.
pub const KEY_ID: &str = "AKIDOFTHETESTS";
pub const SECRET: &str = "secretofthetests/+=";

/// The bucket that exists.
pub const BUCKET: &str = "data";

type Error = Box<dyn std::error::Error + Send + Sync>;
type Answer = Response<UnsyncBoxBody<Bytes, Error>>;

/// Treatment of a request.
#[derive(Clone)]
pub enum Deed {
    /// It gets this response and is not executed.
    Answer(u16, String),
    /// It is executed, and the connection breaks before the response.
    LoseAnswer,
    /// It is neither executed nor answered.
    Hold,
    /// The function is called, then the request is executed.
    After(Arc<dyn Fn() + Send + Sync>),
}

impl Deed {
    /// An error in the form of S3.
    pub fn refuse(status: u16, code: &str) -> Self {
        let text = format!("<Error><Code>{code}</Code><Message>of the test, for {KEY_ID}</Message></Error>");
        Self::Answer(status, text)
    }
}

/// The requests that a deed applies to.
pub struct Rule {
    pub method: Method,
    /// Text in its path or query.
    pub part: &'static str,
    /// Number of matching requests that pass first.
    pub skip: u32,
    /// Number of the following requests that it applies to.
    pub times: u32,
    pub deed: Deed,
}

impl Rule {
    /// Applies to the first of them.
    pub fn once(method: Method, part: &'static str, deed: Deed) -> Self {
        Self { method, part, skip: 0, times: 1, deed }
    }

    /// Applies to all of them.
    pub fn always(method: Method, part: &'static str, deed: Deed) -> Self {
        Self { method, part, skip: 0, times: u32::MAX, deed }
    }
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub range: Option<String>,
    pub if_match: Option<String>,
    pub if_none_match: Option<String>,
    /// The `Authorization` header.
    pub authorization: String,
}

struct Gate {
    /// The directory of the bucket.
    bucket: PathBuf,
    rules: Mutex<Vec<(Rule, u32)>>,
    log: Mutex<Vec<Asked>>,
    files: Mutex<BTreeMap<String, Bytes>>,
    conditional: tokio::sync::Mutex<()>,
}

/// The server. It ends when it is dropped.
pub struct StoreServer {
    pub address: SocketAddr,
    root: tempfile::TempDir,
    gate: Arc<Gate>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl StoreServer {
    /// Starts one with an empty bucket.
    pub fn start() -> Self {
        let root = tempfile::Builder::new().prefix("gristmill-s3-").tempdir().unwrap();
        fs::create_dir(root.path().join(BUCKET)).unwrap();
        let mut service = S3ServiceBuilder::new(FileSystem::new(root.path()).unwrap());
        service.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let gate = Gate {
            bucket: root.path().join(BUCKET),
            rules: Mutex::default(),
            log: Mutex::default(),
            files: Mutex::default(),
            conditional: tokio::sync::Mutex::default(),
        };
        let (service, gate) = (service.build(), Arc::new(gate));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let serving = gate.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(listener, (service, serving), stopped));
        });
        Self { address, root, gate, stop, thread: Some(thread) }
    }

    /// Adds a rule; returns its index.
    pub fn rule(&self, rule: Rule) -> usize {
        let mut rules = self.gate.rules.lock().unwrap();
        rules.push((rule, 0));
        rules.len() - 1
    }

    /// Number of times that a rule was applied.
    pub fn done(&self, rule: usize) -> u32 {
        let rules = self.gate.rules.lock().unwrap();
        let (rule, met) = &rules[rule];
        met.saturating_sub(rule.skip).min(rule.times)
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.gate.log.lock().unwrap().clone()
    }

    /// Writes an object directly, without the protocol.
    pub fn put(&self, key: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        url(key)
    }

    /// Adds a file to the web server; returns its URL.
    pub fn put_web(&self, path: &str, content: impl Into<Vec<u8>>) -> String {
        self.gate.files.lock().unwrap().insert(format!("/{path}"), Bytes::from(content.into()));
        format!("http://{}/{path}", self.address)
    }

    /// Returns the content of an object.
    pub fn get(&self, key: &str) -> Vec<u8> {
        fs::read(self.path(key)).unwrap_or_else(|error| panic!("{key}: {error}"))
    }

    /// The directory of the bucket, or a file in it.
    pub fn path(&self, key: &str) -> PathBuf {
        self.root.path().join(BUCKET).join(key)
    }

    /// The keys of all objects below a prefix, without it.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let (mut found, mut open) = (Vec::new(), vec![self.path(prefix)]);
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(self.path(prefix)).unwrap();
                    found.push(name.to_str().unwrap().to_owned());
                }
            }
        }
        found.sort();
        found
    }

    /// Uploads that were started and neither completed nor aborted.
    pub fn open_uploads(&self) -> Vec<String> {
        let names = fs::read_dir(self.root.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("upload_id") || name.contains("upload-")).collect()
    }

    /// The environment variables by which a process finds it.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = self.place();
        variables.push(("AWS_ACCESS_KEY_ID", KEY_ID.to_owned()));
        variables.push(("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()));
        variables
    }

    /// The same without credentials.
    pub fn place(&self) -> Vec<(&'static str, String)> {
        Self::place_at(self.address)
    }

    /// The same for a server behind a link.
    pub fn place_at(address: SocketAddr) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", format!("http://{address}")),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_PROFILE", String::new()),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ]
    }
}

/// The URL of a key.
pub fn url(key: &str) -> String {
    format!("s3://{BUCKET}/{key}")
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
        }
    }
}

async fn serve(
    listener: std::net::TcpListener,
    (service, gate): (S3Service, Arc<Gate>),
    mut stopped: watch::Receiver<bool>,
) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let stream = tokio::select! {
            stream = listener.accept() => stream.unwrap().0,
            _ = stopped.changed() => return,
        };
        let (service, gate) = (service.clone(), gate.clone());
        tokio::spawn(async move {
            let respond = service_fn(move |request| respond(service.clone(), gate.clone(), request));
            // A client that disconnects is no fault of the server.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), respond)
                .await;
        });
    }
}

async fn respond(service: S3Service, gate: Arc<Gate>, request: Request<Incoming>) -> Result<Answer, Error> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let path = request.uri().path_and_query().unwrap().to_string();
    let asked = Asked {
        method: request.method().clone(),
        path: path.clone(),
        range: header(RANGE),
        if_match: header(IF_MATCH),
        if_none_match: header(IF_NONE_MATCH),
        authorization: header(AUTHORIZATION).unwrap_or_default(),
    };
    let conditional =
        request.method() == Method::PUT && (asked.if_match.is_some() || asked.if_none_match.is_some());
    gate.log.lock().unwrap().push(asked.clone());
    let deed = deed(&gate, request.method(), &path);
    match &deed {
        Some(Deed::Answer(status, text)) => {
            // Read to its end: a response before that may be lost with the connection, and the request sent
            // again.
            request.into_body().collect().await?;
            return reply(*status, text.clone().into());
        }
        Some(Deed::Hold) => std::future::pending().await,
        Some(Deed::After(happens)) => happens(),
        Some(Deed::LoseAnswer) | None => {}
    }
    if path.starts_with("/web/") || path.starts_with("/whole/") {
        return web(&gate, &asked);
    }
    // The directory cannot handle a prefix that is requested as an object.
    let key = request.uri().path().strip_prefix(&format!("/{BUCKET}/")).unwrap_or_default();
    if !key.is_empty() && gate.bucket.join(key).is_dir() {
        return reply(404, Bytes::from_static(b"<Error><Code>NoSuchKey</Code></Error>"));
    }
    let _one_by_one = if conditional { Some(gate.conditional.lock().await) } else { None };
    let answered = hyper::service::Service::call(&service, request).await?;
    if let Some(Deed::LoseAnswer) = deed {
        return Err("its answer is lost".into());
    }
    Ok(answered.map(BodyExt::boxed_unsync))
}

/// Returns the treatment of the first rule that matches.
fn deed(gate: &Gate, method: &Method, path: &str) -> Option<Deed> {
    let mut rules = gate.rules.lock().unwrap();
    let mut found = None;
    for (rule, met) in rules.iter_mut().filter(|(rule, _)| rule.method == *method && path.contains(rule.part))
    {
        *met += 1;
        let due = rule.skip < *met && *met - rule.skip <= rule.times;
        if due && found.is_none() {
            found = Some(rule.deed.clone());
        }
    }
    found
}

fn reply(status: u16, text: Bytes) -> Result<Answer, Error> {
    let body = Full::new(text).map_err(|never| match never {}).boxed_unsync();
    Ok(Response::builder().status(status).header(CONTENT_TYPE, "application/xml").body(body)?)
}

fn web(gate: &Gate, asked: &Asked) -> Result<Answer, Error> {
    let Some(file) = gate.files.lock().unwrap().get(&asked.path).cloned() else {
        return reply(404, Bytes::new());
    };
    let tag = format!("\"{:08x}\"", crc32c::crc32c(&file));
    let range = asked.range.as_deref().and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let (status, from, until) = match range.filter(|_| asked.path.starts_with("/web/")) {
        Some((from, last)) => {
            let (from, last): (usize, usize) = (from.parse()?, last.parse()?);
            if file.len() <= from {
                return reply(416, Bytes::new());
            }
            (206, from, (last + 1).min(file.len()))
        }
        None => (200, 0, file.len()),
    };
    let mut answer = reply(status, file.slice(from..until))?;
    answer.headers_mut().insert(ETAG, tag.parse()?);
    if let Some((encoding, _)) = asked.path.strip_prefix("/web/as-").and_then(|path| path.split_once('/')) {
        answer.headers_mut().insert(CONTENT_ENCODING, encoding.parse()?);
    }
    if status == 206 {
        let range = format!("bytes {from}-{}/{}", until - 1, file.len());
        answer.headers_mut().insert(CONTENT_RANGE, range.parse()?);
    }
    Ok(answer)
}

/// Kills a process and all processes of the sandbox.
pub fn kill_all(sandbox: &Sandbox) {
    sandbox.processes().iter().for_each(|found| process::kill(found.pid));
}
