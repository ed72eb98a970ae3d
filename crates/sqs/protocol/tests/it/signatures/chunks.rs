//! Bodies in chunks.

use bytes::Bytes;
use quelea_sqs_protocol::{Claim, HttpRequest, SignatureError, Verifier};

/// The example of AWS's S3 reference, "Transferring payload in multiple chunks": 66,560 letters.
const SIGNATURES: [&str; 3] = [
    "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
    "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
    "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
];

/// 2013-05-24 00:00:00.
const NOW_MS: u64 = 1_369_353_600_000;

fn body() -> Vec<u8> {
    let mut body = Vec::new();
    for (size, signature) in [65_536, 1024, 0].into_iter().zip(SIGNATURES) {
        body.extend_from_slice(format!("{size:x};chunk-signature={signature}\r\n").as_bytes());
        body.extend(std::iter::repeat_n(b'a', size));
        body.extend_from_slice(b"\r\n");
    }
    body
}

fn open(body: &[u8]) -> Result<Bytes, SignatureError> {
    let authorization = "AWS4-HMAC-SHA256 \
        Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=\
        content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;\
        x-amz-decoded-content-length;x-amz-storage-class,Signature=\
        4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    let headers: [(&str, &[u8]); 8] = [
        ("host", b"s3.amazonaws.com"),
        ("x-amz-date", b"20130524T000000Z"),
        ("x-amz-storage-class", b"REDUCED_REDUNDANCY"),
        ("authorization", authorization.as_bytes()),
        ("x-amz-content-sha256", b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
        ("content-encoding", b"aws-chunked"),
        ("x-amz-decoded-content-length", b"66560"),
        ("content-length", b"66824"),
    ];
    let path = "/examplebucket/chunkObject.txt";
    let request = HttpRequest { method: "PUT", path, query: "", headers: &headers, body };
    let claim = Claim::read(&request)?;
    let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into();
    let payload = Verifier::new("s3").verify(&request, &claim, &secret, NOW_MS)?;
    payload.open(Bytes::copy_from_slice(body))
}

#[test]
fn a_body_in_chunks_is_verified_chunk_by_chunk() {
    let body = body();
    assert_eq!(body.len(), 66_824);
    assert_eq!(open(&body).unwrap(), vec![b'a'; 66_560]);
}

#[test]
fn a_chunk_that_was_changed_is_refused_with_its_number() {
    let good = body();
    for (at, number) in [(100, 0), (65_540, 0), (66_000, 1)] {
        let mut bad = good.clone();
        assert_eq!(bad[at], b'a');
        bad[at] = b'b';
        assert_eq!(open(&bad), Err(SignatureError::ChunkMismatch { number }), "{at}");
    }
    let mut bad = good.clone();
    let last = bad.len() - 5;
    bad[last] = if bad[last] == b'0' { b'1' } else { b'0' };
    assert_eq!(open(&bad), Err(SignatureError::ChunkMismatch { number: 2 }));
}

#[test]
fn chunks_cannot_be_left_out_cut_off_or_added() {
    let good = body();
    let line = good.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let first = line + 65_536 + 2;
    assert_eq!(open(&good[first..]), Err(SignatureError::ChunkMismatch { number: 0 }));
    let end = good.len() - 86;
    for cut in [0, 1, line, line + 10, first, first + 20, end, good.len() - 1] {
        let shape = matches!(open(&good[..cut]), Err(SignatureError::ChunkShape { .. }));
        assert!(shape, "cut at {cut}");
    }
    let longer = [&good[..], b"0"].concat();
    assert!(matches!(open(&longer), Err(SignatureError::ChunkShape { .. })));
    for size in ["", "+10000", "0x10000", "fffffffffffff", "ffffffffffff"] {
        let bad = [size.as_bytes(), &good[5..]].concat();
        assert!(matches!(open(&bad), Err(SignatureError::ChunkShape { .. })), "{size}");
    }
}
