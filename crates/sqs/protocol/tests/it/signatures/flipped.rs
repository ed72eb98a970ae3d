//! Any request that is signed is verified, and any byte of it that is changed is noticed.

use proptest::prelude::*;
use quelea_sqs_protocol::{Signer, Verifier};

use super::fixture::OwnedRequest;
use super::{KEY, NOON_MS, SECRET, verify};

/// Generates requests in which no two spellings mean the same: no dots in the path, no blanks in
/// headers.
fn requests() -> impl Strategy<Value = OwnedRequest> {
    let path = "(/[a-z0-9%_-]{1,8}){1,3}";
    let query =
        "([A-Za-z0-9_]{1,5}=[A-Za-z0-9_~-]{0,5}(&[A-Za-z0-9_]{1,5}=[A-Za-z0-9_]{0,5}){0,3})?";
    let headers = prop::collection::btree_map("x-[a-z]{1,6}", "[!-+:-~\u{80}-\u{ff}]{1,12}", 0..4);
    let body = prop::collection::vec(any::<u8>(), 0..64);
    ("[A-Z]{3,6}", path, query, headers, body).prop_map(|(method, path, query, headers, body)| {
        let mut headers: Vec<(String, Vec<u8>)> =
            headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
        headers.push(("host".into(), b"localhost:9324".to_vec()));
        OwnedRequest { method, path, query, headers, body }
    })
}

fn is_verified(request: &OwnedRequest) -> bool {
    request.with(|request| verify(&mut Verifier::default(), request, NOON_MS)).is_ok()
}

/// Returns another printable character, so that the text stays one.
fn flip(byte: u8, by: u8) -> u8 {
    let flipped = (byte.wrapping_sub(b'!').wrapping_add(1 + by % 93)) % 94 + b'!';
    if flipped == byte { b'!' } else { flipped }
}

fn flip_text(text: &mut String, at: usize, by: u8) -> bool {
    let mut bytes = std::mem::take(text).into_bytes();
    let Some(byte) = bytes.get_mut(at) else { return false };
    *byte = flip(*byte, by);
    *text = String::from_utf8(bytes).expect("ASCII");
    true
}

/// Flips the byte at `at`, counted over all parts of the request; `false` if there is none.
fn change(request: &mut OwnedRequest, at: prop::sample::Index, by: u8) -> bool {
    let headers: usize = request.headers.iter().map(|(_, value)| value.len()).sum();
    let lengths = [
        request.method.len(),
        request.path.len(),
        request.query.len(),
        request.body.len(),
        headers,
    ];
    let mut at = at.index(lengths.iter().sum());
    let part = lengths.iter().position(|length| {
        let here = at < *length;
        at = if here { at } else { at - length };
        here
    });
    match part.expect("the index is within the sum") {
        0 => flip_text(&mut request.method, at, by),
        1 => flip_text(&mut request.path, at, by),
        2 => flip_text(&mut request.query, at, by),
        3 => {
            request.body[at] ^= by.max(1);
            true
        }
        _ => {
            let mut bytes = request.headers.iter_mut().flat_map(|(_, value)| value);
            let byte = bytes.nth(at).expect("a byte of a header");
            *byte = if byte.is_ascii() { flip(*byte, by) } else { *byte ^ 1 };
            true
        }
    }
}

proptest! {
    #[test]
    fn no_byte_of_a_signed_request_can_be_changed(
        request in requests(),
        at in any::<prop::sample::Index>(),
        by in any::<u8>(),
    ) {
        let mut request = request;
        let mut signer = Signer::new(KEY, SECRET, "us-east-1");
        let signed = request.with(|request| signer.sign(request, NOON_MS));
        request.set("authorization", &signed.authorization);
        request.set("x-amz-date", &signed.amz_date);
        prop_assert!(is_verified(&request));
        prop_assert!(change(&mut request, at, by));
        prop_assert!(!is_verified(&request), "{request:?}");
    }

    #[test]
    fn no_byte_of_a_presigned_request_can_be_changed(
        request in requests(),
        at in any::<prop::sample::Index>(),
        by in any::<u8>(),
        expires_s in 1_u64..=604_800,
    ) {
        let mut request = request;
        let mut signer = Signer::new(KEY, SECRET, "eu-west-1");
        request.query = request.with(|request| signer.presign(request, expires_s, NOON_MS));
        prop_assert!(is_verified(&request));
        // `%2f` means what `%2F` means, and `+` what `%20` does.
        let mut changed = request.clone();
        prop_assert!(change(&mut changed, at, by));
        if changed.query.to_lowercase() != request.query.to_lowercase() || changed.query == request.query {
            prop_assert!(!is_verified(&changed), "{changed:?}");
        }
    }

    /// Whatever comes in is refused, and nothing panics.
    #[test]
    fn anything_may_stand_in_the_header_and_in_the_query(
        header in ".{0,80}",
        start in prop::bool::ANY,
        query in "(X-Amz-(Algorithm|Credential|Date|Expires|SignedHeaders|Signature)=[ -~]{0,20}&){0,8}",
        date in "[ -~]{0,16}",
        hash in "[ -~]{0,64}",
    ) {
        let mut request = OwnedRequest { method: "GET".into(), path: "/".into(), query, ..OwnedRequest::default() };
        let start = if start { "AWS4-HMAC-SHA256 Credential=" } else { "" };
        request.set("authorization", &format!("{start}{header}"));
        request.set("x-amz-date", &date);
        request.set("x-amz-content-sha256", &hash);
        request.set("host", "localhost");
        prop_assert!(!is_verified(&request));
        request.remove("authorization");
        prop_assert!(!is_verified(&request));
    }
}
