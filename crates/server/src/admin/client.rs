//! One request at a time to the management API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// A list of a hundred thousand queues fits; an endless answer does not.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Why the management API gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("{url:?} is not an address of the form http://HOST:PORT")]
    Url { url: String },
    #[error("cannot connect to the management API at {address}: {source}")]
    Connect { address: String, source: std::io::Error },
    #[error("the management API broke off: {0}")]
    Broken(String),
    #[error("login refused: wrong user name or password, or no tag that allows this")]
    Unauthorized,
    #[error("refused ({status}): {reason}")]
    Refused { status: StatusCode, reason: String },
}

/// Where to ask, and as whom.
pub(crate) struct Client {
    address: String,
    authorization: String,
}

impl Client {
    pub(crate) fn new(url: &str, user: &str, password: &str) -> Result<Self, ClientError> {
        let address = url
            .strip_prefix("http://")
            .map(|rest| rest.trim_end_matches('/'))
            .filter(|rest| !rest.is_empty() && !rest.contains('/'))
            .ok_or_else(|| ClientError::Url { url: url.to_owned() })?;
        let address =
            if address.contains(':') { address.to_owned() } else { format!("{address}:15672") };
        let authorization = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        Ok(Self { address, authorization })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.request(Method::GET, path, None).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<(), ClientError> {
        self.request(Method::PUT, path, Some(body)).await.map(drop)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.request(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.request(Method::DELETE, path, None).await.map(drop)
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let socket = TcpStream::connect(&self.address)
            .await
            .map_err(|source| ClientError::Connect { address: self.address.clone(), source })?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
            .await
            .map_err(|error| ClientError::Broken(error.to_string()))?;
        tokio::spawn(connection);
        let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.address)
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(bytes))
            .map_err(|error| ClientError::Broken(error.to_string()))?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| ClientError::Broken(error.to_string()))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| ClientError::Broken(error.to_string()))?
            .to_bytes();
        let answer = serde_json::from_slice(&body).unwrap_or(Value::Null);
        match status {
            status if status.is_success() => Ok(answer),
            StatusCode::UNAUTHORIZED => Err(ClientError::Unauthorized),
            status => {
                let reason = answer["reason"].as_str().unwrap_or("no reason given").to_owned();
                Err(ClientError::Refused { status, reason })
            }
        }
    }
}

/// A name as one segment of a path.
pub(crate) fn segment(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_one_segment() {
        assert_eq!(segment("/"), "%2F");
        assert_eq!(segment("a b.c-d"), "a%20b.c-d");
    }

    #[test]
    fn an_address_must_be_http_without_a_path() {
        assert!(Client::new("http://127.0.0.1:15672/", "a", "b").is_ok());
        assert_eq!(Client::new("http://host", "a", "b").unwrap().address, "host:15672");
        assert!(Client::new("https://host", "a", "b").is_err());
        assert!(Client::new("http://host/api", "a", "b").is_err());
    }
}
