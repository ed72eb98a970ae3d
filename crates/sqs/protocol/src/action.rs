//! The operations of SQS, with what is asked and answered. Every name is that of the service model.

mod attributes;
mod batch;
mod delete;
mod message_attribute;
mod permissions;
mod queue;
mod receive;
mod redrive;
mod send;
mod tags;
mod visibility;

pub use attributes::{
    GetQueueAttributesRequest, GetQueueAttributesResult, SetQueueAttributesRequest,
};
pub use batch::BatchResultErrorEntry;
pub use delete::{
    DeleteMessageBatchRequest, DeleteMessageBatchRequestEntry, DeleteMessageBatchResult,
    DeleteMessageBatchResultEntry, DeleteMessageRequest,
};
pub use message_attribute::{MessageAttributeValue, MessageSystemAttributeValue};
pub use permissions::{AddPermissionRequest, RemovePermissionRequest};
pub use queue::{
    CreateQueueRequest, CreateQueueResult, DeleteQueueRequest, GetQueueUrlRequest,
    GetQueueUrlResult, ListQueuesRequest, ListQueuesResult, PurgeQueueRequest,
};
pub use receive::{Message, ReceiveMessageRequest, ReceiveMessageResult};
pub use redrive::{
    CancelMessageMoveTaskRequest, CancelMessageMoveTaskResult, ListDeadLetterSourceQueuesRequest,
    ListDeadLetterSourceQueuesResult, ListMessageMoveTasksRequest, ListMessageMoveTasksResult,
    ListMessageMoveTasksResultEntry, StartMessageMoveTaskRequest, StartMessageMoveTaskResult,
};
pub use send::{
    SendMessageBatchRequest, SendMessageBatchRequestEntry, SendMessageBatchResult,
    SendMessageBatchResultEntry, SendMessageRequest, SendMessageResult,
};
pub use tags::{ListQueueTagsRequest, ListQueueTagsResult, TagQueueRequest, UntagQueueRequest};
pub use visibility::{
    ChangeMessageVisibilityBatchRequest, ChangeMessageVisibilityBatchRequestEntry,
    ChangeMessageVisibilityBatchResult, ChangeMessageVisibilityBatchResultEntry,
    ChangeMessageVisibilityRequest,
};

use bytes::BytesMut;

use crate::Error;
use crate::shape::query::Parameters;
use crate::shape::wire::Wire;
use crate::shape::{Description, Shape, json, xml};

/// Declares the operations as `Name(Request) -> Result`; `of queue_url` if it names a queue.
/// Operations without a result are answered by [`Reply::Empty`].
macro_rules! operations {
    ($($name:ident($request:ident) $(of $queue:ident)? $(-> $result:ident)?;)*) => {
        /// An operation.
        #[allow(missing_docs, reason = "the names are the service model's")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action {
            $($name,)*
        }

        impl Action {
            /// Every operation, sorted by name.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the name that clients use.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Returns the operation of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($name) => Some(Self::$name),)*
                    _ => None,
                }
            }
        }

        impl Action {
            /// Returns the shape of its request.
            #[must_use]
            pub const fn input(self) -> &'static Description {
                match self {
                    $(Self::$name => &<$request as Shape>::DESCRIPTION,)*
                }
            }

            /// Returns the shape of its result, if it has one.
            #[must_use]
            pub const fn output(self) -> Option<&'static Description> {
                match self {
                    $($(Self::$name => Some(&<$result as Shape>::DESCRIPTION),)?)*
                    _ => None,
                }
            }
        }

        /// What is asked for.
        #[allow(missing_docs, reason = "the names are the service model's")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Request {
            $($name($request),)*
        }

        impl Request {
            /// Returns the operation.
            #[must_use]
            pub const fn action(&self) -> Action {
                match self {
                    $(Self::$name(_) => Action::$name,)*
                }
            }

            /// Returns the URL of the queue that it is about, if it is about one and says so.
            #[must_use]
            pub fn queue_url(&self) -> Option<&str> {
                match self {
                    $(Self::$name(_request) => None$(.or(_request.$queue.as_deref()))?,)*
                }
            }
        }

        impl Request {
            pub(crate) fn from_json(action: Action, body: &[u8]) -> Result<Self, Error> {
                match action {
                    $(Action::$name => json::decode(body).map(Self::$name),)*
                }
            }

            pub(crate) fn from_query(
                action: Action,
                parameters: &Parameters<'_>,
            ) -> Result<Self, Error> {
                match action {
                    $(Action::$name => Wire::from_parameters(parameters).map(Self::$name),)*
                }
            }

            pub(crate) fn write_json(&self, out: &mut BytesMut) {
                match self {
                    $(Self::$name(request) => Wire::write_json(request, out),)*
                }
            }
        }

        $(impl From<$request> for Request {
            fn from(request: $request) -> Self {
                Self::$name(request)
            }
        })*

        /// What is answered.
        #[allow(missing_docs, reason = "the names are the service model's")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Reply {
            $($(#[doc = concat!("[`", stringify!($result), "`].")] $name($result),)?)*
            /// It is done, and there is nothing to say about it.
            Empty,
        }

        impl Reply {
            pub(crate) fn from_json(action: Action, body: &[u8]) -> Result<Self, Error> {
                match action {
                    $($(Action::$name => json::decode::<$result>(body).map(Self::$name),)?)*
                    _ => Ok(Self::Empty),
                }
            }

            pub(crate) fn write_json(&self, out: &mut BytesMut) {
                match self {
                    $($(Self::$name(result) => <$result as Wire>::write_json(result, out),)?)*
                    Self::Empty => {}
                }
            }

            /// With the result's own tags.
            pub(crate) fn write_xml(&self, out: &mut BytesMut) {
                match self {
                    $($(Self::$name(result) => {
                        let name = <$result as Shape>::DESCRIPTION.name;
                        xml::element_or_empty(name, out, |out| result.write_content(out));
                    })?)*
                    Self::Empty => {}
                }
            }
        }

        $($(impl From<$result> for Reply {
            fn from(result: $result) -> Self {
                Self::$name(result)
            }
        })?)*
    };
}

operations! {
    AddPermission(AddPermissionRequest) of queue_url;
    CancelMessageMoveTask(CancelMessageMoveTaskRequest) -> CancelMessageMoveTaskResult;
    ChangeMessageVisibility(ChangeMessageVisibilityRequest) of queue_url;
    ChangeMessageVisibilityBatch(ChangeMessageVisibilityBatchRequest) of queue_url -> ChangeMessageVisibilityBatchResult;
    CreateQueue(CreateQueueRequest) -> CreateQueueResult;
    DeleteMessage(DeleteMessageRequest) of queue_url;
    DeleteMessageBatch(DeleteMessageBatchRequest) of queue_url -> DeleteMessageBatchResult;
    DeleteQueue(DeleteQueueRequest) of queue_url;
    GetQueueAttributes(GetQueueAttributesRequest) of queue_url -> GetQueueAttributesResult;
    GetQueueUrl(GetQueueUrlRequest) -> GetQueueUrlResult;
    ListDeadLetterSourceQueues(ListDeadLetterSourceQueuesRequest) of queue_url -> ListDeadLetterSourceQueuesResult;
    ListMessageMoveTasks(ListMessageMoveTasksRequest) -> ListMessageMoveTasksResult;
    ListQueueTags(ListQueueTagsRequest) of queue_url -> ListQueueTagsResult;
    ListQueues(ListQueuesRequest) -> ListQueuesResult;
    PurgeQueue(PurgeQueueRequest) of queue_url;
    ReceiveMessage(ReceiveMessageRequest) of queue_url -> ReceiveMessageResult;
    RemovePermission(RemovePermissionRequest) of queue_url;
    SendMessage(SendMessageRequest) of queue_url -> SendMessageResult;
    SendMessageBatch(SendMessageBatchRequest) of queue_url -> SendMessageBatchResult;
    SetQueueAttributes(SetQueueAttributesRequest) of queue_url;
    StartMessageMoveTask(StartMessageMoveTaskRequest) -> StartMessageMoveTaskResult;
    TagQueue(TagQueueRequest) of queue_url;
    UntagQueue(UntagQueueRequest) of queue_url;
}

impl Request {
    /// Returns whether its answer may wait for messages that are not there yet, as far as the
    /// request says: a receive whose `WaitTimeSeconds` is not 0. Without one the queue's own holds.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        matches!(self, Self::ReceiveMessage(receive) if receive.wait_time_seconds != Some(0))
    }
}
