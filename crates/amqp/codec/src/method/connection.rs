//! Class `connection` (10): handshake, orderly end, memory alarms.

use bytes::Bytes;
use quelea_model::Table;

use super::shape::shapes;
use crate::short_str::ShortStr;

shapes! {
    /// The server's first method: who it is and how to log in.
    Start {
        /// 0
        version_major: u8,
        /// 9
        version_minor: u8,
        /// Product, version and capabilities.
        server_properties: Table,
        /// Names of SASL mechanisms, separated by spaces.
        mechanisms: Bytes,
        /// Names of locales, separated by spaces.
        locales: Bytes,
    }
    /// The client's answer to `start`.
    StartOk {
        /// Product, version, capabilities and often `connection_name`.
        client_properties: Table,
        /// The chosen SASL mechanism.
        mechanism: ShortStr,
        /// The mechanism's first response.
        response: Bytes,
        /// The chosen locale.
        locale: ShortStr,
    }
    /// A further SASL challenge; neither PLAIN nor AMQPLAIN has one.
    Secure {
        /// The mechanism's challenge.
        challenge: Bytes,
    }
    /// The answer to `secure`.
    SecureOk {
        /// The mechanism's response.
        response: Bytes,
    }
    /// The server's offers.
    Tune {
        /// Largest channel number; 0 is no limit.
        channel_max: u16,
        /// Largest frame in bytes, its 8 bytes of framing included; 0 is no limit.
        frame_max: u32,
        /// Seconds; 0 is no heartbeats.
        heartbeat: u16,
    }
    /// The client's choice, within the offers.
    TuneOk {
        /// Largest channel number.
        channel_max: u16,
        /// Largest frame in bytes.
        frame_max: u32,
        /// Seconds; 0 is no heartbeats.
        heartbeat: u16,
    }
    /// Enters a virtual host.
    Open {
        /// Its name.
        virtual_host: ShortStr,
    } [ShortStr, bool]
    /// The virtual host is open.
    OpenOk {} [ShortStr]
    /// Ends the connection.
    Close {
        /// A [`ReplyCode`](crate::ReplyCode)'s number.
        reply_code: u16,
        /// For people.
        reply_text: ShortStr,
        /// Class of the method that failed, or 0.
        class_id: u16,
        /// Number of the method that failed, or 0.
        method_id: u16,
    }
    /// The last method of a connection.
    CloseOk {}
    /// The server takes no publishes for now (RabbitMQ's extension).
    Blocked {
        /// For people.
        reason: ShortStr,
    }
    /// The server takes publishes again (RabbitMQ's extension).
    Unblocked {}
    /// A fresh secret for a running connection (RabbitMQ's extension).
    UpdateSecret {
        /// The secret, as the mechanism understands it.
        new_secret: Bytes,
        /// For people.
        reason: ShortStr,
    }
    /// The fresh secret was taken.
    UpdateSecretOk {}
}
