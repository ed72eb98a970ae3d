//! One request at a time to the management API.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use ureq::Agent;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE};
use ureq::http::request::Builder;
use ureq::http::{Method, Request, StatusCode};

use super::table::visible;

/// A list of a hundred thousand queues fits; an endless answer does not.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Why the management API gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("{url:?} is not an address of the form http://HOST:PORT")]
    Url { url: String },
    #[error("cannot connect to the management API at {address}: {source}")]
    Connect { address: String, source: io::Error },
    #[error("the management API broke off: {0}")]
    Broken(ureq::Error),
    #[error("login refused: wrong user name, password or token, or no tag that allows this")]
    Unauthorized,
    #[error("refused ({status}): {reason}")]
    Refused { status: StatusCode, reason: String },
}

/// How one logs in.
#[derive(Clone, Copy)]
pub(crate) enum Credentials<'a> {
    Password(&'a str, &'a str),
    Token(&'a str),
}

/// The broker's management API, and the user who logs in there.
pub(crate) struct Client {
    agent: Agent,
    address: String,
    authorization: String,
}

impl Client {
    pub(crate) fn new(url: &str, credentials: Credentials<'_>) -> Result<Self, ClientError> {
        let address = url
            .strip_prefix("http://")
            .map(|rest| rest.trim_end_matches('/'))
            .filter(|rest| !rest.is_empty() && !rest.contains('/'))
            .ok_or_else(|| ClientError::Url { url: url.to_owned() })?;
        let address =
            if address.contains(':') { address.to_owned() } else { format!("{address}:15672") };
        let authorization = match credentials {
            Credentials::Password(user, password) => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
            }
            Credentials::Token(token) => format!("Bearer {token}"),
        };
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // A broker is reached directly, whatever the environment says of the world wide web.
            .proxy(None)
            .build()
            .new_agent();
        Ok(Self { agent, address, authorization })
    }

    /// Returns the address: `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.request(Method::GET, path, None)
    }

    /// Gets an object; `None` if there is no such object.
    pub(crate) fn find(&self, path: &str) -> Result<Option<Value>, ClientError> {
        match self.get(path) {
            Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Result<(), ClientError> {
        self.request(Method::PUT, path, Some(body)).map(drop)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.request(Method::POST, path, Some(body))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.delete_because(path, None)
    }

    /// Deletes as [`Client::delete`] does, with a reason, which the client of a connection that is
    /// closed gets.
    pub(crate) fn delete_because(
        &self,
        path: &str,
        reason: Option<&str>,
    ) -> Result<(), ClientError> {
        let mut request = self.begin(Method::DELETE, path);
        if let Some(reason) = reason {
            request = request.header("x-reason", reason);
        }
        self.send(request, None).map(drop)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        self.send(self.begin(method, path), body)
    }

    fn begin(&self, method: Method, path: &str) -> Builder {
        Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, "application/json")
    }

    fn send(&self, request: Builder, body: Option<&Value>) -> Result<Value, ClientError> {
        let response = match body {
            Some(body) => request.body(body.to_string()).map(|request| self.agent.run(request)),
            None => request.body(()).map(|request| self.agent.run(request)),
        };
        let mut response = response
            .map_err(|error| ClientError::Broken(error.into()))?
            .map_err(|error| self.failure(error))?;
        let answer = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let answer = answer.map_err(ClientError::Broken)?;
        let answer = serde_json::from_slice(&answer).unwrap_or(Value::Null);
        match response.status() {
            status if status.is_success() => Ok(answer),
            StatusCode::UNAUTHORIZED => Err(ClientError::Unauthorized),
            status => {
                let reason = visible(answer["reason"].as_str().unwrap_or("no reason given"));
                Err(ClientError::Refused { status, reason })
            }
        }
    }

    fn failure(&self, error: ureq::Error) -> ClientError {
        let connect = |source| ClientError::Connect { address: self.address.clone(), source };
        match error {
            ureq::Error::HostNotFound => connect(io::Error::other("host not found")),
            ureq::Error::Io(source) if never_connected(&source) => connect(source),
            error => ClientError::Broken(error),
        }
    }
}

/// Returns whether a connection could not be made: every failure but those of one that was there.
fn never_connected(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    ![BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&error.kind())
}

/// Returns a name as one segment of a path.
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
        let new = |url| Client::new(url, Credentials::Password("a", "b"));
        assert!(new("http://127.0.0.1:15672/").is_ok());
        assert_eq!(new("http://host").unwrap().address, "host:15672");
        assert!(new("https://host").is_err());
        assert!(new("http://host/api").is_err());
    }
}
