//! Calls of a queue's owner at another front-end. A caller that goes closes its connection, so that the owner hears of it.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use quelea_cassandra_fifo::OwnerRow;
use rustc_hash::FxHashMap;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use super::operation::{Answer, FifoQueue, Operation};
use super::proof::{DIGEST_HEADER, MAC_HEADER, TIME_HEADER, digest, mac};
use super::wire::{ANSWER_BYTES_MAX, PATH, decode_answer, encode_call};
use crate::database::Database;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How often it is said that front-ends cannot be reached.
const WARN_EVERY: Duration = Duration::from_secs(5);

/// Connections to one front-end that wait for the next call.
const IDLE_MAX: usize = 32;

/// Front-ends to which there are such connections.
const PEERS_MAX: usize = 256;

type Connection = SendRequest<Full<Bytes>>;

/// Who calls: its clock, what it proves itself with, and where connections are kept going.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) database: &'a Database,
    pub(super) runtime: &'a Handle,
    pub(super) secret: &'a [u8],
}

/// Connections to other front-ends.
#[derive(Default)]
pub(crate) struct PeerClient {
    idle: Mutex<FxHashMap<String, Vec<Connection>>>,
    /// When it was last said that one cannot be reached.
    warned_at: Mutex<Option<Instant>>,
}

impl PeerClient {
    /// Asks a queue's owner to do something. What cannot be reached, or does not understand it, is
    /// not the owner any more.
    pub(super) async fn call(
        &self,
        caller: Caller<'_>,
        owner: &OwnerRow,
        queue: &FifoQueue,
        operation: Operation,
    ) -> Answer {
        let Some(body) = encode_call(queue, operation) else { return Answer::NotOwner };
        let body = Bytes::from(body);
        // One that waited for long may be closed: then a fresh one is tried.
        if let Some(connection) = self.take_idle(&owner.address)
            && let Some(answer) = self.ask(caller, owner, connection, body.clone()).await
        {
            return answer;
        }
        let connection = match connect(caller, &owner.address).await {
            Ok(connection) => connection,
            Err(error) => {
                self.warn(queue, &owner.address, &error);
                return Answer::NotOwner;
            }
        };
        self.ask(caller, owner, connection, body).await.unwrap_or(Answer::NotOwner)
    }

    /// Says that a front-end cannot be reached; not for each call.
    fn warn(&self, queue: &FifoQueue, address: &str, error: &io::Error) {
        let mut warned_at = self.warned_at.lock().unwrap_or_else(PoisonError::into_inner);
        if warned_at.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            *warned_at = Some(Instant::now());
            tracing::warn!(%error, address, queue = %queue.name.name, "the front-end that owns a FIFO queue cannot be reached");
        }
    }

    async fn ask(
        &self,
        caller: Caller<'_>,
        owner: &OwnerRow,
        mut connection: Connection,
        body: Bytes,
    ) -> Option<Answer> {
        connection.ready().await.ok()?;
        let time_ms = caller.database.clock.now_ms();
        let digest = digest(&body);
        let proof = mac(caller.secret, time_ms, &owner.address, &digest)?;
        let request = Request::post(PATH)
            .header(hyper::header::HOST, &owner.address)
            .header(TIME_HEADER, time_ms)
            .header(DIGEST_HEADER, digest)
            .header(MAC_HEADER, proof)
            .body(Full::new(body))
            .ok()?;
        let response = connection.send_request(request).await.ok()?;
        if response.status() != StatusCode::OK {
            tracing::warn!(status = %response.status(), address = owner.address, "a front-end refused a call of its FIFO queue");
            return Some(Answer::NotOwner);
        }
        let answer = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.ok()?;
        let answer = decode_answer(&answer.to_bytes());
        self.put_idle(&owner.address, connection);
        answer
    }

    fn take_idle(&self, address: &str) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.get_mut(address)?;
        while let Some(connection) = connections.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        idle.remove(address);
        None
    }

    fn put_idle(&self, address: &str, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= PEERS_MAX && !idle.contains_key(address) {
            idle.clear();
        }
        let connections = idle.entry(address.to_owned()).or_default();
        connections.retain(|connection| !connection.is_closed());
        if connections.len() < IDLE_MAX {
            connections.push(connection);
        }
    }
}

async fn connect(caller: Caller<'_>, address: &str) -> io::Result<Connection> {
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    let stream = stream.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // An owner that is gone breaks it; it only fails on a socket that has ended.
    let _ = quelea_net::prepare_socket(&stream);
    let (connection, driver) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    caller.runtime.spawn(async move {
        // It ends with the connection.
        let _ = driver.await;
    });
    Ok(connection)
}
