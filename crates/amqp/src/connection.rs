//! The server's side of a connection.

use std::sync::Arc;

use bytes::Bytes;
use quelea_model::{Message, Table, Timestamp};

use crate::config::ConnectionConfig;
use crate::event::{CloseCause, Event};
use crate::method::Method;
use crate::output::Output;
use crate::reply_code::ReplyCode;
use crate::sasl::Mechanism;

/// A login that failed. It says no more, so that nobody learns which users exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthFailure;

/// The server's side of one connection; see the crate's documentation for how to drive it.
pub struct ServerConnection {
    output: Output,
    client_properties: Table,
}

#[allow(unused_variables, missing_docs)]
impl ServerConnection {
    pub fn new(config: Arc<ConnectionConfig>, now: Timestamp) -> Self {
        todo!()
    }
    /// Takes what was read.
    pub fn receive(&mut self, data: Bytes, now: Timestamp) {
        todo!()
    }
    /// The next event, if what was received holds one. Parses no further than that.
    pub fn poll(&mut self, now: Timestamp) -> Option<Event> {
        todo!()
    }
    /// Whether `poll` should be called: bytes that were not looked at, or events, wait.
    pub fn has_input(&self) -> bool {
        todo!()
    }
    /// The caller stops (or goes on) reading for its own reasons: no missed heartbeats meanwhile.
    pub fn pause_input(&mut self, paused: bool, now: Timestamp) {
        todo!()
    }
    /// Answers [`Event::Authenticate`].
    pub fn authenticated(&mut self, outcome: Result<(), AuthFailure>) {
        todo!()
    }
    /// Answers [`Event::Open`].
    pub fn opened(&mut self, outcome: Result<(), (ReplyCode, String)>) {
        todo!()
    }
    /// Queues a method; dropped if the channel is not open. Channel 0 is the connection.
    pub fn send(&mut self, channel: u16, method: &Method) {
        todo!()
    }
    pub fn send_content(&mut self, channel: u16, method: &Method, properties: &[u8], body: Bytes) {
        todo!()
    }
    pub fn deliver(
        &mut self,
        channel: u16,
        consumer_tag: &str,
        delivery_tag: u64,
        redelivered: bool,
        message: &Message,
    ) {
        todo!()
    }
    /// Closes a channel, or with a hard code the connection. `CODE_NAME - text` is what is sent.
    pub fn close_channel(
        &mut self,
        channel: u16,
        code: ReplyCode,
        text: &str,
        class_id: u16,
        method_id: u16,
    ) {
        todo!()
    }
    /// Closes the connection. `CODE_NAME - text` is what is sent.
    pub fn close(&mut self, code: ReplyCode, text: &str, class_id: u16, method_id: u16) {
        todo!()
    }
    /// After [`Event::ChannelClosed`] was handled.
    pub fn channel_close_ok(&mut self, channel: u16) {
        todo!()
    }
    /// After [`Event::Closed`] was handled.
    pub fn connection_close_ok(&mut self) {
        todo!()
    }
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }
    pub fn deadline(&self) -> Option<Timestamp> {
        todo!()
    }
    pub fn handle_timeout(&mut self, now: Timestamp) {
        todo!()
    }
    pub fn is_finished(&self) -> bool {
        todo!()
    }
    pub fn is_open(&self) -> bool {
        todo!()
    }
    pub fn client_properties(&self) -> &Table {
        &self.client_properties
    }
    pub fn capability(&self, name: &str) -> bool {
        todo!()
    }
    pub fn frame_max(&self) -> u32 {
        todo!()
    }
    pub fn channel_max(&self) -> u16 {
        todo!()
    }
    pub fn heartbeat_s(&self) -> u16 {
        todo!()
    }
    pub fn mechanism(&self) -> Option<Mechanism> {
        todo!()
    }
    pub fn close_cause(&self) -> Option<&CloseCause> {
        todo!()
    }
}
