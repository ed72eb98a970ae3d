//! Signatures first: what is not written yet. This file shrinks to nothing.
#![expect(unused_variables, clippy::unimplemented, missing_docs, clippy::missing_errors_doc, clippy::unused_self, reason = "signatures first")]

use std::sync::Arc;

use quelea_model::Timestamp;
use quelea_store::{Progress, Store, Ticket};

use crate::access::{Permission, TopicPermission, User};
use crate::error::*;
use crate::reply::*;
use crate::report::*;
use crate::request::*;
use crate::{Broker, ChannelId, CloseReason, ConnectionId, Effect};

impl Broker {
    // connections and channels
    pub fn open_connection(&mut self, now: Timestamp, info: ConnectionInfo) -> Result<ConnectionId, OpenError> { unimplemented!() }
    pub fn close_connection(&mut self, now: Timestamp, connection: ConnectionId) { unimplemented!() }
    /// The peer's bytes that were written; `usize::MAX` when nothing waits any more.
    pub fn output_drained(&mut self, now: Timestamp, connection: ConnectionId, bytes: usize) { unimplemented!() }
    pub fn open_channel(&mut self, connection: ConnectionId, number: u16) -> Result<ChannelId, ChannelGone> { unimplemented!() }
    pub fn close_channel(&mut self, now: Timestamp, channel: ChannelId) { unimplemented!() }
    /// Asks the session to close it: Effect::CloseConnection. False: there is none.
    pub fn request_close(&mut self, connection: ConnectionId, reason: CloseReason) -> bool { unimplemented!() }
    // exchanges
    pub fn declare_exchange(&mut self, now: Timestamp, channel: ChannelId, request: &DeclareExchange) -> Result<Ticket, ExchangeError> { unimplemented!() }
    pub fn delete_exchange(&mut self, now: Timestamp, channel: ChannelId, name: &str, if_unused: bool) -> Result<Ticket, ExchangeError> { unimplemented!() }
    pub fn bind_exchange(&mut self, now: Timestamp, channel: ChannelId, request: &ExchangeBinding) -> Result<Ticket, BindingError> { unimplemented!() }
    pub fn unbind_exchange(&mut self, now: Timestamp, channel: ChannelId, request: &ExchangeBinding) -> Result<Ticket, BindingError> { unimplemented!() }
    // queues
    pub fn declare_queue(&mut self, now: Timestamp, channel: ChannelId, request: &DeclareQueue) -> Result<QueueDeclared, DeclareQueueError> { unimplemented!() }
    pub fn bind_queue(&mut self, now: Timestamp, channel: ChannelId, request: &QueueBinding) -> Result<Ticket, BindingError> { unimplemented!() }
    pub fn unbind_queue(&mut self, now: Timestamp, channel: ChannelId, request: &QueueBinding) -> Result<Ticket, BindingError> { unimplemented!() }
    pub fn purge_queue(&mut self, now: Timestamp, channel: ChannelId, name: &str) -> Result<Purged, QueueError> { unimplemented!() }
    pub fn delete_queue(&mut self, now: Timestamp, channel: ChannelId, name: &str, if_unused: bool, if_empty: bool) -> Result<QueueDeleted, QueueError> { unimplemented!() }
    // messages
    pub fn publish(&mut self, now: Timestamp, channel: ChannelId, publish: Publish<'_>) -> Result<Published, PublishError> { unimplemented!() }
    /// For tx: everything that `publish` would refuse, without publishing.
    pub fn check_publish(&mut self, channel: ChannelId, exchange: &str, routing_key: &str, properties: &[u8], body_len: usize) -> Result<(), PublishError> { unimplemented!() }
    pub fn begin_atomic(&mut self) { unimplemented!() }
    pub fn end_atomic(&mut self) -> Ticket { unimplemented!() }
    pub fn consume(&mut self, now: Timestamp, channel: ChannelId, request: &Consume) -> Result<Arc<str>, ConsumeError> { unimplemented!() }
    /// False: there is no such consumer (cancel-ok all the same).
    pub fn cancel(&mut self, now: Timestamp, channel: ChannelId, consumer_tag: &str) -> bool { unimplemented!() }
    pub fn get(&mut self, now: Timestamp, channel: ChannelId, queue: &str, no_ack: bool) -> Result<(), GetError> { unimplemented!() }
    pub fn ack(&mut self, now: Timestamp, channel: ChannelId, tag: u64, multiple: bool) -> Result<Ticket, UnknownDeliveryTag> { unimplemented!() }
    pub fn nack(&mut self, now: Timestamp, channel: ChannelId, tag: u64, multiple: bool, requeue: bool) -> Result<Ticket, UnknownDeliveryTag> { unimplemented!() }
    pub fn reject(&mut self, now: Timestamp, channel: ChannelId, tag: u64, requeue: bool) -> Result<Ticket, UnknownDeliveryTag> { unimplemented!() }
    /// For tx: whether `ack`, `nack` or `reject` would know the tag.
    pub fn check_tag(&self, channel: ChannelId, tag: u64, multiple: bool) -> Result<(), UnknownDeliveryTag> { unimplemented!() }
    pub fn recover(&mut self, now: Timestamp, channel: ChannelId, requeue: bool) { unimplemented!() }
    pub fn set_prefetch(&mut self, now: Timestamp, channel: ChannelId, count: u16, global: bool) { unimplemented!() }
    pub fn set_flow(&mut self, now: Timestamp, channel: ChannelId, active: bool) { unimplemented!() }
    // driving
    pub fn poll_effect(&mut self) -> Option<Effect> { unimplemented!() }
    /// True: call again soon, there is more to do.
    pub fn run(&mut self, now: Timestamp) -> bool { unimplemented!() }
    pub fn deadline(&self) -> Option<Timestamp> { unimplemented!() }
    pub fn store_mut(&mut self) -> &mut dyn Store { unimplemented!() }
    pub fn progress(&self) -> Progress { unimplemented!() }
    pub fn publishers_blocked(&self) -> Option<&str> { unimplemented!() }
    pub fn accepts_publishes(&self) -> bool { unimplemented!() }
    /// Then `run` until it returns false and the store has no more jobs, then drop.
    pub fn begin_shutdown(&mut self, now: Timestamp) { unimplemented!() }
    // access and virtual hosts
    pub fn user(&self, name: &str) -> Option<&User> { unimplemented!() }
    pub fn users(&self) -> Vec<User> { unimplemented!() }
    pub fn put_user(&mut self, name: &str, password_hash: &str, tags: &[&str]) -> Result<Ticket, AdminError> { unimplemented!() }
    pub fn delete_user(&mut self, name: &str) -> Result<Ticket, AdminError> { unimplemented!() }
    pub fn put_vhost(&mut self, name: &str, description: &str, tags: &[&str]) -> Result<Ticket, AdminError> { unimplemented!() }
    pub fn delete_vhost(&mut self, now: Timestamp, name: &str) -> Result<Ticket, AdminError> { unimplemented!() }
    pub fn set_permissions(&mut self, user: &str, vhost: &str, configure: &str, write: &str, read: &str) -> Result<Ticket, AdminError> { unimplemented!() }
    pub fn clear_permissions(&mut self, user: &str, vhost: &str) -> Result<Ticket, AdminError> { unimplemented!() }
    pub fn permissions(&self) -> Vec<Permission> { unimplemented!() }
    pub fn set_topic_permissions(&mut self, user: &str, vhost: &str, exchange: &str, write: &str, read: &str) -> Result<Ticket, AdminError> { unimplemented!() }
    pub fn clear_topic_permissions(&mut self, user: &str, vhost: &str, exchange: Option<&str>) -> Result<Ticket, AdminError> { unimplemented!() }
    pub fn topic_permissions(&self) -> Vec<TopicPermission> { unimplemented!() }
    // reports
    pub fn overview(&self) -> Overview { unimplemented!() }
    pub fn vhosts(&self) -> Vec<VhostReport> { unimplemented!() }
    pub fn queues(&self, vhost: Option<&str>) -> Vec<QueueReport> { unimplemented!() }
    pub fn queue(&self, vhost: &str, name: &str) -> Option<QueueReport> { unimplemented!() }
    pub fn exchanges(&self, vhost: Option<&str>) -> Vec<ExchangeReport> { unimplemented!() }
    pub fn bindings(&self, vhost: Option<&str>) -> Vec<BindingReport> { unimplemented!() }
    pub fn connections(&self) -> Vec<ConnectionReport> { unimplemented!() }
    pub fn channels(&self) -> Vec<ChannelReport> { unimplemented!() }
    pub fn consumers(&self, vhost: Option<&str>) -> Vec<ConsumerReport> { unimplemented!() }
}
