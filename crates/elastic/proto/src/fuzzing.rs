//! What the fuzzer calls: any bytes instead of frames, cut in any way, to the codec and to both sessions.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::error::FrameError;
use crate::session::{
    Event, Link, ListenerConfig, ListenerSession, Output, ProducerConfig, ProducerSession,
    Session as _,
};
use crate::wire::Kind;
use crate::{ClientId, Frame, FrameBuffer, Time};

/// Who the sessions are, so that an input can speak to them.
const QUEUE: &str = "q";
const PRODUCER: ClientId = ClientId(1);
const LISTENER: ClientId = ClientId(2);
/// What a session may ask for at once: no frame makes more than a few.
const OUTPUTS_MAX: usize = 100_000;

/// Byte 0 says how the rest is cut, and with 0x80 that it comes before the greeting; the rest is what a peer
/// sends. Whatever comes, nothing panics, the cuts make no difference, a frame that is read is written as the
/// same bytes, and a producer and a listener that are told all of it go on.
pub fn fuzz_frames(data: &[u8]) {
    let Some((&first, bytes)) = data.split_first() else { return };
    let greeted = first & 0x80 == 0;
    let whole = read(bytes, bytes.len().max(1), greeted);
    let cut = read(bytes, usize::from(first & 0x7f).max(1), greeted);
    assert_eq!(whole, cut, "the same bytes in other pieces mean something else");
    let mut written = BytesMut::new();
    for frame in &whole.0 {
        frame.encode(&mut written).expect("what was read is within the limits");
    }
    assert_eq!(written, bytes[..written.len()], "there is one way to write a frame");
    produce(&whole.0);
    listen(&whole.0);
}

/// Reads all frames up to the first that is wrong. Returns them, and what is wrong with that one.
fn read(bytes: &[u8], cut: usize, greeted: bool) -> (Vec<Frame>, Option<FrameError>) {
    let mut buffer = FrameBuffer::new();
    if greeted {
        buffer.greeted();
    }
    let mut frames = Vec::new();
    for piece in bytes.chunks(cut) {
        buffer.room().extend_from_slice(piece);
        loop {
            let mut taken = match buffer.take() {
                Ok(taken) if taken.is_empty() => break,
                Ok(taken) => taken,
                Err(error) => return (frames, Some(error)),
            };
            loop {
                match Frame::decode(&mut taken) {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(error) => return (frames, Some(error)),
                }
            }
            assert!(taken.is_empty(), "what is taken are whole frames");
        }
    }
    (frames, None)
}

/// Returns whether a directory sends frames of this kind.
const fn is_of_directory(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ProduceAt | Kind::ListenAt | Kind::Redirect | Kind::Notice | Kind::Directories
    )
}

fn encoded(frame: &Frame) -> Bytes {
    let mut bytes = BytesMut::new();
    frame.encode(&mut bytes).expect("it was written before");
    bytes.freeze()
}

/// A producer to whom all of it is said, by its directory and the relay that it went to last.
fn produce(frames: &[Frame]) {
    let config = ProducerConfig::new(QUEUE.to_owned(), PRODUCER);
    let mut session = ProducerSession::new(config, Time::ZERO);
    session.handle_directory_connected(Time::ZERO);
    let mut link = Link(0);
    for (at, frame) in frames.iter().enumerate() {
        let now = Time::from_micros(at as u64 * 100_000);
        let published = session.next_sequence();
        if session.publish(&[b"topic".as_slice(), b"body"]).is_ok() {
            assert_eq!(session.next_sequence().0, published.0 + 1);
        }
        if is_of_directory(frame.kind()) {
            session.handle_directory_frame(frame.clone(), now);
        } else if session.handle_frames(link, encoded(frame), now).is_err() {
            session.handle_lost(link, "no frame", now);
        }
        for _ in 0..OUTPUTS_MAX {
            match session.poll() {
                Some(Output::Connect { link: new, .. }) => {
                    link = new;
                    session.handle_connected(link, now);
                }
                Some(_) => {}
                None => break,
            }
        }
        assert!(session.poll().is_none(), "it comes to an end");
        assert!(session.acknowledged() <= session.sent(), "only what was sent is acknowledged");
        assert!(session.sent() <= session.next_sequence());
        if session.next_deadline().is_some_and(|at| at <= now) {
            session.handle_timeout(now);
        }
        while session.poll_event().is_some() {}
    }
}

/// A listener to whom all of it is said. It never gets a producer's message twice, or before an earlier one.
fn listen(frames: &[Frame]) {
    let config = ListenerConfig {
        queue: QUEUE.to_owned(),
        listener: LISTENER,
        slow: None,
        acknowledge_by_hand: false,
        prefixes: vec![Bytes::new()],
    };
    let mut session = ListenerSession::new(config).expect("one empty prefix");
    session.handle_directory_connected(Time::ZERO);
    let (mut links, mut events) = (Vec::new(), VecDeque::new());
    let mut seen = std::collections::BTreeMap::new();
    for (at, frame) in frames.iter().enumerate() {
        let now = Time::from_micros(at as u64 * 100_000);
        if is_of_directory(frame.kind()) {
            session.handle_directory_frame(frame.clone(), now);
        } else if let Some(link) = links.get(at % links.len().max(1)).copied()
            && session.handle_frames(link, encoded(frame), now).is_err()
        {
            session.handle_lost(link, "no frame", now);
        }
        if session.next_deadline().is_some_and(|at| at <= now) {
            session.handle_timeout(now);
        }
        for _ in 0..OUTPUTS_MAX {
            match session.poll() {
                Some(Output::Connect { link, .. }) => {
                    links.push(link);
                    session.handle_connected(link, now);
                }
                Some(Output::Close { link }) => links.retain(|of| *of != link),
                Some(_) => {}
                None => break,
            }
        }
        assert!(session.poll().is_none(), "it comes to an end");
        session.take_events(&mut events);
        for event in events.drain(..) {
            let (producer, from, to) = match event {
                Event::Message(message) => {
                    (message.producer, message.sequence.0, message.sequence.0 + 1)
                }
                Event::Gap(gap) => (gap.producer, gap.from.0, gap.to.0),
            };
            let next = seen.entry(producer).or_insert(0);
            assert!(from >= *next && to > from, "{producer:?}: {from} after {next}");
            *next = to;
        }
        while session.poll_event().is_some() {}
    }
}
