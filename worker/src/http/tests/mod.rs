//! Tests of the HTTP layer over loopback sockets with ports of the system's choice.

mod client;
mod gate;
mod places;
mod proof;
mod secret;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

/// Secret of `/data` and of the whole cluster in these tests.
fn cluster_secret() -> Secret {
    Secret::from_bytes([7; 32])
}

/// Secret of `/job`.
fn job_secret() -> Secret {
    cluster_secret().derive("job 1")
}

struct TestAuth;

impl RouteAuth for TestAuth {
    fn access(&self, method: &Method, path: &str, _: &str) -> Access {
        match (method.as_str(), path) {
            (_, "/open") => Access::Open,
            (_, "/data" | "/body" | "/broken" | "/stuck" | "/missing" | "/upgrade") => {
                Access::Secret(cluster_secret())
            }
            // A secret for each path.
            (_, path) if path.starts_with("/key/") => Access::Secret(cluster_secret().derive(path)),
            ("GET", "/job") => Access::Secret(job_secret()),
            _ => Access::Closed,
        }
    }
}

/// Server under test; stops when dropped.
struct Running {
    address: SocketAddr,
    endpoint: Endpoint,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

impl Running {
    async fn start(config: ServerConfig) -> Running {
        let pin = match &config.transport {
            Transport::Plain => None,
            Transport::Tls(identity) => Some(identity.pin()),
        };
        let listener = Bind::loopback().listen().await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let server = tokio::spawn(serve(listener, Arc::new(config), Arc::new(TestAuth), handle, shutdown));
        Running { address, endpoint: Endpoint::of_address(address, pin), stop: Some(stop), server }
    }

    async fn plain() -> Running {
        Running::start(ServerConfig::new(Transport::Plain)).await
    }

    async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.server.await.unwrap();
    }
}

/// Handler of the routes: each path is one behaviour that a client or a gate must handle.
async fn handle(mut request: Request<Incoming>) -> Response<Body> {
    let peer = *request.extensions().get::<PeerAddress>().unwrap();
    match request.uri().path() {
        "/body" => Response::new(match read_limited(request.into_body(), 100).await {
            Ok(bytes) => full(bytes),
            Err(error) => full(error.to_string()),
        }),
        "/broken" => {
            let (sender, body) = stream(1);
            tokio::spawn(async move { sender.send("half of it".into()).await });
            Response::new(body)
        }
        "/stuck" => std::future::pending().await,
        "/missing" => Response::builder().status(404).body(full("no such \x1b job")).unwrap(),
        "/upgrade" => match accept_upgrade(&mut request, "test-echo") {
            None => Response::new(full("not upgraded")),
            Some((response, upgraded)) => {
                tokio::spawn(async move {
                    let (mut reader, mut writer) = tokio::io::split(upgraded.await.unwrap());
                    tokio::io::copy(&mut reader, &mut writer).await.unwrap();
                    // Over TLS only a proper end shows the peer that nothing is missing.
                    writer.shutdown().await.unwrap();
                });
                response
            }
        },
        _ => Response::new(full(peer.0.to_string())),
    }
}

/// Sends these bytes and returns all bytes received until the server closes the connection.
async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// Returns the status of a response's first line.
fn status(answer: &str) -> u16 {
    answer
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_else(|| panic!("not an answer: {answer:?}"))
}

/// Returns the body of a response.
fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}
