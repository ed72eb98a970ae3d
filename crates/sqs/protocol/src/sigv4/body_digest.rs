//! The digest of a request's body, computed piece by piece: a body of some megabytes takes milliseconds.

use sha2::{Digest as _, Sha256};

use super::HttpRequest;
use super::digest::Digest32;

/// Stands for the digest of a body that is signed chunk by chunk.
pub(super) const STREAMING: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";

/// Bytes of a piece: some tenths of a millisecond at most.
const PIECE_BYTES: usize = 64 * 1024;

/// What the signature of a request says of its whole body.
#[derive(Clone, Copy, Debug)]
pub struct BodyDigest(pub(super) Digest32);

/// A digest that is being computed.
#[derive(Clone, Debug)]
pub struct BodyHasher<'a> {
    hasher: Sha256,
    left: &'a [u8],
}

impl<'a> BodyHasher<'a> {
    /// Returns a hasher that has done nothing yet, and that has nothing to do of a body that is
    /// signed in chunks.
    #[must_use]
    pub fn new(request: &HttpRequest<'a>) -> Self {
        let left = if is_streaming(request) { &[] } else { request.body };
        Self { hasher: Sha256::new(), left }
    }

    /// Hashes a piece. Returns the digest after the last one.
    pub fn advance(&mut self) -> Option<BodyDigest> {
        let (piece, left) = self.left.split_at(self.left.len().min(PIECE_BYTES));
        self.hasher.update(piece);
        self.left = left;
        let is_done = left.is_empty();
        is_done.then(|| BodyDigest(Digest32(self.hasher.finalize_reset().into())))
    }
}

impl BodyDigest {
    /// Computes the digest at once.
    pub(super) fn of(request: &HttpRequest<'_>) -> Self {
        let mut hasher = BodyHasher::new(request);
        loop {
            if let Some(digest) = hasher.advance() {
                return digest;
            }
        }
    }
}

/// Returns whether the body is signed chunk by chunk.
fn is_streaming(request: &HttpRequest<'_>) -> bool {
    request
        .values("x-amz-content-sha256")
        .next()
        .is_some_and(|value| value.trim_ascii() == STREAMING.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_give_the_digest_of_the_whole() {
        for (bytes, pieces) in
            [(0, 1), (1, 1), (PIECE_BYTES, 1), (PIECE_BYTES + 1, 2), (1 << 22, 64)]
        {
            let body: Vec<u8> = (0..bytes).map(|n| n as u8).collect();
            let request =
                HttpRequest { method: "POST", path: "/", query: "", headers: &[], body: &body };
            let mut hasher = BodyHasher::new(&request);
            let mut taken = 1;
            let digest = loop {
                match hasher.advance() {
                    Some(digest) => break digest,
                    None => taken += 1,
                }
            };
            assert_eq!((digest.0.0, taken), (Digest32::of(&body).0, pieces), "{bytes} bytes");
        }
    }
}
