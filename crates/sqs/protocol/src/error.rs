//! Errors as clients see them: what each is called in both protocols, and with which HTTP status it
//! is sent. `docs/sqs/protocol.md` has the same table.

use crate::limits::ERROR_MESSAGE_BYTES_MAX;

/// An error for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", kind.code())]
pub struct Error {
    /// Which one.
    pub kind: ErrorKind,
    /// What is wrong, in SQS's words where they are known.
    pub message: String,
}

impl Error {
    /// Returns an error of this kind. Messages show what is wrong as it was sent, which may be as long as a request: they are cut
    /// at [`ERROR_MESSAGE_BYTES_MAX`], since answers of errors count in no budget.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.truncate(message.floor_char_boundary(ERROR_MESSAGE_BYTES_MAX));
        Self { kind, message }
    }
}

/// Who is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The client.
    Sender,
    /// The service.
    Receiver,
}

impl Blame {
    /// Returns the name as it is written in both protocols.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "Sender",
            Self::Receiver => "Receiver",
        }
    }
}

/// Declares errors as `Name = "name in JSON", "code in Query", HTTP status, fault`.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $json:literal, $code:literal, $status:literal, $fault:ident;)*) => {
        /// Every error that a client may see.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorKind {
            $($(#[$doc])* $name,)*
        }

        impl ErrorKind {
            /// All of them: those of the service model first, then those that all services share.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns its `__type` in JSON. What stands before the number sign is
            /// `com.amazonaws.sqs` for the exceptions of the service model, and something else for
            /// those that services share.
            #[must_use]
            pub const fn type_name(self) -> &'static str {
                match self {
                    $(Self::$name => $json,)*
                }
            }

            /// Returns its code in the Query protocol, and in the header `x-amzn-query-error` of a
            /// reply in JSON.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// Returns the HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$name => $status,)*
                }
            }

            /// Returns who is to blame.
            #[must_use]
            pub const fn fault(self) -> Blame {
                match self {
                    $(Self::$name => Blame::$fault,)*
                }
            }
        }
    };
}

kinds! {
    /// Two entries of a batch have the same id.
    BatchEntryIdsNotDistinct = "com.amazonaws.sqs#BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400, Sender;
    /// The messages of a batch are too long together.
    BatchRequestTooLong = "com.amazonaws.sqs#BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong", 400, Sender;
    /// A batch without entries.
    EmptyBatchRequest = "com.amazonaws.sqs#EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest", 400, Sender;
    /// A queue URL that is none.
    InvalidAddress = "com.amazonaws.sqs#InvalidAddress", "InvalidAddress", 404, Sender;
    /// A queue has no such attribute.
    InvalidAttributeName = "com.amazonaws.sqs#InvalidAttributeName", "InvalidAttributeName", 400, Sender;
    /// An attribute cannot have that value.
    InvalidAttributeValue = "com.amazonaws.sqs#InvalidAttributeValue", "InvalidAttributeValue", 400, Sender;
    /// The id of a batch entry has other characters than it may have.
    InvalidBatchEntryId = "com.amazonaws.sqs#InvalidBatchEntryId", "AWS.SimpleQueueService.InvalidBatchEntryId", 400, Sender;
    /// A receipt handle is malformed; SQS says [`Self::ReceiptHandleIsInvalid`] today.
    InvalidIdFormat = "com.amazonaws.sqs#InvalidIdFormat", "InvalidIdFormat", 404, Sender;
    /// A message has characters that no message may have.
    InvalidMessageContents = "com.amazonaws.sqs#InvalidMessageContents", "InvalidMessageContents", 400, Sender;
    /// Not over HTTPS, or with the wrong signature version.
    InvalidSecurity = "com.amazonaws.sqs#InvalidSecurity", "InvalidSecurity", 403, Sender;
    /// The key store refused.
    KmsAccessDenied = "com.amazonaws.sqs#KmsAccessDenied", "KMS.AccessDeniedException", 400, Sender;
    /// The key is disabled.
    KmsDisabled = "com.amazonaws.sqs#KmsDisabled", "KMS.DisabledException", 400, Sender;
    /// The key is for something else.
    KmsInvalidKeyUsage = "com.amazonaws.sqs#KmsInvalidKeyUsage", "KMS.InvalidKeyUsageException", 400, Sender;
    /// The key is not in a state to be used.
    KmsInvalidState = "com.amazonaws.sqs#KmsInvalidState", "KMS.InvalidStateException", 400, Sender;
    /// There is no such key.
    KmsNotFound = "com.amazonaws.sqs#KmsNotFound", "KMS.NotFoundException", 400, Sender;
    /// The account has no key store.
    KmsOptInRequired = "com.amazonaws.sqs#KmsOptInRequired", "KMS.OptInRequired", 403, Sender;
    /// The key store is asked too often.
    KmsThrottled = "com.amazonaws.sqs#KmsThrottled", "KMS.ThrottlingException", 400, Sender;
    /// The message is there, but nobody has received it.
    MessageNotInflight = "com.amazonaws.sqs#MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight", 400, Sender;
    /// More than may be in flight, or more than may be permitted.
    OverLimit = "com.amazonaws.sqs#OverLimit", "OverLimit", 403, Sender;
    /// A purge is less than 60 seconds old.
    PurgeQueueInProgress = "com.amazonaws.sqs#PurgeQueueInProgress", "AWS.SimpleQueueService.PurgeQueueInProgress", 403, Sender;
    /// A queue of that name was deleted less than 60 seconds ago.
    QueueDeletedRecently = "com.amazonaws.sqs#QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently", 400, Sender;
    /// There is no such queue.
    QueueDoesNotExist = "com.amazonaws.sqs#QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", 400, Sender;
    /// There is a queue of that name with other attributes.
    QueueNameExists = "com.amazonaws.sqs#QueueNameExists", "QueueAlreadyExists", 400, Sender;
    /// The receipt handle is none, or not of this queue, or too old.
    ReceiptHandleIsInvalid = "com.amazonaws.sqs#ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 404, Sender;
    /// Too many requests.
    RequestThrottled = "com.amazonaws.sqs#RequestThrottled", "RequestThrottled", 403, Sender;
    /// What was named is not there.
    ResourceNotFoundException = "com.amazonaws.sqs#ResourceNotFoundException", "ResourceNotFoundException", 404, Sender;
    /// A batch with more than ten entries.
    TooManyEntriesInBatchRequest = "com.amazonaws.sqs#TooManyEntriesInBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400, Sender;
    /// It makes no sense here.
    UnsupportedOperation = "com.amazonaws.sqs#UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation", 400, Sender;

    /// The caller may not.
    AccessDenied = "com.amazon.coral.service#AccessDeniedException", "AccessDenied", 403, Sender;
    /// The signature is not as it has to be.
    IncompleteSignature = "com.amazon.coral.service#IncompleteSignatureException", "IncompleteSignature", 400, Sender;
    /// The service failed.
    InternalFailure = "com.amazon.coral.service#InternalFailureException", "InternalFailure", 500, Receiver;
    /// There is no such operation (Query).
    InvalidAction = "com.amazon.coral.service#InvalidActionException", "InvalidAction", 400, Sender;
    /// There is no such access key.
    InvalidClientTokenId = "com.amazon.coral.service#UnrecognizedClientException", "InvalidClientTokenId", 403, Sender;
    /// A parameter cannot have that value.
    InvalidParameterValue = "com.amazon.coral.service#InvalidParameterValueException", "InvalidParameterValue", 400, Sender;
    /// The request is no query string.
    MalformedQueryString = "com.amazon.coral.service#MalformedQueryStringException", "MalformedQueryString", 404, Sender;
    /// The request names no operation.
    MissingAction = "com.amazon.coral.service#MissingActionException", "MissingAction", 400, Sender;
    /// The request is not signed.
    MissingAuthenticationToken = "com.amazon.coral.service#MissingAuthenticationTokenException", "MissingAuthenticationToken", 403, Sender;
    /// A parameter is missing.
    MissingParameter = "com.amazon.coral.service#MissingRequiredParameterException", "MissingParameter", 400, Sender;
    /// The version of the interface is none that there is (Query).
    NoSuchVersion = "com.amazon.coral.service#NoSuchVersionException", "NoSuchVersion", 400, Sender;
    /// The request was signed too long ago, or in the future.
    RequestExpired = "com.amazon.coral.service#RequestExpiredException", "RequestExpired", 400, Sender;
    /// The request is larger than any may be.
    RequestEntityTooLarge = "com.amazon.coral.service#RequestEntityTooLargeException", "RequestEntityTooLarge", 413, Sender;
    /// A value is not of its member's type, or the request is no JSON.
    SerializationException = "com.amazon.coral.service#SerializationException", "MalformedInput", 400, Sender;
    /// Not now.
    ServiceUnavailable = "com.amazon.coral.service#ServiceUnavailableException", "ServiceUnavailable", 503, Receiver;
    /// The signature is not the one that the secret key makes.
    SignatureDoesNotMatch = "com.amazon.coral.service#InvalidSignatureException", "SignatureDoesNotMatch", 403, Sender;
    /// Too many requests of this client.
    ThrottlingException = "com.amazon.coral.service#ThrottlingException", "ThrottlingException", 400, Sender;
    /// There is no such operation (JSON).
    UnknownOperation = "com.amazon.coral.service#UnknownOperationException", "InvalidAction", 400, Sender;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_shows_is_no_longer_than_its_limit() {
        let error = Error::new(ErrorKind::InvalidAddress, "é".repeat(2_000_000));
        assert_eq!(error.message, "é".repeat(ERROR_MESSAGE_BYTES_MAX / 2));
    }
}
