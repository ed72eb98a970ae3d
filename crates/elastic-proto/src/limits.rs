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
/// The body of a control frame: room for the longest lists that are not split ([`RELAYS_MAX`] addresses
/// of the greatest length, [`REPORT_PRODUCERS_MAX`] producers). Prefixes beyond it go by SUBSCRIBE.
pub const CONTROL_BYTES_MAX: usize = 2 << 20;
/// The body of any frame before HELLO and WELCOME: who has not shown its key is not given a buffer.
pub const GREETING_BYTES_MAX: usize = 4_096;
/// The body of a KEEP: one message of the greatest size, or many small ones.
pub const KEEP_BYTES_MAX: usize = MESSAGE_BYTES_MAX + (1 << 20);
/// Messages in one KEEP.
pub const KEEP_MESSAGES_MAX: usize = 65_536;
/// A program's or a host's name in HELLO.
pub const NAME_BYTES_MAX: usize = 255;
/// The key in HELLO.
pub const KEY_BYTES_MAX: usize = 1_024;
/// A provider's request: names a queue, a number and a random part.
pub const REQUEST_BYTES_MAX: usize = 1_024;
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
