//! A service and a caller, without a runtime.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quelea_sqs_protocol::action::{
    CreateQueueRequest, Message, ReceiveMessageRequest, SendMessageRequest,
};
use quelea_sqs_protocol::{
    Caller, ChangeSink, Error, ErrorKind, Peeked, QueueClass, QueueRef, Reply, Request, Service,
    ServiceSettings, User,
};

use crate::memory::Memory;

/// The account that everything is in.
pub(crate) const ACCOUNT: &str = "000000000000";

/// A service with its queues.
pub(crate) struct ServiceTest {
    pub(crate) queues: Memory,
    service: Service<Memory, Memory>,
    pub(crate) caller: Caller,
}

impl ServiceTest {
    pub(crate) fn new() -> Self {
        let queues = Memory::default();
        let settings = ServiceSettings {
            region: "us-east-1".into(),
            default_class: QueueClass::Ordered,
            changes: ChangeSink::default(),
        };
        let service = Service::new(queues.clone(), queues.clone(), settings);
        let user = User { name: None, account: Arc::from(ACCOUNT) };
        let caller = Caller {
            user,
            base_url: "http://localhost:9324".to_owned(),
            source_ip: None,
            user_agent: None,
            trace_header: None,
            now_ms: 0,
        };
        Self { queues, service, caller }
    }

    /// Makes queues in that class from now on, unless they say another.
    pub(crate) fn default_class(&mut self, default_class: QueueClass) {
        let settings = ServiceSettings {
            region: "us-east-1".into(),
            default_class,
            changes: ChangeSink::default(),
        };
        self.service = Service::new(self.queues.clone(), self.queues.clone(), settings);
    }

    /// Returns a test with one queue of that name and attributes.
    pub(crate) fn with_queue(name: &str, attributes: &[(&str, &str)]) -> Self {
        let test = Self::new();
        test.create(name, attributes).unwrap();
        test
    }

    pub(crate) fn call(&self, request: impl Into<Request>) -> Result<Reply, Error> {
        ready(self.service.handle(&self.caller, request.into()))
    }

    /// Returns the error that a request gives.
    pub(crate) fn refused(&self, request: impl Into<Request>) -> (ErrorKind, String) {
        let error = self.call(request).unwrap_err();
        (error.kind, error.message)
    }

    pub(crate) fn create(&self, name: &str, attributes: &[(&str, &str)]) -> Result<Reply, Error> {
        self.call(CreateQueueRequest {
            queue_name: some(name),
            attributes: map(attributes),
            tags: BTreeMap::new(),
        })
    }

    pub(crate) fn send(&self, queue: &str, body: &str) -> Result<Reply, Error> {
        self.call(message(queue, body))
    }

    pub(crate) fn peek(&self, queue: &QueueRef, max: usize) -> Result<Peeked, Error> {
        ready(self.service.peek(&self.caller, queue, max))
    }

    /// Receives up to ten messages with all that they have.
    pub(crate) fn receive(&self, queue: &str) -> Vec<Message> {
        let request = ReceiveMessageRequest {
            queue_url: some(queue),
            max_number_of_messages: Some(10),
            message_system_attribute_names: vec!["All".to_owned()],
            message_attribute_names: vec!["All".to_owned()],
            ..ReceiveMessageRequest::default()
        };
        match self.call(request) {
            Ok(Reply::ReceiveMessage(result)) => result.messages,
            other => panic!("{other:?}"),
        }
    }
}

/// Returns what comes of a future that waits for nothing.
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing waits here"),
    }
}

/// Returns a message to send.
pub(crate) fn message(queue: &str, body: &str) -> SendMessageRequest {
    SendMessageRequest {
        queue_url: some(queue),
        message_body: some(body),
        ..SendMessageRequest::default()
    }
}

pub(crate) fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

pub(crate) fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
