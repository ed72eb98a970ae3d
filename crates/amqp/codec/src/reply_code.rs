//! Reply codes (AMQP 0-9-1, constants of `amqp0-9-1.xml`).

/// Declares the codes once: number, name on the wire, whether the connection ends by it.
macro_rules! reply_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal, $hard:literal;)*) => {
        /// Why something was closed, returned or refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ReplyCode {
            $($(#[$doc])* $name,)*
        }

        impl ReplyCode {
            /// Returns the number on the wire.
            #[must_use]
            pub const fn code(self) -> u16 {
                match self { $(Self::$name => $code,)* }
            }

            /// Returns the name with which reply texts begin.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns whether it ends the connection; a soft error ends only the channel.
            #[must_use]
            pub const fn is_hard(self) -> bool {
                match self { $(Self::$name => $hard,)* }
            }

            /// Returns the code of a number, if AMQP 0-9-1 has it.
            #[must_use]
            pub const fn from_code(code: u16) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }

            /// All codes, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

reply_codes! {
    /// 200: not an error, the reason of an orderly close.
    Success = 200, "REPLY_SUCCESS", false;
    /// 311: content that cannot be taken or handed over.
    ContentTooLarge = 311, "CONTENT_TOO_LARGE", false;
    /// 312: a mandatory message that no queue took; the code of `basic.return`.
    NoRoute = 312, "NO_ROUTE", false;
    /// 313: an immediate message without a consumer; never sent, immediate is not implemented.
    NoConsumers = 313, "NO_CONSUMERS", false;
    /// 320: an operator, or a node that stops, closed the connection.
    ConnectionForced = 320, "CONNECTION_FORCED", true;
    /// 402: unknown virtual host.
    InvalidPath = 402, "INVALID_PATH", true;
    /// 403: no permission.
    AccessRefused = 403, "ACCESS_REFUSED", false;
    /// 404: no such queue, exchange or virtual host.
    NotFound = 404, "NOT_FOUND", false;
    /// 405: held exclusively by another connection.
    ResourceLocked = 405, "RESOURCE_LOCKED", false;
    /// 406: arguments differ, an unknown delivery tag, a limit.
    PreconditionFailed = 406, "PRECONDITION_FAILED", false;
    /// 501: a frame that cannot be decoded.
    FrameError = 501, "FRAME_ERROR", true;
    /// 502: a method whose fields are malformed.
    SyntaxError = 502, "SYNTAX_ERROR", true;
    /// 503: a method at the wrong time or on the wrong channel.
    CommandInvalid = 503, "COMMAND_INVALID", true;
    /// 504: a channel that is not open, or opened twice.
    ChannelError = 504, "CHANNEL_ERROR", true;
    /// 505: a frame that does not belong in the content at hand.
    UnexpectedFrame = 505, "UNEXPECTED_FRAME", true;
    /// 506: the node lacks resources.
    ResourceError = 506, "RESOURCE_ERROR", true;
    /// 530: outside what was negotiated or what the broker allows.
    NotAllowed = 530, "NOT_ALLOWED", true;
    /// 540: no such method, or one that the broker does not have.
    NotImplemented = 540, "NOT_IMPLEMENTED", true;
    /// 541: the broker failed.
    InternalError = 541, "INTERNAL_ERROR", true;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_number() {
        for code in ReplyCode::ALL {
            assert_eq!(ReplyCode::from_code(code.code()), Some(*code));
        }
        assert_eq!(ReplyCode::from_code(200), Some(ReplyCode::Success));
        assert_eq!(ReplyCode::from_code(1), None);
    }
}
