//! Signs of life, in virtual time.

use quelea_amqp_codec::frame::PROTOCOL_HEADER;
use quelea_amqp_codec::method::{basic, channel};
use quelea_amqp_codec::{CloseCause, Event, FrameKind};

use crate::conversation::{Conversation, config, start_ok, tune_ok};

fn every_20_s() -> Conversation {
    Conversation::open_with(config(), tune_ok(8_192, 10, 20))
}

#[test]
fn a_quiet_server_sends_a_heartbeat_twice_an_interval() {
    let mut talk = every_20_s();
    // What was written in the handshake does not count: the first one leaves after half an interval.
    for _ in 0..3 {
        talk.frame(8, 0, b"");
        assert_eq!(talk.events(), []);
        assert_eq!(talk.server.deadline(), Some(talk.now.plus_ms(10_000)));
        talk.pass_ms(9_999);
        assert_eq!(talk.frames(), []);
        talk.pass_ms(1);
        let frames = talk.frames();
        assert_eq!(frames.len(), 1);
        assert_eq!((frames[0].kind, frames[0].channel), (FrameKind::Heartbeat, 0));
    }
}

#[test]
fn a_server_that_writes_needs_no_heartbeat() {
    let mut talk = every_20_s();
    talk.method(1, channel::Open {});
    talk.events();
    talk.pass_ms(10_000);
    talk.frames();
    for _ in 0..3 {
        talk.server.send(1, &basic::QosOk {}.into());
        talk.replies();
        talk.pass_ms(10_000);
        talk.frame(8, 0, b"");
        assert_eq!(talk.frames(), []);
    }
}

#[test]
fn heartbeats_do_not_pile_up_before_a_client_that_does_not_read() {
    let mut talk = every_20_s();
    talk.pass_ms(10_000);
    for _ in 0..10 {
        talk.frame(8, 0, b"");
        talk.pass_ms(10_000);
    }
    assert_eq!(talk.server.output().len(), 8);
}

#[test]
fn a_client_that_is_silent_for_two_intervals_is_gone() {
    let mut talk = every_20_s();
    for _ in 0..3 {
        talk.pass_ms(10_000);
    }
    talk.pass_ms(9_999);
    assert_eq!(talk.events(), []);
    talk.pass_ms(1);
    assert_eq!(talk.events(), [Event::Closed]);
    assert!(talk.server.is_finished());
    assert_eq!(talk.server.close_cause(), Some(&CloseCause::HeartbeatTimeout));
}

#[test]
fn any_bytes_are_a_sign_of_life() {
    let mut talk = every_20_s();
    for _ in 0..10 {
        talk.pass_ms(30_000);
        talk.write(&[8]);
        assert_eq!(talk.events(), []);
        talk.write(&[0, 0, 0, 0, 0, 0, 0xce]);
        assert_eq!(talk.events(), []);
    }
}

#[test]
fn silence_does_not_count_while_the_caller_does_not_read() {
    let mut talk = every_20_s();
    talk.server.pause_input(true, talk.now);
    for _ in 0..10 {
        talk.pass_ms(30_000);
        assert!(talk.server.deadline() > Some(talk.now));
    }
    assert_eq!(talk.events(), []);
    talk.server.pause_input(false, talk.now);
    talk.pass_ms(39_999);
    assert_eq!(talk.events(), []);
    talk.pass_ms(1);
    assert_eq!(talk.events(), [Event::Closed]);
}

#[test]
fn silence_does_not_count_while_input_waits_for_the_caller() {
    let mut talk = every_20_s();
    talk.method(1, channel::Open {});
    talk.pass_ms(100_000);
    assert_eq!(talk.events(), [Event::ChannelOpen(1)]);
}

#[test]
fn an_interval_of_zero_is_no_heartbeats_at_all() {
    let mut talk = Conversation::open_with(config(), tune_ok(8_192, 10, 0));
    assert_eq!(talk.server.deadline(), None);
    talk.pass_ms(100_000_000);
    assert_eq!(talk.events(), []);
    assert_eq!(talk.frames(), []);
}

#[test]
fn a_client_may_send_heartbeats_during_the_handshake() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.frame(8, 0, b"");
    talk.method(0, start_ok());
    assert!(matches!(talk.events()[..], [Event::Authenticate { .. }]));
}
