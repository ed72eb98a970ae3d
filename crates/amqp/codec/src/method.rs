//! The methods of AMQP 0-9-1, each with its numbers: the index of what the files of
//! [`connection`], [`channel`] and the other classes give the shape of.

pub mod access;
pub mod basic;
pub mod channel;
pub mod confirm;
pub mod connection;
pub mod exchange;
pub mod queue;
pub(crate) mod shape;
pub mod tx;

use bytes::{BufMut, Bytes, BytesMut};

use crate::wire::{DecodeError, Field, Reader, Writer};
use shape::Arguments;

/// Which side may send a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Only the client.
    Client,
    /// Only the server.
    Server,
    /// Either.
    Both,
}

macro_rules! methods {
    ($($variant:ident($shape:ty) = $class:literal, $method:literal, $name:literal, $sender:ident;)*) => {
        /// Any method.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each variant is documented at its struct")]
        pub enum Method {
            $($variant($shape),)*
        }

        impl Method {
            /// Decodes a method frame's payload: class number, method number, fields. Short and
            /// long strings are slices of it.
            ///
            /// # Errors
            /// [`DecodeError`] for unknown numbers, fields that are malformed, or leftover bytes.
            pub fn decode(payload: &Bytes) -> Result<Self, DecodeError> {
                let mut reader = Reader::new(payload, 0, payload.len());
                let class_id = u16::read(&mut reader, "class")?;
                let method_id = u16::read(&mut reader, "method")?;
                let method = match (class_id, method_id) {
                    $(($class, $method) => {
                        Self::$variant(<$shape as Arguments>::read(&mut reader)?)
                    })*
                    _ => return Err(DecodeError::UnknownMethod { class_id, method_id }),
                };
                reader.finish()?;
                Ok(method)
            }

            /// Appends what [`Method::decode`] reads: the payload, without a frame around it.
            pub fn encode(&self, out: &mut BytesMut) {
                out.put_u16(self.class_id());
                out.put_u16(self.method_id());
                let writer = &mut Writer::new(out);
                match self {
                    $(Self::$variant(fields) => Arguments::write(fields, writer),)*
                }
            }

            /// Returns the class's number.
            #[must_use]
            pub const fn class_id(&self) -> u16 {
                match self { $(Self::$variant(_) => $class,)* }
            }

            /// Returns the method's number in its class.
            #[must_use]
            pub const fn method_id(&self) -> u16 {
                match self { $(Self::$variant(_) => $method,)* }
            }

            /// Returns class and method as the specification spells them, such as
            /// `queue.declare-ok`.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// Returns which side may send it.
            #[must_use]
            pub const fn sender(&self) -> Sender {
                match self { $(Self::$variant(_) => Sender::$sender,)* }
            }
        }

        #[cfg(feature = "fuzzing")]
        impl Method {
            /// Returns one of each method, with any values.
            pub(crate) fn sample_each(entropy: &mut crate::sample::Entropy<'_>) -> Vec<Self> {
                vec![$(Self::$variant(crate::sample::Sample::sample(entropy)),)*]
            }
        }

        $(impl From<$shape> for Method {
            fn from(fields: $shape) -> Self {
                Self::$variant(fields)
            }
        })*
    };
}

methods! {
    ConnectionStart(connection::Start) = 10, 10, "connection.start", Server;
    ConnectionStartOk(connection::StartOk) = 10, 11, "connection.start-ok", Client;
    ConnectionSecure(connection::Secure) = 10, 20, "connection.secure", Server;
    ConnectionSecureOk(connection::SecureOk) = 10, 21, "connection.secure-ok", Client;
    ConnectionTune(connection::Tune) = 10, 30, "connection.tune", Server;
    ConnectionTuneOk(connection::TuneOk) = 10, 31, "connection.tune-ok", Client;
    ConnectionOpen(connection::Open) = 10, 40, "connection.open", Client;
    ConnectionOpenOk(connection::OpenOk) = 10, 41, "connection.open-ok", Server;
    ConnectionClose(connection::Close) = 10, 50, "connection.close", Both;
    ConnectionCloseOk(connection::CloseOk) = 10, 51, "connection.close-ok", Both;
    ConnectionBlocked(connection::Blocked) = 10, 60, "connection.blocked", Server;
    ConnectionUnblocked(connection::Unblocked) = 10, 61, "connection.unblocked", Server;
    ConnectionUpdateSecret(connection::UpdateSecret) = 10, 70, "connection.update-secret", Client;
    ConnectionUpdateSecretOk(connection::UpdateSecretOk) = 10, 71, "connection.update-secret-ok", Server;

    ChannelOpen(channel::Open) = 20, 10, "channel.open", Client;
    ChannelOpenOk(channel::OpenOk) = 20, 11, "channel.open-ok", Server;
    ChannelFlow(channel::Flow) = 20, 20, "channel.flow", Both;
    ChannelFlowOk(channel::FlowOk) = 20, 21, "channel.flow-ok", Both;
    ChannelClose(channel::Close) = 20, 40, "channel.close", Both;
    ChannelCloseOk(channel::CloseOk) = 20, 41, "channel.close-ok", Both;

    AccessRequest(access::Request) = 30, 10, "access.request", Client;
    AccessRequestOk(access::RequestOk) = 30, 11, "access.request-ok", Server;

    ExchangeDeclare(exchange::Declare) = 40, 10, "exchange.declare", Client;
    ExchangeDeclareOk(exchange::DeclareOk) = 40, 11, "exchange.declare-ok", Server;
    ExchangeDelete(exchange::Delete) = 40, 20, "exchange.delete", Client;
    ExchangeDeleteOk(exchange::DeleteOk) = 40, 21, "exchange.delete-ok", Server;
    ExchangeBind(exchange::Bind) = 40, 30, "exchange.bind", Client;
    ExchangeBindOk(exchange::BindOk) = 40, 31, "exchange.bind-ok", Server;
    ExchangeUnbind(exchange::Unbind) = 40, 40, "exchange.unbind", Client;
    ExchangeUnbindOk(exchange::UnbindOk) = 40, 51, "exchange.unbind-ok", Server;

    QueueDeclare(queue::Declare) = 50, 10, "queue.declare", Client;
    QueueDeclareOk(queue::DeclareOk) = 50, 11, "queue.declare-ok", Server;
    QueueBind(queue::Bind) = 50, 20, "queue.bind", Client;
    QueueBindOk(queue::BindOk) = 50, 21, "queue.bind-ok", Server;
    QueuePurge(queue::Purge) = 50, 30, "queue.purge", Client;
    QueuePurgeOk(queue::PurgeOk) = 50, 31, "queue.purge-ok", Server;
    QueueDelete(queue::Delete) = 50, 40, "queue.delete", Client;
    QueueDeleteOk(queue::DeleteOk) = 50, 41, "queue.delete-ok", Server;
    QueueUnbind(queue::Unbind) = 50, 50, "queue.unbind", Client;
    QueueUnbindOk(queue::UnbindOk) = 50, 51, "queue.unbind-ok", Server;

    BasicQos(basic::Qos) = 60, 10, "basic.qos", Client;
    BasicQosOk(basic::QosOk) = 60, 11, "basic.qos-ok", Server;
    BasicConsume(basic::Consume) = 60, 20, "basic.consume", Client;
    BasicConsumeOk(basic::ConsumeOk) = 60, 21, "basic.consume-ok", Server;
    BasicCancel(basic::Cancel) = 60, 30, "basic.cancel", Both;
    BasicCancelOk(basic::CancelOk) = 60, 31, "basic.cancel-ok", Both;
    BasicPublish(basic::Publish) = 60, 40, "basic.publish", Client;
    BasicReturn(basic::Return) = 60, 50, "basic.return", Server;
    BasicDeliver(basic::Deliver) = 60, 60, "basic.deliver", Server;
    BasicGet(basic::Get) = 60, 70, "basic.get", Client;
    BasicGetOk(basic::GetOk) = 60, 71, "basic.get-ok", Server;
    BasicGetEmpty(basic::GetEmpty) = 60, 72, "basic.get-empty", Server;
    BasicAck(basic::Ack) = 60, 80, "basic.ack", Both;
    BasicReject(basic::Reject) = 60, 90, "basic.reject", Client;
    BasicRecoverAsync(basic::RecoverAsync) = 60, 100, "basic.recover-async", Client;
    BasicRecover(basic::Recover) = 60, 110, "basic.recover", Client;
    BasicRecoverOk(basic::RecoverOk) = 60, 111, "basic.recover-ok", Server;
    BasicNack(basic::Nack) = 60, 120, "basic.nack", Both;

    ConfirmSelect(confirm::Select) = 85, 10, "confirm.select", Client;
    ConfirmSelectOk(confirm::SelectOk) = 85, 11, "confirm.select-ok", Server;

    TxSelect(tx::Select) = 90, 10, "tx.select", Client;
    TxSelectOk(tx::SelectOk) = 90, 11, "tx.select-ok", Server;
    TxCommit(tx::Commit) = 90, 20, "tx.commit", Client;
    TxCommitOk(tx::CommitOk) = 90, 21, "tx.commit-ok", Server;
    TxRollback(tx::Rollback) = 90, 30, "tx.rollback", Client;
    TxRollbackOk(tx::RollbackOk) = 90, 31, "tx.rollback-ok", Server;
}

impl Method {
    /// Returns whether a content header and body follow it.
    #[must_use]
    pub const fn has_content(&self) -> bool {
        matches!(
            self,
            Self::BasicPublish(_)
                | Self::BasicReturn(_)
                | Self::BasicDeliver(_)
                | Self::BasicGetOk(_)
        )
    }
}
