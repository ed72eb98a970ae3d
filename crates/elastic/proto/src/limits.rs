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
/// A message's number. Nobody comes so far by counting: so the next number is always one.
pub const SEQUENCE_MAX: u64 = 1 << 63;
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
/// Relays of one queue that a listener is sent to.
pub const RELAYS_MAX: usize = 4_096;
/// Producers in one REPORT; a relay with more sends several.
pub const REPORT_PRODUCERS_MAX: usize = 16_384;
/// Directories that relays and clients know of: they try them in turn.
pub const DIRECTORIES_MAX: usize = 16;
/// An address, as text `host:port`.
pub const ADDRESS_BYTES_MAX: usize = 261;
/// A text for people in an ERROR, NOTICE or BYE.
pub const TEXT_BYTES_MAX: usize = 1_024;
/// The length of a data frame's header.
pub const DATA_HEADER_BYTES: usize = 20;
/// The length of the header that all frames begin with.
pub const FRAME_HEADER_BYTES: usize = 8;
/// Bytes of frames that a producer keeps until they are acknowledged, unless it is set otherwise:
/// four times a relay's usual window, so that a move does not stop it.
pub const PRODUCER_WINDOW_BYTES: usize = 16 << 20;
/// The least that a producer may be set to keep.
pub const PRODUCER_WINDOW_BYTES_MIN: usize = 64 << 10;
/// Frames are gathered, sent, kept and forgotten in runs of about this size.
pub const FRAME_RUN_BYTES: usize = 64 << 10;
/// Relays that may still owe a producer acknowledgements while it sends at another one. A further move
/// has to wait: each keeps a connection open.
pub const RELAY_ATTACHMENTS_MAX: usize = 8;
/// Listeners that may miss something, which a producer remembers; the oldest is forgotten beyond it, which
/// is most likely gone for good.
pub const MISSED_MAX: usize = 256;
/// A relay that has not answered an ATTACH by then is given up; so is one that a listener leaves, when nothing
/// has come from it for so long.
pub const ATTACH_MS_MAX: u64 = 2_000;
/// A producer or listener that has no relay asks the directory again after this time.
pub const OPEN_RETRY_MS: u64 = 1_000;
/// A listener tries an unreachable relay again after this time, doubled each time up to the greatest.
pub const RECONNECT_MS_MIN: u64 = 50;
/// See [`RECONNECT_MS_MIN`].
pub const RECONNECT_MS_MAX: u64 = 1_000;
/// How long a listener holds a producer's messages at a new relay for the old one's FIN, where messages
/// are done when they are relayed: nobody sends them again.
pub const HOLD_MS_MAX: u64 = 5_000;
/// The same where producers keep messages until listeners have them: there they do come.
pub const HOLD_DELIVERED_MS_MAX: u64 = 30_000;
/// How long a listener waits for what a dead relay owed, if its producer may send it again.
pub const RESEND_MS_MAX: u64 = 1_500;
/// Bytes that a listener holds or has waiting for the program: beyond it reads no more.
pub const LISTENER_BYTES_MAX: usize = 64 << 20;
/// Messages that a listener has waiting for the program: beyond it reads no more.
pub const LISTENER_EVENTS_MAX: usize = 65_536;
/// Producers' slots that one listener follows, over all relays.
pub const LISTENER_SLOTS_MAX: usize = 1 << 20;
/// Producers that are gone and whose last message a listener remembers, to know a repetition.
pub const DEPARTED_MAX: usize = 65_536;
/// Events of a session for its program beside messages; the oldest is dropped beyond it.
pub const SESSION_EVENTS_MAX: usize = 256;
