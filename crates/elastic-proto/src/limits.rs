//! Every limit of the native protocol, with its reason.

/// The protocol's version, in HELLO. A peer with another one is refused by name.
pub const VERSION: u16 = 1;
/// A queue's name, in bytes of UTF-8: as long as an AMQP short string.
pub const QUEUE_NAME_BYTES_MAX: usize = 255;
/// A topic prefix that a listener subscribes to.
pub const PREFIX_BYTES_MAX: usize = 1_024;
/// Prefixes of one listener: bounds what a relay remembers for it.
pub const PREFIXES_MAX: usize = 10_000;
/// A message with all its parts. Larger ones would make every listener's ring a single message.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Parts of one message.
pub const PARTS_MAX: usize = 64;
/// A control frame: none needs more but the lists, which are split.
pub const CONTROL_BYTES_MAX: usize = 1 << 20;
/// Relays of one queue that a listener is told of.
pub const RELAYS_MAX: usize = 4_096;
/// Producers in one REPORT; a relay with more sends several.
pub const REPORT_PRODUCERS_MAX: usize = 16_384;
/// An address, as text `host:port`.
pub const ADDRESS_BYTES_MAX: usize = 261;
/// A text for people in an ERROR, NOTICE or BYE.
pub const TEXT_BYTES_MAX: usize = 1_024;
/// The length of a data frame's header.
pub const DATA_HEADER_BYTES: usize = 20;
/// The length of the header that all frames begin with.
pub const FRAME_HEADER_BYTES: usize = 8;
