//! What arrives on an open connection: which frame belongs where.

use bytes::Bytes;

use super::channel::{Channel, ChannelState, Content};
use super::content::{BASIC_PUBLISH, publish_refusal};
use super::refusal::{Outcome, Refusal, malformed};
use super::{Phase, ServerConnection};
use crate::event::Event;
use crate::frame::{Frame, FrameKind};
use crate::method::{Method, Sender, channel, connection};
use crate::reply_code::ReplyCode;

/// Class and method number as they begin a method frame's payload.
const CHANNEL_CLOSE: [u8; 4] = [0, 20, 0, 40];
const CHANNEL_CLOSE_OK: [u8; 4] = [0, 20, 0, 41];
const CONNECTION_CLOSE: [u8; 4] = [0, 10, 0, 50];
const CONNECTION_CLOSE_OK: [u8; 4] = [0, 10, 0, 51];
const CHANNEL_OPEN: [u8; 4] = [0, 20, 0, 10];

impl ServerConnection {
    /// Takes one frame of any kind, at any time after the protocol header.
    #[inline]
    pub(super) fn frame(&mut self, frame: Frame) -> Outcome {
        if let Phase::Closing { answered } = self.phase {
            self.swallow(&frame, answered);
            return Ok(None);
        }
        match (frame.kind, frame.channel) {
            (FrameKind::Heartbeat, 0) if frame.payload.is_empty() => Ok(None),
            (FrameKind::Heartbeat, 0) => {
                Err(Refusal::new(ReplyCode::FrameError, "a heartbeat is empty"))
            }
            (FrameKind::Heartbeat, _) => {
                let text = "a heartbeat belongs on channel 0";
                Err(Refusal::new(ReplyCode::UnexpectedFrame, text))
            }
            (FrameKind::Method, 0) => self.connection_method(&frame.payload),
            (_, 0) => Err(Refusal::new(ReplyCode::UnexpectedFrame, "channel 0 carries no content")),
            _ if self.phase == Phase::Running => self.channel_frame(frame),
            (_, number) => Err(Refusal::new(
                ReplyCode::ChannelError,
                format!("a frame on channel {number} before the connection is open"),
            )),
        }
    }

    /// After our `connection.close` only the client's close and close-ok matter.
    fn swallow(&mut self, frame: &Frame, answered: bool) {
        if frame.kind != FrameKind::Method || frame.channel != 0 {
            return;
        }
        match frame.payload.first_chunk() {
            Some(&CONNECTION_CLOSE_OK) => self.finish(),
            // Both closed at once: it gets its close-ok and still owes us ours.
            Some(&CONNECTION_CLOSE) if !answered => {
                self.output.method(0, &connection::CloseOk {}.into());
                self.phase = Phase::Closing { answered: true };
            }
            _ => {}
        }
    }

    fn connection_method(&mut self, payload: &Bytes) -> Outcome {
        let method = decode(payload)?;
        if self.phase != Phase::Running {
            return self.handshake_method(method);
        }
        match method {
            Method::ConnectionClose(close) => Ok(Some(self.closed_by_client(close))),
            Method::ConnectionUpdateSecret(update) => {
                Ok(Some(Event::UpdateSecret { secret: update.new_secret }))
            }
            method => {
                let text = "unexpected method in connection state running";
                Err(Refusal::of_method(ReplyCode::ChannelError, text, &method))
            }
        }
    }

    #[inline]
    fn channel_frame(&mut self, frame: Frame) -> Outcome {
        let number = frame.channel;
        let Some(Channel { state, .. }) = self.channels.get_mut(number) else {
            return self.unopened_channel_frame(&frame);
        };
        let content = match state {
            ChannelState::Open(content) => content,
            ChannelState::ClosedByClient => return Ok(None),
            ChannelState::Closing { answered } => {
                let answered = *answered;
                self.closing_channel_frame(&frame, answered)?;
                return Ok(None);
            }
        };
        match (frame.kind, content) {
            (FrameKind::Method, Content::None) => {
                if frame.payload.first_chunk() == Some(&BASIC_PUBLISH) {
                    self.publish(number, &frame.payload)?;
                    return Ok(None);
                }
                self.channel_method(number, &frame.payload)
            }
            (FrameKind::Header, Content::Header(_)) => self.content_header(number, frame.payload),
            (FrameKind::Body, Content::Body(_)) => self.content_body(number, frame.payload),
            (_, content) => Err(unexpected(content)),
        }
    }

    /// Carries out what a frame on a channel that we closed asks for.
    fn closing_channel_frame(&mut self, frame: &Frame, answered: bool) -> Result<(), Box<Refusal>> {
        if frame.kind != FrameKind::Method {
            return Ok(());
        }
        match frame.payload.first_chunk() {
            Some(&CHANNEL_CLOSE_OK) => self.channels.remove(frame.channel),
            // Both closed at once: it gets its close-ok and still owes us ours.
            Some(&CHANNEL_CLOSE) if !answered => {
                self.output.method(frame.channel, &channel::CloseOk {}.into());
                self.set_state(frame.channel, ChannelState::Closing { answered: true });
            }
            // It takes the number for free without having answered our close. Swallowing that would
            // leave it waiting for its open-ok for ever.
            Some(&CHANNEL_OPEN) => return Err(second_open()),
            _ => {}
        }
        Ok(())
    }

    /// Takes a frame on a channel that is not open: only `channel.open` may come there.
    fn unopened_channel_frame(&mut self, frame: &Frame) -> Outcome {
        let number = frame.channel;
        if frame.kind != FrameKind::Method {
            return Err(unexpected(&Content::None));
        }
        let method = decode(&frame.payload)?;
        if !matches!(method, Method::ChannelOpen(_)) {
            let text = "expected 'channel.open'";
            return Err(Refusal::of_method(ReplyCode::ChannelError, text, &method));
        }
        // Like RabbitMQ it counts: some clients number their channels as they like.
        if self.channels.count() >= usize::from(self.channel_max) {
            let (count, max) = (self.channels.count(), self.channel_max);
            let text = format!(
                "number of channels opened ({count}) has reached the negotiated channel_max ({max})"
            );
            return Err(Refusal::of_method(ReplyCode::NotAllowed, text, &method));
        }
        self.channels.open(number);
        self.output.method(number, &channel::OpenOk {}.into());
        Ok(Some(Event::ChannelOpen(number)))
    }

    fn channel_method(&mut self, number: u16, payload: &Bytes) -> Outcome {
        let method = decode(payload)?;
        match method {
            Method::ChannelClose(_) => Ok(Some(self.channel_closed_by_client(number))),
            Method::ChannelOpen(_) => Err(second_open()),
            // Answers to what we never ask: flow, and cancel without `no_wait`.
            Method::ChannelFlowOk(_) | Method::BasicCancelOk(_) => Ok(None),
            method if method.class_id() == 10 || matches!(method, Method::ChannelCloseOk(_)) => {
                let text = format!("unexpected {} on channel {number}", method.name());
                Err(Refusal::of_method(ReplyCode::CommandInvalid, text, &method))
            }
            method if method.sender() == Sender::Server => {
                let text = format!("{} is for servers to send", method.name());
                Err(Refusal::of_method(ReplyCode::CommandInvalid, text, &method))
            }
            method => Ok(Some(Event::Method { channel: number, method })),
        }
    }
}

/// Decodes a method, or says which reply code its bytes deserve.
pub(super) fn decode(payload: &Bytes) -> Result<Method, Box<Refusal>> {
    Method::decode(payload).map_err(|error| malformed(payload, &error))
}

/// Returns the refusal to open a channel again that is in use, or that we closed and wait for.
#[cold]
fn second_open() -> Box<Refusal> {
    let [_, class_id, _, method_id] = CHANNEL_OPEN.map(u16::from);
    let text = "second 'channel.open' seen".to_owned();
    Box::new(Refusal { code: ReplyCode::ChannelError, text, class_id, method_id })
}

/// Returns the refusal of a frame that does not continue what its channel is in the middle of, in
/// RabbitMQ's words.
#[cold]
fn unexpected(content: &Content) -> Box<Refusal> {
    let code = ReplyCode::UnexpectedFrame;
    match content {
        Content::None => Refusal::new(code, "expected method frame, got non method frame instead"),
        Content::Header(_) => publish_refusal(
            code,
            "expected content header for class 60, got non content header frame instead",
        ),
        Content::Body(_) => {
            publish_refusal(code, "expected content body, got non content body frame instead")
        }
    }
}
