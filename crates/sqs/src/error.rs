//! Errors as clients see them: what each is called in both protocols, and with which HTTP status it
//! is sent.

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
    /// An error of this kind.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
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
    /// As it is written in both protocols.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "Sender",
            Self::Receiver => "Receiver",
        }
    }
}

/// SQS's own exceptions: those of its service model.
const SQS: &str = "com.amazonaws.sqs";

/// What the framework refuses before it knows the service.
const FRAMEWORK: &str = "com.amazon.coral.service";

/// Declares errors as `Name = namespace, query code, HTTP status, fault`.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $space:ident, $code:literal, $status:literal, $fault:ident;)*) => {
        /// Every error that a client may see.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorKind {
            $($(#[$doc])* $name,)*
        }

        impl ErrorKind {
            /// All of them: those of the service model first, then those that all services share.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name in the service model, or the name that SDKs know it by.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// What stands before its name in JSON.
            #[must_use]
            pub const fn namespace(self) -> &'static str {
                match self {
                    $(Self::$name => $space,)*
                }
            }

            /// Its code in the Query protocol, and in the header `x-amzn-query-error` of a reply in JSON.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$name => $status,)*
                }
            }

            /// Who is to blame.
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
    BatchEntryIdsNotDistinct = SQS, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400, Sender;
    /// The messages of a batch are too long together.
    BatchRequestTooLong = SQS, "AWS.SimpleQueueService.BatchRequestTooLong", 400, Sender;
    /// A batch without entries.
    EmptyBatchRequest = SQS, "AWS.SimpleQueueService.EmptyBatchRequest", 400, Sender;
    /// A queue URL that is none.
    InvalidAddress = SQS, "InvalidAddress", 404, Sender;
    /// A queue has no such attribute.
    InvalidAttributeName = SQS, "InvalidAttributeName", 400, Sender;
    /// An attribute cannot have that value.
    InvalidAttributeValue = SQS, "InvalidAttributeValue", 400, Sender;
    /// The id of a batch entry has other characters than it may have.
    InvalidBatchEntryId = SQS, "AWS.SimpleQueueService.InvalidBatchEntryId", 400, Sender;
    /// A receipt handle is malformed; SQS says [`Self::ReceiptHandleIsInvalid`] today.
    InvalidIdFormat = SQS, "InvalidIdFormat", 404, Sender;
    /// A message has characters that no message may have.
    InvalidMessageContents = SQS, "InvalidMessageContents", 400, Sender;
    /// Not over HTTPS, or with the wrong signature version.
    InvalidSecurity = SQS, "InvalidSecurity", 403, Sender;
    /// The key store refused.
    KmsAccessDenied = SQS, "KMS.AccessDeniedException", 400, Sender;
    /// The key is disabled.
    KmsDisabled = SQS, "KMS.DisabledException", 400, Sender;
    /// The key is for something else.
    KmsInvalidKeyUsage = SQS, "KMS.InvalidKeyUsageException", 400, Sender;
    /// The key is not in a state to be used.
    KmsInvalidState = SQS, "KMS.InvalidStateException", 400, Sender;
    /// There is no such key.
    KmsNotFound = SQS, "KMS.NotFoundException", 400, Sender;
    /// The account has no key store.
    KmsOptInRequired = SQS, "KMS.OptInRequired", 403, Sender;
    /// The key store is asked too often.
    KmsThrottled = SQS, "KMS.ThrottlingException", 400, Sender;
    /// The message is there, but nobody has received it.
    MessageNotInflight = SQS, "AWS.SimpleQueueService.MessageNotInflight", 400, Sender;
    /// More than may be in flight, or more than may be permitted.
    OverLimit = SQS, "OverLimit", 403, Sender;
    /// A purge is less than 60 seconds old.
    PurgeQueueInProgress = SQS, "AWS.SimpleQueueService.PurgeQueueInProgress", 403, Sender;
    /// A queue of that name was deleted less than 60 seconds ago.
    QueueDeletedRecently = SQS, "AWS.SimpleQueueService.QueueDeletedRecently", 400, Sender;
    /// There is no such queue.
    QueueDoesNotExist = SQS, "AWS.SimpleQueueService.NonExistentQueue", 400, Sender;
    /// There is a queue of that name with other attributes.
    QueueNameExists = SQS, "QueueAlreadyExists", 400, Sender;
    /// The receipt handle is none, or not of this queue, or too old.
    ReceiptHandleIsInvalid = SQS, "ReceiptHandleIsInvalid", 404, Sender;
    /// Too many requests.
    RequestThrottled = SQS, "RequestThrottled", 403, Sender;
    /// What was named is not there.
    ResourceNotFoundException = SQS, "ResourceNotFoundException", 404, Sender;
    /// A batch with more than ten entries.
    TooManyEntriesInBatchRequest = SQS, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400, Sender;
    /// It makes no sense here.
    UnsupportedOperation = SQS, "AWS.SimpleQueueService.UnsupportedOperation", 400, Sender;

    /// The caller may not.
    AccessDenied = FRAMEWORK, "AccessDenied", 403, Sender;
    /// The signature is not as it has to be.
    IncompleteSignature = FRAMEWORK, "IncompleteSignature", 400, Sender;
    /// The service failed.
    InternalFailure = FRAMEWORK, "InternalFailure", 500, Receiver;
    /// There is no such operation (Query).
    InvalidAction = FRAMEWORK, "InvalidAction", 400, Sender;
    /// There is no such access key.
    InvalidClientTokenId = FRAMEWORK, "InvalidClientTokenId", 403, Sender;
    /// Parameters that exclude each other.
    InvalidParameterCombination = FRAMEWORK, "InvalidParameterCombination", 400, Sender;
    /// A parameter cannot have that value.
    InvalidParameterValue = FRAMEWORK, "InvalidParameterValue", 400, Sender;
    /// The request is no query string.
    MalformedQueryString = FRAMEWORK, "MalformedQueryString", 404, Sender;
    /// The request names no operation.
    MissingAction = FRAMEWORK, "MissingAction", 400, Sender;
    /// The request is not signed.
    MissingAuthenticationToken = FRAMEWORK, "MissingAuthenticationToken", 403, Sender;
    /// A parameter is missing.
    MissingParameter = FRAMEWORK, "MissingParameter", 400, Sender;
    /// The access key is there, but not for this.
    OptInRequired = FRAMEWORK, "OptInRequired", 403, Sender;
    /// The request was signed too long ago, or in the future.
    RequestExpired = FRAMEWORK, "RequestExpired", 400, Sender;
    /// The request is larger than any may be.
    RequestEntityTooLarge = FRAMEWORK, "RequestEntityTooLarge", 413, Sender;
    /// What was sent is not what was said to be sent.
    SerializationException = FRAMEWORK, "SerializationException", 400, Sender;
    /// Not now.
    ServiceUnavailable = FRAMEWORK, "ServiceUnavailable", 503, Receiver;
    /// The signature is not the one that the secret key makes.
    SignatureDoesNotMatch = FRAMEWORK, "SignatureDoesNotMatch", 403, Sender;
    /// Too many requests of this client.
    ThrottlingException = FRAMEWORK, "ThrottlingException", 400, Sender;
    /// There is no such operation (JSON).
    UnknownOperation = FRAMEWORK, "UnknownOperationException", 404, Sender;
    /// A value is outside of what the service model allows.
    ValidationError = FRAMEWORK, "ValidationError", 400, Sender;
}
