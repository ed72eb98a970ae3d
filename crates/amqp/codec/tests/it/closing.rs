//! How channels and connections end.

use quelea_amqp_codec::method::{channel, connection, queue};
use quelea_amqp_codec::{CloseCause, Event, Method, ReplyCode};

use crate::conversation::{Conversation, content_header, publish};

fn channel_close() -> channel::Close {
    channel::Close { reply_code: 200, reply_text: "bye".into(), class_id: 0, method_id: 0 }
}

fn connection_close() -> connection::Close {
    connection::Close { reply_code: 200, reply_text: "bye".into(), class_id: 0, method_id: 0 }
}

#[test]
fn the_close_ok_waits_until_the_caller_has_released_the_channel() {
    let mut talk = Conversation::with_channel();
    talk.method(1, channel_close());
    assert_eq!(talk.events(), [Event::ChannelClosed(1)]);
    assert_eq!(talk.replies(), []);
    talk.server.channel_close_ok(1);
    talk.server.channel_close_ok(1);
    assert_eq!(talk.replies(), [(1, channel::CloseOk {}.into())]);
    talk.method(1, channel::Open {});
    assert_eq!(talk.events(), [Event::ChannelOpen(1)]);
}

#[test]
fn the_close_ok_waits_until_the_caller_has_released_the_connection() {
    let mut talk = Conversation::with_channel();
    talk.method(0, connection_close());
    assert_eq!(talk.events(), [Event::Closed], "its channels are over with it");
    assert!(!talk.server.is_finished());
    assert_eq!(talk.replies(), []);
    talk.server.connection_close_ok();
    talk.server.connection_close_ok();
    assert_eq!(talk.replies(), [(0, connection::CloseOk {}.into())]);
    assert!(talk.server.is_finished());
    let cause = CloseCause::Client { code: 200, text: "bye".into() };
    assert_eq!(talk.server.close_cause(), Some(&cause));
}

#[test]
fn a_channel_that_we_close_swallows_everything_until_close_ok() {
    let mut talk = Conversation::with_channel();
    talk.server.close_channel(1, ReplyCode::NotFound, "no exchange 'x' in vhost '/'", 60, 40);
    let close = channel::Close {
        reply_code: 404,
        reply_text: "NOT_FOUND - no exchange 'x' in vhost '/'".into(),
        class_id: 60,
        method_id: 40,
    };
    assert_eq!(talk.replies(), [(1, close.into())]);
    talk.method(1, publish("x", "k"));
    talk.frame(2, 1, &content_header(3, &[0, 0]));
    talk.frame(3, 1, b"abc");
    talk.frame(1, 1, b"not a method");
    assert_eq!(talk.events(), [Event::ChannelClosed(1)]);
    talk.server.channel_close_ok(1);
    talk.server.send(1, &queue::PurgeOk::default().into());
    assert_eq!(talk.replies(), []);
    talk.method(1, channel::CloseOk {});
    talk.method(1, channel::Open {});
    assert_eq!(talk.events(), [Event::ChannelOpen(1)]);
}

#[test]
fn a_channel_that_we_closed_is_reopened_only_after_its_close_ok() {
    let mut talk = Conversation::with_channel();
    talk.server.close_channel(1, ReplyCode::NotFound, "none", 0, 0);
    assert_eq!(talk.events(), [Event::ChannelClosed(1)]);
    talk.channel_close();
    talk.method(1, channel::Open {});
    assert_eq!(talk.events(), [Event::Closed]);
    let (code, text) = talk.connection_close();
    assert_eq!((code, text.as_str()), (504, "CHANNEL_ERROR - second 'channel.open' seen"));
}

#[test]
fn a_channel_that_both_close_at_once_gets_one_close_ok_each() {
    let mut talk = Conversation::with_channel();
    talk.server.close_channel(1, ReplyCode::NotFound, "none", 0, 0);
    talk.replies();
    talk.method(1, channel_close());
    talk.method(1, channel_close());
    assert_eq!(talk.events(), [Event::ChannelClosed(1)]);
    talk.server.channel_close_ok(1);
    assert_eq!(talk.replies(), [(1, channel::CloseOk {}.into())]);
    talk.method(1, channel::CloseOk {});
    talk.method(1, channel::Open {});
    assert_eq!(talk.events(), [Event::ChannelOpen(1)]);
}

#[test]
fn a_hard_code_closes_the_connection_instead_of_the_channel() {
    let mut talk = Conversation::with_channel();
    talk.server.close_channel(1, ReplyCode::NotAllowed, "no", 0, 0);
    assert_eq!(talk.connection_close(), (530, "NOT_ALLOWED - no".to_owned()));
    assert_eq!(talk.events(), [Event::Closed]);
}

#[test]
fn a_connection_that_we_close_swallows_everything_until_close_ok() {
    let mut talk = Conversation::with_channel();
    talk.server.close(ReplyCode::ConnectionForced, "shutdown", 0, 0);
    talk.server.close(ReplyCode::InternalError, "again", 0, 0);
    let (code, text) = talk.connection_close();
    assert_eq!((code, text.as_str()), (320, "CONNECTION_FORCED - shutdown"));
    talk.method(1, queue::Declare::default());
    talk.method(0, connection::Open::default());
    talk.frame(3, 5, b"x");
    assert_eq!(talk.events(), [Event::Closed]);
    talk.server.connection_close_ok();
    assert_eq!(talk.replies(), []);
    assert!(!talk.server.is_finished());
    talk.method(0, connection::CloseOk {});
    assert_eq!(talk.events(), []);
    assert!(talk.server.is_finished());
    let cause = CloseCause::Server { code: 320, text: "CONNECTION_FORCED - shutdown".into() };
    assert_eq!(talk.server.close_cause(), Some(&cause));
}

#[test]
fn a_connection_that_both_close_at_once_is_answered_once() {
    let mut talk = Conversation::open();
    talk.server.close(ReplyCode::ConnectionForced, "shutdown", 0, 0);
    talk.replies();
    talk.method(0, connection_close());
    talk.method(0, connection_close());
    assert_eq!(talk.events(), [Event::Closed]);
    assert_eq!(talk.replies(), [(0, connection::CloseOk {}.into())]);
    assert!(!talk.server.is_finished());
    talk.method(0, connection::CloseOk {});
    talk.events();
    assert!(talk.server.is_finished());
}

#[test]
fn a_client_that_never_says_close_ok_is_not_waited_for() {
    let mut talk = Conversation::open();
    talk.server.close(ReplyCode::ConnectionForced, "shutdown", 0, 0);
    assert_eq!(talk.server.deadline(), Some(talk.now.plus_ms(10_000)));
    talk.pass_ms(9_999);
    assert!(!talk.server.is_finished());
    talk.pass_ms(1);
    assert!(talk.server.is_finished());
    assert_eq!(talk.events(), [Event::Closed]);
}

#[test]
fn nothing_is_sent_after_a_close() {
    let mut talk = Conversation::with_channel();
    talk.server.close(ReplyCode::ConnectionForced, "shutdown", 0, 0);
    talk.replies();
    talk.server.send(0, &connection::Unblocked {}.into());
    talk.server.close_channel(1, ReplyCode::NotFound, "none", 0, 0);
    assert_eq!(talk.replies(), []);
    assert_eq!(talk.events(), [Event::Closed], "the channel's end is part of it");
}

#[test]
fn a_long_reply_text_is_cut_to_a_short_string() {
    let mut talk = Conversation::with_channel();
    talk.server.close_channel(1, ReplyCode::NotFound, &"x".repeat(400), 0, 0);
    let (_, text) = talk.channel_close();
    assert_eq!(text.len(), 255);
    assert!(text.starts_with("NOT_FOUND - xxx") && text.ends_with("x..."));
}

#[test]
fn closing_a_channel_that_is_not_open_does_nothing() {
    let mut talk = Conversation::open();
    talk.server.close_channel(3, ReplyCode::NotFound, "none", 0, 0);
    talk.server.channel_close_ok(3);
    talk.server.connection_close_ok();
    assert_eq!(talk.replies(), Vec::<(u16, Method)>::new());
    assert_eq!(talk.events(), []);
    assert!(talk.server.is_open());
}
