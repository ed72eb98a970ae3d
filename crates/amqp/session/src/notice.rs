//! What an operator should read in the log about a connection.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};

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
        /// What the client says that it is: product and version.
        product: String,
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

/// As a line of a log: what a client has chosen is escaped, so that it stays one.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { user, vhost, product } => {
                let product = OneLine(product);
                write!(
                    f,
                    "user '{user}' authenticated and granted access to vhost '{vhost}', client '{product}'"
                )
            }
            Self::LoginRefused { user, reason } => {
                write!(f, "login of user '{}' refused: {reason}", OneLine(user))
            }
            Self::ChannelError { channel, code, text } => {
                write!(f, "channel {channel} closed: {} - {}", code.text(), OneLine(text))
            }
            Self::Closed(cause) => match cause {
                CloseCause::Client { code, text } => {
                    write!(f, "closed by the client: {code} {}", OneLine(text))
                }
                CloseCause::Server { code, text } => {
                    write!(f, "closed: {code} {}", OneLine(text))
                }
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

/// A text with its control characters escaped.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c.is_control() {
            true => write!(f, "{}", c.escape_default()),
            false => f.write_char(c),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_has_chosen_adds_no_lines() {
        let text = "x\ny".to_owned();
        for notice in [
            Notice::Opened { user: "u".into(), vhost: "/".into(), product: text.clone() },
            Notice::LoginRefused { user: text.clone(), reason: "no" },
            Notice::ChannelError { channel: 1, code: ReplyCode::NotFound, text: text.clone() },
            Notice::Closed(CloseCause::Client { code: 200, text: text.as_str().into() }),
        ] {
            assert!(notice.to_string().contains("x\\ny"), "{notice}");
        }
    }
}
