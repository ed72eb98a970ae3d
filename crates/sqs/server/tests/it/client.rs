//! A server on a free port, and clients that write bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use quelea_net::HostNames;
use quelea_sqs_protocol::{ChangeSink, QueueClass};
use quelea_sqs_server::{AllowedOrigins, SqsCounters, SqsServer, SqsSettings, Verify};

use crate::memory::Memory;

/// Longer than anything here takes; a test that hangs fails by it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server that is stopped when it is dropped.
pub(crate) struct Server {
    server: Option<SqsServer>,
    pub(crate) queues: Memory,
    pub(crate) counters: Arc<SqsCounters>,
    pub(crate) address: SocketAddr,
}

/// Returns settings without limits that a test would meet by chance.
pub(crate) fn settings() -> SqsSettings {
    SqsSettings {
        threads: 1,
        account: "000000000000".into(),
        region: "us-east-1".into(),
        default_class: QueueClass::Ordered,
        verify: Verify::Remote,
        hosts: HostNames::new(&["queues.test".to_owned()]),
        origins: AllowedOrigins::new(&["https://app.example".to_owned()]),
        connections_max: 100,
        bodies_bytes_max: 64 * 1024 * 1024,
        idle_max: PATIENCE,
        request_max: PATIENCE,
        counters: Arc::default(),
        changes: ChangeSink::default(),
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(&settings())
    }

    pub(crate) fn with(settings: &SqsSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let queues = Memory::default();
        let server = SqsServer::start(vec![listener], &queues, &queues, settings).unwrap();
        let address = server.addresses()[0];
        let counters = Arc::clone(&settings.counters);
        Self { server: Some(server), queues, counters, address }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A client's socket.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Status line and headers, in small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Client {
    /// The kernel takes little of what the client does not read.
    pub(crate) fn keep_buffer_small(&self) {
        rustix::net::sockopt::set_socket_recv_buffer_size(self.stream.get_ref(), 4_096).unwrap();
    }

    /// Writes; a server that has closed its end is no failure of the test.
    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.get_mut().write_all(bytes.as_ref()).is_ok()
    }

    pub(crate) fn read(&mut self) -> Answer {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            assert!(self.stream.read_line(&mut line).unwrap() > 0, "closed after {head:?}");
            if line == "\r\n" {
                break;
            }
            head.push_str(&line.to_lowercase());
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.stream.read_exact(&mut body).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: String::from_utf8(body).unwrap() }
    }

    pub(crate) fn ask(&mut self, request: impl AsRef<[u8]>) -> Answer {
        assert!(self.write(request));
        self.read()
    }

    /// Waits until the server closes; gives what it wrote before.
    pub(crate) fn read_to_close(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A reset is a close too.
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => rest,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => rest,
            Err(error) => panic!("the server did not close: {error}"),
        }
    }

    /// Returns whether the server closes within this time.
    pub(crate) fn closes_within(&mut self, time: Duration) -> bool {
        self.stream.get_ref().set_read_timeout(Some(time)).unwrap();
        match self.stream.read(&mut [0; 64]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    pub(crate) fn finish_writing(&self) {
        self.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    }
}

/// Returns a request in JSON.
pub(crate) fn post(action: &str, body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: queues.test:9324\r\nContent-Type: application/x-amz-json-1.0\r\n\
         X-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns a receive that waits.
pub(crate) fn long_poll() -> String {
    post("ReceiveMessage", r#"{"QueueUrl":"q","WaitTimeSeconds":20}"#)
}
