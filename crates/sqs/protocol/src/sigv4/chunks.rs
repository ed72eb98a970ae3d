//! The content encoding `aws-chunked`: a body in chunks, each signed together with the signature of
//! the one before it.
//!
//! `<size in hexadecimal>;chunk-signature=<64 digits>\r\n<bytes>\r\n`, the last chunk is empty.

use bytes::Bytes;

use super::SignatureError;
use super::digest::Digest32;
use super::signing_keys::SigningKey;

/// Verifies the chunks of one body.
pub(crate) struct ChunkVerifier {
    key: SigningKey,
    timestamp: String,
    scope: String,
    /// The signature of the chunk before, at first that of the request.
    previous: Digest32,
    /// What the content has to add up to, if the request says so.
    length: Option<usize>,
}

impl std::fmt::Debug for ChunkVerifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkVerifier").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// More digits than a size that fits in memory has.
const SIZE_DIGITS_MAX: usize = 12;

const fn malformed(problem: &'static str) -> SignatureError {
    SignatureError::ChunkShape { problem }
}

impl ChunkVerifier {
    pub(crate) const fn new(
        key: SigningKey,
        timestamp: String,
        scope: String,
        previous: Digest32,
        length: Option<usize>,
    ) -> Self {
        Self { key, timestamp, scope, previous, length }
    }

    /// Verifies all chunks, and returns what they hold.
    pub(crate) fn open(mut self, body: &Bytes) -> Result<Bytes, SignatureError> {
        let mut content = Vec::with_capacity(body.len());
        let mut rest = &body[..];
        for number in 0.. {
            let chunk = Chunk::cut(&mut rest)?;
            if !self.is_signed(&chunk) {
                return Err(SignatureError::ChunkMismatch { number });
            }
            if chunk.bytes.is_empty() {
                break;
            }
            content.extend_from_slice(chunk.bytes);
        }
        if !rest.is_empty() {
            return Err(malformed("something follows the last chunk"));
        }
        if self.length.is_some_and(|length| length != content.len()) {
            return Err(malformed("its content is not x-amz-decoded-content-length long"));
        }
        Ok(content.into())
    }

    fn is_signed(&mut self, chunk: &Chunk<'_>) -> bool {
        let string_to_sign = format!(
            "AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{}\n{}\n{}",
            self.timestamp,
            self.scope,
            self.previous,
            Digest32::of(b""),
            Digest32::of(chunk.bytes),
        );
        self.previous = chunk.signature;
        self.key.verify(&string_to_sign, &chunk.signature)
    }
}

struct Chunk<'a> {
    signature: Digest32,
    bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    fn cut(rest: &mut &'a [u8]) -> Result<Self, SignatureError> {
        let end = rest.windows(2).position(|pair| pair == b"\r\n");
        let end = end.ok_or(malformed("a chunk's first line is missing"))?;
        let line = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        let (size, signature) = line
            .split_once(";chunk-signature=")
            .ok_or(malformed("a chunk's first line has no chunk-signature"))?;
        let signature = Digest32::parse(signature).ok_or(malformed("a signature has 64 digits"))?;
        let plain = size.len() <= SIZE_DIGITS_MAX && size.bytes().all(|b| b.is_ascii_hexdigit());
        let size = plain.then(|| usize::from_str_radix(size, 16).ok()).flatten();
        let size = size.ok_or(malformed("a chunk's size is no hexadecimal number"))?;
        let after = &rest[end + 2..];
        let tail = after.get(size..).and_then(|tail| tail.strip_prefix(b"\r\n"));
        *rest = tail.ok_or(malformed("a chunk is shorter or longer than its size"))?;
        Ok(Self { signature, bytes: &after[..size] })
    }
}
