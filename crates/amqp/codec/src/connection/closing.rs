//! How channels and connections end, from either side.

use quelea_model::limits;

use super::channel::{Channel, ChannelState, Content};
use super::refusal::Refusal;
use super::{Phase, ServerConnection};
use crate::event::{CloseCause, Event};
use crate::frame::FrameError;
use crate::method::{channel, connection};
use crate::reply_code::ReplyCode;
use crate::short_str::ShortStr;

impl ServerConnection {
    /// Closes a channel because of an error: queues `channel.close` with `CODE_NAME - text`, and
    /// swallows the channel's input until the client's close-ok. [`Event::ChannelClosed`] follows.
    /// With a hard code it closes the connection instead; a channel that is not open is left alone.
    ///
    /// `class_id` and `method_id` say which method failed; 0 for none.
    pub fn close_channel(
        &mut self,
        channel: u16,
        code: ReplyCode,
        text: &str,
        class_id: u16,
        method_id: u16,
    ) {
        if code.is_hard() {
            self.close(code, text, class_id, method_id);
            return;
        }
        if self.phase != Phase::Running || !self.channels.is_open(channel) {
            return;
        }
        let reply_text = reply_text(code, text);
        let close = channel::Close { reply_code: code.code(), reply_text, class_id, method_id };
        self.output.method(channel, &close.into());
        self.set_state(channel, ChannelState::Closing { answered: false });
        self.channels_closed.push_back(channel);
    }

    /// Closes the connection: queues `connection.close` with `CODE_NAME - text`, and swallows input
    /// until the client's close-ok, for ten seconds at most. [`Event::Closed`] follows.
    pub fn close(&mut self, code: ReplyCode, text: &str, class_id: u16, method_id: u16) {
        if matches!(self.phase, Phase::Closing { .. } | Phase::ClosedByClient | Phase::Finished) {
            return;
        }
        if self.phase == Phase::ProtocolHeader {
            // Who has not said that it speaks AMQP gets no frame.
            let cause = CloseCause::Server { code: code.code(), text: reply_text(code, text) };
            self.end(cause);
            return;
        }
        let close = close_method(code, text, class_id, method_id);
        let text = close.reply_text.clone();
        self.output.method(0, &close.into());
        self.phase = Phase::Closing { answered: false };
        self.phase_ends = self.now.plus_ms(limits::CLOSE_OK_TIMEOUT_MS);
        self.over(CloseCause::Server { code: code.code(), text });
    }

    /// Queues the close-ok that a client's `channel.close` is owed. Does nothing if none is owed.
    pub fn channel_close_ok(&mut self, channel: u16) {
        if let Some(Channel { state: ChannelState::ClosedByClient, .. }) =
            self.channels.get_mut(channel)
        {
            self.channels.remove(channel);
            self.output.method(channel, &channel::CloseOk {}.into());
        }
    }

    /// Queues the close-ok that a client's `connection.close` is owed, the last that is sent. Does
    /// nothing if none is owed.
    pub fn connection_close_ok(&mut self) {
        if self.phase == Phase::ClosedByClient {
            self.output.method(0, &connection::CloseOk {}.into());
            self.finish();
        }
    }

    /// Notes that the client closes a channel. Returns the event that notifies the caller, who owes
    /// the close-ok.
    pub(super) fn channel_closed_by_client(&mut self, channel: u16) -> Event {
        self.set_state(channel, ChannelState::ClosedByClient);
        Event::ChannelClosed(channel)
    }

    /// Notes that the client closes the connection. Returns the event that notifies the caller, who
    /// owes the close-ok.
    pub(super) fn closed_by_client(&mut self, close: connection::Close) -> Event {
        self.phase = Phase::ClosedByClient;
        self.over(CloseCause::Client { code: close.reply_code, text: close.reply_text.detached() });
        self.closed_owed = false;
        self.reader.clear();
        Event::Closed
    }

    /// Closes because of what the client sent.
    pub(super) fn refuse(&mut self, refusal: &Refusal) {
        self.close(refusal.code, &refusal.text, refusal.class_id, refusal.method_id);
    }

    /// Closes because what follows cannot be understood: not even the close-ok could be.
    pub(super) fn lose_framing(&mut self, error: FrameError) {
        self.close(ReplyCode::FrameError, &error.to_string(), 0, 0);
        self.finish();
    }

    /// It is over, and nothing more is said to the client.
    pub(super) fn end(&mut self, cause: CloseCause) {
        self.over(cause);
        self.finish();
    }

    /// Nothing is read or sent any more but what the output holds.
    pub(super) fn finish(&mut self) {
        self.phase = Phase::Finished;
        self.reader.clear();
    }

    /// Returns the next event that does not come from input.
    pub(super) fn owed_event(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.closed_owed) {
            return Some(Event::Closed);
        }
        self.channels_closed.pop_front().map(Event::ChannelClosed)
    }

    /// The connection and all its channels are over: releases what they hold, and owes the event.
    fn over(&mut self, cause: CloseCause) {
        if self.close_cause.is_none() {
            self.close_cause = Some(Box::new(cause));
            self.closed_owed = true;
        }
        self.channels.clear();
        self.channels_closed.clear();
        self.assembling_bytes = 0;
    }

    /// Ends a channel's use, and the message that it was in the middle of.
    pub(super) fn set_state(&mut self, number: u16, state: ChannelState) {
        let Some(channel) = self.channels.get_mut(number) else {
            return;
        };
        let before = std::mem::replace(&mut channel.state, state);
        if let ChannelState::Open(Content::Body(assembly)) = before {
            self.assembling_bytes -= assembly.bytes();
        }
    }
}

/// Returns a reply text as clients know it: `CODE_NAME - detail`, cut to what a short string holds.
pub(super) fn reply_text(code: ReplyCode, text: &str) -> ShortStr {
    ShortStr::cut(&format!("{} - {text}", code.text()))
}

/// Returns the method that ends a connection.
fn close_method(code: ReplyCode, text: &str, class_id: u16, method_id: u16) -> connection::Close {
    let reply_text = reply_text(code, text);
    connection::Close { reply_code: code.code(), reply_text, class_id, method_id }
}
