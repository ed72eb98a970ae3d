//! Writing frames into an [`Output`], for either side.

use bytes::Bytes;
use quelea_model::Message;

use crate::method::Method;
use crate::output::Output;

impl Output {
    /// Appends a method frame.
    pub fn method(&mut self, channel: u16, method: &Method) {
        let _ = (channel, method);
        todo!()
    }

    /// Appends a heartbeat frame.
    pub fn heartbeat(&mut self) {
        todo!()
    }

    /// Appends a method, a content header and as many body frames as `frame_max` needs.
    pub fn content(
        &mut self,
        channel: u16,
        method: &Method,
        properties: &[u8],
        body: Bytes,
        frame_max: u32,
    ) {
        let _ = (channel, method, properties, body, frame_max);
        todo!()
    }

    /// Appends a delivery: what [`Output::content`] does with `basic.deliver`, without building one.
    pub fn deliver(
        &mut self,
        channel: u16,
        consumer_tag: &str,
        delivery_tag: u64,
        redelivered: bool,
        message: &Message,
        frame_max: u32,
    ) {
        let _ = (channel, consumer_tag, delivery_tag, redelivered, message, frame_max);
        todo!()
    }

    /// Appends a publish: what [`Output::content`] does with `basic.publish`, without building one.
    #[allow(clippy::too_many_arguments, reason = "the fields of the wire")]
    pub fn publish(
        &mut self,
        channel: u16,
        exchange: &str,
        routing_key: &str,
        mandatory: bool,
        properties: &[u8],
        body: Bytes,
        frame_max: u32,
    ) {
        let _ = (channel, exchange, routing_key, mandatory, properties, body, frame_max);
        todo!()
    }
}
