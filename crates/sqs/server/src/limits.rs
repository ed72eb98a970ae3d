//! What one client may cost, with the reasons.

use std::time::Duration;

/// Connections at once (`sqs.connections_max`): receives that wait have one each.
pub const CONNECTIONS_MAX: usize = 150_000;

/// Bytes of a request line with its headers, which is also what is read ahead of pipelined requests:
/// a presigned request carries its parameters in its URL, and a client that writes more there can
/// post them.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Headers of a request. SDKs send some twenty.
pub(crate) const HEADERS_MAX: usize = 100;

/// Bytes of a request's body: the largest batch is 1 MiB, JSON and Base64 add a third, and a form
/// may escape each byte of a Binary value's Base64; what it says besides is small.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of the bodies of all requests at once, until they are answered. That is 64 of the longest,
/// or a small body for each of 150,000 receives that wait; decoding a body takes up to twice its length
/// more. A quarter is kept for bodies that have arrived as a whole. A request beyond it is refused and may be
/// sent again. The same number is that of answers' bytes which clients have not read yet: beyond it no receive
/// begins until some of them are gone; one that waits already is answered.
pub const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes of a header of the client's that is kept while its request is served, or that policies are
/// asked about: a pattern costs its length times the text's. Real ones have some 200.
pub(crate) const KEPT_HEADER_BYTES_MAX: usize = 1024;

/// What is set aside for a body of unknown length.
pub(crate) const BODY_BYTES_START: usize = 4 * 1024;

/// How often connections are looked at for what takes too long. A sweep costs some 10 ns for each.
pub(crate) const SWEEP_MAX: Duration = Duration::from_secs(1);

/// Timeouts shorter than this are for tests.
pub(crate) const SWEEP_MIN: Duration = Duration::from_millis(10);

/// How long a connection may leave a long answer unread while others' receives are refused for it, in
/// milliseconds.
pub(crate) const UNREAD_MS_MAX: u64 = 5_000;

/// How long requests that are being answered may take when the server stops.
pub(crate) const ANSWERS_MAX: Duration = Duration::from_secs(5);

/// How long a receive waits on when the server stops: it may be about to answer.
pub(crate) const RECEIVES_MAX: Duration = Duration::from_millis(500);

/// How long it may take then until the last answers are with their clients.
pub(crate) const STOP_MAX: Duration = Duration::from_millis(500);
