//! The client: calls of the AWS JSON 1.0 protocol over one kept connection.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quelea_sqs_protocol::{HttpRequest, Signer};

use crate::cancel::Canceller;
use crate::connection::Connection;
use crate::credentials::Credentials;
use crate::endpoint::Endpoint;
use crate::error::{Error, ServiceError};
use crate::loss::Loss;
use crate::response::{ResponseError, ResponseReader};
use crate::retry::Retry;

/// How long an answer may take, a long poll's own time not counted.
const PATIENCE: Duration = Duration::from_secs(30);

/// Of AWS JSON 1.0.
const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// What requests carry for a service that verifies nothing: it has the form of a signature, since
/// some want to see one.
const UNSIGNED: &str = "Authorization: AWS4-HMAC-SHA256 \
    Credential=unsigned/20200101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0\r\n";

/// Operations that may be done twice without a difference, to the queues and to what is answered.
const IDEMPOTENT: [&str; 10] = [
    "ChangeMessageVisibility",
    "ChangeMessageVisibilityBatch",
    "CreateQueue",
    "DeleteMessage",
    "DeleteMessageBatch",
    "GetQueueAttributes",
    "GetQueueUrl",
    "ListQueueTags",
    "ListQueues",
    "SetQueueAttributes",
];

/// Makes calls, one at a time, over one connection that it keeps. A thread that wants its own
/// connection clones the client; nothing is shared.
pub struct Client {
    endpoint: Arc<Endpoint>,
    credentials: Option<Arc<Credentials>>,
    /// Made of the credentials.
    signer: Option<Signer>,
    /// What a `Host` header holds.
    authority: Arc<str>,
    retry: Retry,
    patience: Duration,
    connection: Option<Connection>,
    reader: ResponseReader,
    /// Request line and the headers that never change.
    prefix: Arc<[u8]>,
    request: Vec<u8>,
    pub(crate) random: fastrand::Rng,
    canceller: Option<Canceller>,
    faults: Option<Box<dyn FnMut() -> Option<Loss> + Send + Sync>>,
}

impl Client {
    /// Returns a client that connects with its first call. Without credentials its requests carry a
    /// signature in form only.
    #[must_use]
    pub fn new(endpoint: Endpoint, credentials: Option<Credentials>) -> Self {
        let authority = endpoint.authority();
        let prefix = format!(
            "POST {} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: {CONTENT_TYPE}\r\n",
            endpoint.path,
        );
        Self {
            endpoint: Arc::new(endpoint),
            signer: credentials.as_ref().map(signer),
            credentials: credentials.map(Arc::new),
            authority: authority.into(),
            retry: Retry::default(),
            patience: PATIENCE,
            connection: None,
            reader: ResponseReader::default(),
            prefix: prefix.into_bytes().into(),
            request: Vec::new(),
            random: fastrand::Rng::new(),
            canceller: None,
            faults: None,
        }
    }

    /// Returns the same client with another policy of retries.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Returns the same client, waiting so long for an answer or a connection; a long poll's own
    /// time comes on top of it. Without it, 30 seconds.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns how long an answer may take.
    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns where its calls go.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Lets `faults` decide, from now on, before each try whether it is to lose something. For
    /// tests and experiments.
    pub fn inject(&mut self, faults: impl FnMut() -> Option<Loss> + Send + Sync + 'static) {
        self.faults = Some(Box::new(faults));
    }

    /// Returns what ends this client's calls from another thread.
    pub fn canceller(&mut self) -> Canceller {
        let canceller = self.canceller.clone().unwrap_or_default();
        self.watch_canceller(&canceller);
        canceller
    }

    /// From now on `canceller` ends this client's calls.
    pub(crate) fn watch_canceller(&mut self, canceller: &Canceller) {
        // A connection that is open already would not be watched.
        self.connection = None;
        self.canceller = Some(canceller.clone());
    }

    /// Makes a call and returns the body of its answer. What failed and may succeed is tried again.
    ///
    /// # Errors
    /// [`Error`] of the last try.
    pub fn call(&mut self, action: &'static str, body: &[u8]) -> Result<&[u8], Error> {
        self.call_patiently(action, body, self.patience)
    }

    /// Makes a call as [`Self::call`] does, but one that the service may answer late.
    ///
    /// # Errors
    /// [`Error`] of the last try.
    pub fn call_patiently(
        &mut self,
        action: &'static str,
        body: &[u8],
        patience: Duration,
    ) -> Result<&[u8], Error> {
        let mut failures = 0;
        loop {
            let error = match self.try_once(action, body, patience) {
                Ok(()) => return Ok(self.reader.body()),
                Err(error) => error,
            };
            failures += 1;
            if failures >= self.retry.attempts || !error.is_transient() {
                return Err(error);
            }
            let wait = self.retry.wait(failures, &mut self.random);
            tracing::debug!(action, %error, ?wait, "trying again");
            self.sleep(wait)?;
        }
    }

    fn sleep(&self, time: Duration) -> Result<(), Error> {
        match &self.canceller {
            Some(canceller) if canceller.sleep(time) => Err(Error::Cancelled),
            Some(_) => Ok(()),
            None => {
                std::thread::sleep(time);
                Ok(())
            }
        }
    }

    fn try_once(
        &mut self,
        action: &'static str,
        body: &[u8],
        patience: Duration,
    ) -> Result<(), Error> {
        let loss = self.faults.as_mut().and_then(|faults| faults());
        if loss == Some(Loss::Request) {
            self.connection = None;
            return Err(Error::Lost(Loss::Request));
        }
        self.render(action, body);
        // The service may close a kept connection at any time: that is no failure.
        let is_idempotent = IDEMPOTENT.contains(&action);
        if !is_idempotent {
            self.connection.take_if(|open| open.has_ended());
        }
        let was_kept = self.connection.as_ref().is_some_and(|open| open.served > 0);
        let mut outcome = self.exchange(loss, patience);
        let is_stale = match &outcome {
            // Nobody begins a request of which a part is missing.
            Err(Error::Write(_)) => true,
            // Perhaps it was done, and the service ended before it answered.
            Err(Error::Response(ResponseError::NoResponse)) => is_idempotent,
            _ => false,
        };
        if was_kept && is_stale {
            outcome = self.exchange(loss, patience);
        }
        match (outcome, &self.canceller) {
            (Err(_), Some(canceller)) if canceller.is_cancelled() => Err(Error::Cancelled),
            (outcome, _) => outcome,
        }
    }

    /// Puts the whole request together, so that one write carries it.
    fn render(&mut self, action: &'static str, body: &[u8]) {
        self.request.clear();
        self.request.extend_from_slice(&self.prefix);
        // Writing to a Vec does not fail.
        let _ = write!(self.request, "X-Amz-Target: AmazonSQS.{action}\r\n");
        self.sign(action, body);
        let _ = write!(self.request, "Content-Length: {}\r\n\r\n", body.len());
        self.request.extend_from_slice(body);
    }

    /// Each try is signed anew: a signature is good for a few minutes only.
    fn sign(&mut self, action: &str, body: &[u8]) {
        let Some(signer) = &mut self.signer else {
            self.request.extend_from_slice(UNSIGNED.as_bytes());
            return;
        };
        let target = format!("AmazonSQS.{action}");
        let headers: [(&str, &[u8]); 3] = [
            ("host", self.authority.as_bytes()),
            ("content-type", CONTENT_TYPE.as_bytes()),
            ("x-amz-target", target.as_bytes()),
        ];
        let request = HttpRequest {
            method: "POST",
            path: &self.endpoint.path,
            query: "",
            headers: &headers,
            body,
        };
        // A clock before 1970 gives a signature that no service takes, and its error says why.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let signed = signer.sign(&request, now_ms);
        // Writing to a Vec does not fail.
        let _ = write!(
            self.request,
            "Authorization: {}\r\nX-Amz-Date: {}\r\n",
            signed.authorization, signed.amz_date
        );
        if let Some(token) = signed.security_token {
            let _ = write!(self.request, "X-Amz-Security-Token: {token}\r\n");
        }
    }

    /// Writes the request and reads its response. A connection that failed is not used again.
    fn exchange(&mut self, loss: Option<Loss>, patience: Duration) -> Result<(), Error> {
        let mut connection = match self.connection.take() {
            Some(open) => open,
            None => self.connect()?,
        };
        connection.write(&self.request).map_err(Error::Write)?;
        if loss == Some(Loss::Response) {
            connection.await_response(patience)?;
            return Err(Error::Lost(Loss::Response));
        }
        let (status, keeps_open) = connection.read(&mut self.reader, patience)?;
        if keeps_open {
            self.connection = Some(connection);
        }
        if (200..300).contains(&status) {
            return Ok(());
        }
        Err(ServiceError::parse(status, self.reader.body()).into())
    }

    fn connect(&self) -> Result<Connection, Error> {
        let refused = |source| Error::Connect { endpoint: self.endpoint.to_string(), source };
        let connection = Connection::open(&self.endpoint, self.patience).map_err(refused)?;
        if let Some(canceller) = &self.canceller
            && !canceller.watch(connection.socket().map_err(refused)?)
        {
            return Err(Error::Cancelled);
        }
        Ok(connection)
    }
}

fn signer(credentials: &Credentials) -> Signer {
    let Credentials { access_key_id, secret_access_key, region, session_token } = credentials;
    let signer = Signer::new(access_key_id, secret_access_key, region);
    match session_token {
        Some(token) => signer.with_session_token(token),
        None => signer,
    }
}

impl Clone for Client {
    /// Returns another client of the same endpoint, with a connection of its own and without the
    /// faults.
    fn clone(&self) -> Self {
        Self {
            endpoint: Arc::clone(&self.endpoint),
            signer: self.credentials.as_deref().map(signer),
            credentials: self.credentials.clone(),
            authority: Arc::clone(&self.authority),
            retry: self.retry,
            patience: self.patience,
            connection: None,
            reader: ResponseReader::default(),
            prefix: Arc::clone(&self.prefix),
            request: Vec::new(),
            random: fastrand::Rng::new(),
            canceller: None,
            faults: None,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoint", &self.endpoint)
            .field("credentials", &self.credentials)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}
