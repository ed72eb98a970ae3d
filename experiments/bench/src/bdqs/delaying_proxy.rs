//! A proxy before a port whose answers it holds back for a while, as a network that is far away would.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::bdqs::error::BdqsError;
use crate::clock::now_ns;

/// Parts of an answer that are held back at once; who sends more waits.
const HELD_MAX: usize = 4_096;
const PART_BYTES: usize = 64 * 1024;
const STACK_BYTES: usize = 256 * 1024;

/// Takes connections until it is dropped; those that are open then end with their clients.
#[derive(Debug)]
pub(crate) struct DelayingProxy {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl DelayingProxy {
    /// Starts a proxy before `upstream`, `host:port`, on a free port of the same host: Cassandra's
    /// driver connects to a node at the address that the node names, with the port that it was
    /// given.
    pub(crate) fn start(upstream: &str, delay_ms: u64) -> Result<Self, BdqsError> {
        let failed = |error: io::Error| BdqsError::System {
            doing: "cannot start a proxy",
            reason: error.to_string(),
        };
        let host = upstream.rsplit_once(':').map_or(upstream, |(host, _)| host);
        let listener = TcpListener::bind(format!("{host}:0")).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let is_over = Arc::<AtomicBool>::default();
        let (over, upstream) = (Arc::clone(&is_over), upstream.to_owned());
        spawn(move || {
            for client in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                // A client whose connection fails sees it end.
                let _ = join(client, &upstream, delay_ms);
            }
        })
        .map_err(failed)?;
        Ok(Self { address, is_over })
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for DelayingProxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The listener looks when somebody comes.
        let _ = TcpStream::connect(self.address);
    }
}

/// What came, and when it may go on.
type Part = (u64, Vec<u8>);

fn join(client: TcpStream, upstream: &str, delay_ms: u64) -> io::Result<()> {
    let server = TcpStream::connect(upstream)?;
    for socket in [&client, &server] {
        socket.set_nodelay(true)?;
    }
    let (mut client_reads, mut server_writes) = (client.try_clone()?, server.try_clone()?);
    spawn(move || {
        let _ = io::copy(&mut client_reads, &mut server_writes);
        let _ = server_writes.shutdown(Shutdown::Both);
    })?;
    let (held, due) = sync_channel(HELD_MAX);
    spawn(move || hold_back(server, &held, delay_ms))?;
    spawn(move || pass_on(client, &due))
}

fn hold_back(mut server: TcpStream, held: &SyncSender<Part>, delay_ms: u64) {
    let mut part = vec![0; PART_BYTES];
    while let Ok(count @ 1..) = server.read(&mut part) {
        if held.send((now_ns() + delay_ms * 1_000_000, part[..count].to_vec())).is_err() {
            return;
        }
    }
}

fn pass_on(mut client: TcpStream, due: &Receiver<Part>) {
    while let Ok((at_ns, part)) = due.recv() {
        thread::sleep(Duration::from_nanos(at_ns.saturating_sub(now_ns())));
        if client.write_all(&part).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

fn spawn(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("proxy".to_owned()).stack_size(STACK_BYTES).spawn(run).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_whole_and_late_and_requests_are_not() {
        let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = upstream.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            let (mut socket, _) = upstream.accept().unwrap();
            let mut request = [0; 4];
            socket.read_exact(&mut request).unwrap();
            let answered_ns = now_ns();
            socket.write_all(&[request.as_slice(), &vec![7; 200_000]].concat()).unwrap();
            answered_ns
        });
        let proxy = DelayingProxy::start(&address, 20).unwrap();
        let mut client = TcpStream::connect(proxy.address()).unwrap();
        client.write_all(b"ping").unwrap();
        let mut first = [0; 4];
        client.read_exact(&mut first).unwrap();
        let late_ns = now_ns() - server.join().unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        assert_eq!((&first, rest.len()), (b"ping", 200_000));
        assert!(late_ns >= 20_000_000, "{late_ns}");
    }
}
