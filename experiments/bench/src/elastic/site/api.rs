//! The few calls of the directory's HTTP interface that measurements need.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::elastic::error::ElasticError;

/// Of connecting and of each read.
const PATIENCE: Duration = Duration::from_secs(10);
/// An answer has no more bytes than that.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
const HEADERS_MAX: usize = 32;

/// A directory's HTTP interface. Each call has a connection of its own: there are few.
#[derive(Debug)]
pub(crate) struct Api {
    address: String,
    authorization: String,
}

impl Api {
    /// `user` is `NAME:PASSWORD`.
    pub(crate) fn new(address: &str, user: &str) -> Self {
        let authorization = format!("Basic {}", STANDARD.encode(user));
        Self { address: address.to_owned(), authorization }
    }

    pub(crate) fn define(&self, queue: &str, definition: &Value) -> Result<(), ElasticError> {
        self.call("PUT", &path(queue), definition.to_string().as_bytes()).map(drop)
    }

    pub(crate) fn delete(&self, queue: &str) -> Result<(), ElasticError> {
        self.call("DELETE", &path(queue), b"").map(drop)
    }

    pub(crate) fn queue(&self, queue: &str) -> Result<Value, ElasticError> {
        self.call("GET", &path(queue), b"")
    }

    pub(crate) fn relays(&self, queue: &str) -> Result<Value, ElasticError> {
        self.call("GET", &format!("{}/relays", path(queue)), b"")
    }

    /// What was decided about the queue, oldest first.
    pub(crate) fn events(&self, queue: &str) -> Result<Value, ElasticError> {
        self.call("GET", &format!("{}/events", path(queue)), b"")
    }

    /// Has a producer moved; `false` if it cannot be moved now.
    pub(crate) fn move_producer(&self, queue: &str, producer: u128) -> Result<bool, ElasticError> {
        let wanted = json!({ "producer": format!("{producer:032x}") }).to_string();
        match self.call("POST", &format!("{}/moves", path(queue)), wanted.as_bytes()) {
            Ok(_) => Ok(true),
            Err(ElasticError::Refused { status: 409, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn call(&self, method: &str, path: &str, body: &[u8]) -> Result<Value, ElasticError> {
        let request = format!("{method} http://{}{path}", self.address);
        let (status, answer) = match self.exchange(method, path, body) {
            Ok(found) => found,
            Err(source) => return Err(ElasticError::Call { request, source }),
        };
        if !(200..300).contains(&status) {
            let text = String::from_utf8_lossy(&answer).into_owned();
            return Err(ElasticError::Refused { request, status, text });
        }
        Ok(serde_json::from_slice(&answer).unwrap_or(Value::Null))
    }

    fn exchange(&self, method: &str, path: &str, body: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let no_address = || io::Error::new(ErrorKind::NotFound, "no such address");
        let to = self.address.to_socket_addrs()?.next().ok_or_else(no_address)?;
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            self.authorization,
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat())?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        parse(&answer)
    }
}

/// Status and body of an answer after which the connection was closed.
fn parse(answer: &[u8]) -> io::Result<(u16, Vec<u8>)> {
    let wrong = |text: String| io::Error::new(ErrorKind::InvalidData, text);
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(answer).map_err(|error| wrong(error.to_string()))?;
    let httparse::Status::Complete(body_at) = parsed else {
        return Err(wrong("the answer ends early".to_owned()));
    };
    let chunked = response.headers.iter().any(|header| {
        header.name.eq_ignore_ascii_case("transfer-encoding") && header.value != b"identity"
    });
    if chunked {
        return Err(wrong("the answer is in chunks, which is not understood".to_owned()));
    }
    Ok((response.code.unwrap_or_default(), answer[body_at..].to_vec()))
}

fn path(queue: &str) -> String {
    format!("/api/elastic/queues/{queue}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let answer = b"HTTP/1.1 409 Conflict\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(parse(answer).unwrap(), (409, b"{}".to_vec()));
        assert_eq!(parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap(), (204, Vec::new()));
        for wrong in
            ["HTTP/1.1 200", "x\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]
        {
            assert_eq!(
                parse(wrong.as_bytes()).unwrap_err().kind(),
                ErrorKind::InvalidData,
                "{wrong}"
            );
        }
    }
}
