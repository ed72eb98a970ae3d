//! Where other front-ends send calls of the queues that this one owns: HTTP, with a proof of the cluster's key. A call whose
//! owner is not here is answered so, and never sent on.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::proof::{DIGEST_HEADER, MAC_HEADER, TIME_HEADER, digest, is_proof};
use super::wire::{CALL_BYTES_MAX, PATH, decode_call, encode_answer};
use crate::shared::Shared;

/// How long a new connection may take to show that it knows the cluster's key: others are not to take the places of front-ends.
const PROOF_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection stays after that on which nothing comes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a request's head and body may take to come, and how old it may be by the clocks that were compared with
/// Cassandra's.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const AGE_MS_MAX: u64 = 60_000;

/// Where other front-ends reach this one.
pub(crate) struct PeerListener {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl PeerListener {
    /// Listens there.
    pub(crate) async fn bind(address: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Waits for the next connection; one whose other end is gone breaks by itself.
    async fn accept(&self) -> std::io::Result<TcpStream> {
        let (stream, _) = self.listener.accept().await?;
        // It only fails on a socket that has ended.
        let _ = quelea_net::prepare_socket(&stream);
        Ok(stream)
    }
}

/// Serves other front-ends, so many connections at once, as long as the store is used.
pub(crate) fn serve_peers(shared: &Arc<Shared>, listener: PeerListener, connections_max: usize) {
    let weak = Arc::downgrade(shared);
    let runtime = shared.runtime.clone();
    shared.runtime.spawn(async move {
        let room = Arc::new(Semaphore::new(connections_max));
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = tokio::time::sleep(Duration::from_secs(1)) => {
                    if weak.strong_count() == 0 {
                        return;
                    }
                    continue;
                }
            };
            let Ok(stream) = accepted else {
                // No descriptors are left, say.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(permit) = room.clone().try_acquire_owned() else { continue };
            let weak = weak.clone();
            runtime.spawn(async move {
                serve(weak, stream).await;
                drop(permit);
            });
        }
    });
}

async fn serve(shared: Weak<Shared>, stream: TcpStream) {
    let is_proven = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request| {
        let (shared, is_proven) = (shared.clone(), is_proven.clone());
        async move { Ok::<_, Infallible>(respond(shared, request, &is_proven).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_headers(16);
    // When the caller goes, what is done for it is dropped.
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let done = match tokio::time::timeout(PROOF_TIMEOUT, served.as_mut()).await {
        Ok(done) => done,
        Err(_) if is_proven.load(Ordering::Relaxed) => served.await,
        Err(_) => return,
    };
    if let Err(error) = done {
        tracing::debug!(%error, "a front-end's connection broke");
    }
}

async fn respond(
    shared: Weak<Shared>,
    request: Request<Incoming>,
    is_proven: &AtomicBool,
) -> Response<Full<Bytes>> {
    match answer(shared, request, is_proven).await {
        Ok(bytes) => Response::new(Full::new(bytes)),
        Err(status) => {
            let mut response = Response::new(Full::default());
            *response.status_mut() = status;
            response
        }
    }
}

async fn answer(
    shared: Weak<Shared>,
    request: Request<Incoming>,
    is_proven: &AtomicBool,
) -> Result<Bytes, StatusCode> {
    if request.method() != Method::POST || request.uri().path() != PATH {
        return Err(StatusCode::NOT_FOUND);
    }
    let header = |name: &str| request.headers().get(name)?.to_str().ok().map(str::to_owned);
    let (Some(time), Some(promised), Some(proof)) =
        (header(TIME_HEADER), header(DIGEST_HEADER), header(MAC_HEADER))
    else {
        return Err(StatusCode::FORBIDDEN);
    };
    let time_ms: u64 = time.parse().map_err(|_| StatusCode::FORBIDDEN)?;
    let shared = shared.upgrade().ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    let own = shared.fifo.address.get().ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    if shared.database.clock.now_ms().abs_diff(time_ms) > AGE_MS_MAX
        || !is_proof(&shared.fifo.secret, time_ms, own, &promised, &proof)
    {
        return Err(StatusCode::FORBIDDEN);
    }
    is_proven.store(true, Ordering::Relaxed);
    let body = Limited::new(request.into_body(), CALL_BYTES_MAX).collect();
    let body = tokio::time::timeout(REQUEST_TIMEOUT, body).await;
    let body = body
        .map_err(|_| StatusCode::REQUEST_TIMEOUT)?
        .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?
        .to_bytes();
    if digest(&body) != promised {
        return Err(StatusCode::FORBIDDEN);
    }
    let (queue, operation) = decode_call(&body).ok_or(StatusCode::BAD_REQUEST)?;
    let answer = shared.fifo_call_of_peer(queue, operation).await;
    encode_answer(answer).map(Bytes::from).ok_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt;

    use super::*;

    #[tokio::test]
    async fn a_front_end_that_is_gone_or_takes_nothing_is_noticed() {
        let listener = PeerListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) =
            tokio::join!(TcpStream::connect(listener.address), listener.accept());
        let (_client, accepted) = (client.unwrap(), accepted.unwrap());
        assert!(sockopt::socket_keepalive(&accepted).unwrap());
        assert_eq!(
            u128::from(sockopt::tcp_user_timeout(&accepted).unwrap()),
            quelea_net::STALLED_WRITE_MAX.as_millis()
        );
    }
}
