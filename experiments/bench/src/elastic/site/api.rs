//! The few calls of the directory's HTTP interface that measurements need.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::Request;

use crate::elastic::error::ElasticError;

/// Of a whole call.
const PATIENCE: Duration = Duration::from_secs(10);
/// An answer has no more bytes than that.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A directory's HTTP interface. Each call has a connection of its own: there are few.
#[derive(Debug)]
pub(crate) struct Api {
    address: String,
    authorization: String,
    agent: Agent,
}

impl Api {
    /// Returns the API at that address, for a `user` that is `NAME:PASSWORD`.
    pub(crate) fn new(address: &str, user: &str) -> Self {
        let authorization = format!("Basic {}", STANDARD.encode(user));
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .max_idle_connections(0)
            .proxy(None)
            .build();
        Self { address: address.to_owned(), authorization, agent: Agent::new_with_config(config) }
    }

    pub(crate) fn define(&self, queue: &str, definition: &Value) -> Result<(), ElasticError> {
        self.call("PUT", &path(queue), Some(definition.to_string())).map(drop)
    }

    pub(crate) fn delete(&self, queue: &str) -> Result<(), ElasticError> {
        self.call("DELETE", &path(queue), None).map(drop)
    }

    pub(crate) fn queue(&self, queue: &str) -> Result<Value, ElasticError> {
        self.call("GET", &path(queue), None)
    }

    pub(crate) fn relays(&self, queue: &str) -> Result<Value, ElasticError> {
        self.call("GET", &format!("{}/relays", path(queue)), None)
    }

    /// Returns what was decided about the queue, oldest first.
    pub(crate) fn events(&self, queue: &str) -> Result<Value, ElasticError> {
        self.call("GET", &format!("{}/events", path(queue)), None)
    }

    /// Asks for the move of a producer. Returns `false` if it cannot be moved now.
    pub(crate) fn move_producer(&self, queue: &str, producer: u128) -> Result<bool, ElasticError> {
        let wanted = json!({ "producer": format!("{producer:032x}") }).to_string();
        match self.call("POST", &format!("{}/moves", path(queue)), Some(wanted)) {
            Ok(_) => Ok(true),
            Err(ElasticError::Refused { status: 409, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn call(&self, method: &str, path: &str, body: Option<String>) -> Result<Value, ElasticError> {
        let url = format!("http://{}{path}", self.address);
        let request = format!("{method} {url}");
        let (status, answer) = match self.exchange(method, &url, body) {
            Ok(found) => found,
            Err(error) => return Err(ElasticError::Call { request, source: error.into_io() }),
        };
        if !(200..300).contains(&status) {
            let text = String::from_utf8_lossy(&answer).into_owned();
            return Err(ElasticError::Refused { request, status, text });
        }
        Ok(serde_json::from_slice(&answer).unwrap_or(Value::Null))
    }

    fn exchange(
        &self,
        method: &str,
        url: &str,
        body: Option<String>,
    ) -> Result<(u16, Vec<u8>), ureq::Error> {
        let request = Request::builder().method(method).uri(url);
        let request = request.header("authorization", &self.authorization);
        let mut response = match body {
            Some(json) => {
                self.agent.run(request.header("content-type", "application/json").body(json)?)?
            }
            None => self.agent.run(request.body(())?)?,
        };
        let answer = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok((response.status().as_u16(), answer))
    }
}

fn path(queue: &str) -> String {
    format!("/api/elastic/queues/{queue}")
}
