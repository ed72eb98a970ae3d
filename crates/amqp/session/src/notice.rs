//! What an operator should read in the log about a connection.

use std::collections::VecDeque;
use std::fmt;

use quelea_amqp_codec::{CloseCause, ReplyCode};

/// Notices that wait for the shell; a peer that causes more between two looks loses the oldest.
const NOTICES_MAX: usize = 32;

/// One line for the log. None is made on the path of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The connection is open.
    Opened {
        /// Who.
        user: String,
        /// Where.
        vhost: String,
    },
    /// The login was refused. The client does not learn why.
    LoginRefused {
        /// Who tried.
        user: String,
        /// Why.
        reason: &'static str,
    },
    /// A method closed its channel.
    ChannelError {
        /// The channel's number.
        channel: u16,
        /// The reply code.
        code: ReplyCode,
        /// The reply text, without the code's name in front.
        text: String,
    },
    /// The connection is over.
    Closed(CloseCause),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { user, vhost } => {
                write!(f, "user '{user}' authenticated and granted access to vhost '{vhost}'")
            }
            Self::LoginRefused { user, reason } => {
                write!(f, "login of user '{user}' refused: {reason}")
            }
            Self::ChannelError { channel, code, text } => {
                write!(f, "channel {channel} closed: {} - {text}", code.text())
            }
            Self::Closed(cause) => match cause {
                CloseCause::Client { code, text } => {
                    write!(f, "closed by the client: {code} {text}")
                }
                CloseCause::Server { code, text } => write!(f, "closed: {code} {text}"),
                CloseCause::WrongProtocol { header } => {
                    write!(f, "closed: does not speak AMQP 0-9-1, began with {header:02x?}")
                }
                CloseCause::LoginRefused => f.write_str("closed: login refused"),
                CloseCause::HandshakeTimeout => f.write_str("closed: the handshake took too long"),
                CloseCause::HeartbeatTimeout => f.write_str("closed: missed heartbeats"),
            },
        }
    }
}

/// The notices of one session, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Notices(VecDeque<Notice>);

impl Notices {
    pub(crate) fn push(&mut self, notice: Notice) {
        if self.0.len() == NOTICES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(notice);
    }

    pub(crate) fn pop(&mut self) -> Option<Notice> {
        self.0.pop_front()
    }
}
