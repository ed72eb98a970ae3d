//! Every limit of a connection and of an entry, with its reason.

/// A message with all its parts and their headers: as the elastic queue's native protocol, so that
/// what one edge takes the other can give.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Parts of one message: as the native protocol's.
pub const PARTS_MAX: usize = 64;
/// A command. Topics that are subscribed to are the longest; a peer's metadata is some 50 bytes.
pub const COMMAND_BYTES_MAX: usize = 8 << 10;
/// What CURVE adds to a frame: command name, nonce, authenticator, flags.
pub const CURVE_BYTES: usize = 8 + 8 + 16 + 1;
/// The context of a PING (ZMTP 3.1 §3.6).
pub const CONTEXT_BYTES_MAX: usize = 16;
/// From the first byte to READY. libzmq gives 30 s; ten suffice for three round trips anywhere, and a
/// peer that says nothing holds a socket.
pub const HANDSHAKE_MS_MAX: u64 = 10_000;
/// The longest identity (ZMTP 3.1 §3.3.2).
pub const IDENTITY_BYTES_MAX: usize = 255;
/// A user's name or password: its length is one byte on the wire.
pub const CREDENTIAL_BYTES_MAX: usize = 255;
/// PUBs of one entry. Each has two connections of its own to a directory and a relay, and a window.
pub const PUBS_PER_ENTRY_MAX: u64 = 10_000;
/// Connections of one entry (`elastic.entry.connections_max`).
pub const ENTRY_CONNECTIONS_MAX: usize = 65_536;
/// What we say in an ERROR, and keep of a peer's text.
pub const REASON_BYTES_MAX: usize = 255;
