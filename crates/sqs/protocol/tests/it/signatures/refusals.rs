//! What has to be refused, with AWS's codes and texts.

use quelea_sqs_protocol::{SignatureError, Signer, Verifier};

use super::fixture::OwnedRequest;
use super::{KEY, NOON_MS, SECRET, verify};

fn unsigned() -> OwnedRequest {
    let mut request = OwnedRequest {
        method: "POST".into(),
        path: "/000000000000/q".into(),
        body: b"{}".to_vec(),
        ..OwnedRequest::default()
    };
    request.set("host", "localhost:9324");
    request.set("x-amz-target", "AmazonSQS.ReceiveMessage");
    request
}

fn signed_at(now_ms: u64) -> OwnedRequest {
    sign(unsigned(), now_ms)
}

fn sign(mut request: OwnedRequest, now_ms: u64) -> OwnedRequest {
    let mut signer = Signer::new(KEY, SECRET, "us-east-1");
    let signed = request.with(|request| signer.sign(request, now_ms));
    request.set("Authorization", &signed.authorization);
    request.set("X-Amz-Date", &signed.amz_date);
    request
}

fn presigned(expires_s: u64) -> OwnedRequest {
    let mut request = unsigned();
    let mut signer = Signer::new(KEY, SECRET, "us-east-1");
    request.query = request.with(|request| signer.presign(request, expires_s, NOON_MS));
    request
}

fn outcome(request: &OwnedRequest, now_ms: u64) -> Result<(), SignatureError> {
    request.with(|request| verify(&mut Verifier::default(), request, now_ms)).map(drop)
}

/// Returns code, status and text of the refusal.
fn refusal(request: &OwnedRequest) -> (&'static str, u16, String) {
    let error = outcome(request, NOON_MS).expect_err("it is refused");
    (error.code(), error.status(), error.to_string())
}

#[test]
fn clocks_may_differ_by_a_quarter_of_an_hour() {
    const QUARTER_MS: u64 = 15 * 60 * 1000;
    let request = signed_at(NOON_MS);
    assert_eq!(outcome(&request, NOON_MS + QUARTER_MS), Ok(()));
    assert_eq!(outcome(&request, NOON_MS - QUARTER_MS), Ok(()));
    let late = outcome(&request, NOON_MS + QUARTER_MS + 1000).unwrap_err();
    assert_eq!((late.code(), late.status()), ("SignatureDoesNotMatch", 403));
    assert_eq!(
        late.to_string(),
        "Signature expired: 20150830T123600Z is now earlier than 20150830T123601Z \
         (20150830T125101Z - 15 min.)"
    );
    let early = outcome(&request, NOON_MS - QUARTER_MS - 1000).unwrap_err();
    assert_eq!(
        early.to_string(),
        "Signature not yet current: 20150830T123600Z is still later than 20150830T123559Z \
         (20150830T122059Z + 15 min.)"
    );
}

#[test]
fn a_presigned_request_is_good_for_as_long_as_it_says() {
    let request = presigned(60);
    for (after_s, good) in [(0, true), (60, true), (61, false), (3600, false)] {
        let outcome = outcome(&request, NOON_MS + after_s * 1000);
        assert_eq!(outcome.is_ok(), good, "{after_s}: {outcome:?}");
    }
    let week = presigned(604_800);
    assert_eq!(outcome(&week, NOON_MS + 604_800_000), Ok(()));
    let late = outcome(&week, NOON_MS + 604_801_000).unwrap_err();
    assert_eq!((late.code(), late.status()), ("AccessDenied", 403));
    let early = outcome(&week, NOON_MS - 16 * 60 * 1000).unwrap_err();
    assert!(early.to_string().starts_with("Signature not yet current"), "{early}");
    for bad in ["0", "604801", "-1", "+5", "x", "", "99999999999999999999"] {
        let mut request = presigned(60);
        request.query = request.query.replace("Expires=60", &format!("Expires={bad}"));
        assert_eq!(refusal(&request).0, "IncompleteSignature", "{bad}");
    }
}

#[test]
fn a_request_has_one_complete_signature() {
    assert_eq!(
        refusal(&unsigned()),
        ("MissingAuthenticationToken", 403, "Request is missing Authentication Token".into())
    );
    let good = signed_at(NOON_MS);
    let header = good.header("authorization").unwrap();
    let with = |header: &str| {
        let mut request = good.clone();
        request.set("Authorization", header);
        refusal(&request)
    };
    let basic = with("Basic Zm9vOmJhcg==");
    assert_eq!(basic.2, "Unsupported AWS 'algorithm': 'Basic'.");
    assert_eq!((basic.0, basic.1), ("IncompleteSignature", 400));
    let bare = with("AWS4-HMAC-SHA256 Signature=12");
    assert_eq!(
        bare.2,
        "Authorization header requires 'Credential' parameter. Authorization header requires \
         'SignedHeaders' parameter."
    );
    assert!(with("AWS4-HMAC-SHA256 Credential").2.contains("not a valid key=value pair"));
    assert_eq!(with(&format!("{header}, Signature=12")).0, "IncompleteSignature");
    assert!(with(&header.replace("/sqs", "")).2.contains("exactly 5 slash-delimited elements"));
    assert_eq!(with(&header.replace(KEY, "AKIDOTHER")).0, "InvalidClientTokenId");
    assert!(with(&header.replace("/sqs/", "/sns/")).2.contains("correct service: 'sqs'"));
    assert!(with(&header.replace("20150830", "20150829")).2.contains("does not match YYYYMMDD"));
    assert_eq!(with(&header.replace("us-east-1", "us-east-2")).0, "SignatureDoesNotMatch");

    let mut twice = good.clone();
    twice.headers.push(("authorization".into(), header.clone().into()));
    assert!(refusal(&twice).2.starts_with("Only one auth mechanism allowed"));
    let mut both = presigned(60);
    both.set("Authorization", &header);
    assert!(refusal(&both).2.starts_with("Only one auth mechanism allowed"));
}

#[test]
fn a_presigned_request_has_all_its_parameters_once() {
    let good = presigned(60);
    for name in ["Algorithm", "Credential", "SignedHeaders", "Date", "Expires", "Signature"] {
        let mut request = good.clone();
        request.query = request.query.replace(&format!("X-Amz-{name}="), "Other=");
        let text = format!(
            "AWS query-string parameters must include 'X-Amz-{name}'. Re-examine the query-string \
             parameters."
        );
        assert_eq!(refusal(&request), ("IncompleteSignature", 400, text));
    }
    let mut request = good.clone();
    request.query.push_str("&X-Amz-Date=20150830T123600Z");
    assert_eq!(refusal(&request).0, "IncompleteSignature");
    let mut request = good.clone();
    request.query.push_str("&Action=DeleteQueue");
    assert_eq!(refusal(&request).0, "SignatureDoesNotMatch");
    let mut request = good;
    request.query.push_str("&a=%4");
    let (code, status, _) = refusal(&request);
    assert_eq!(
        (code, status),
        ("MalformedQueryString", quelea_sqs_protocol::ErrorKind::MalformedQueryString.status())
    );
}

#[test]
fn the_time_is_a_time() {
    let mut request = signed_at(NOON_MS);
    request.set("x-amz-date", "2015-08-30T12:36:00Z");
    let (code, status, text) = refusal(&request);
    assert_eq!((code, status), ("IncompleteSignature", 400));
    assert!(text.contains("Got '2015-08-30T12:36:00Z'"), "{text}");
    request.remove("x-amz-date");
    assert!(refusal(&request).2.contains("'X-Amz-Date' or a 'Date'"));
}

/// The header `Date` will do; the string to sign has the basic format all the same.
#[test]
fn a_request_may_be_dated_by_the_header_date() {
    // Signed with Python's `hmac` over the canonical request of GET /, with date and host.
    let authorization = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/sqs/aws4_request, SignedHeaders=date;host, Signature=2e45a39c1bc439c6ef034012e055e23966624f7c172f058dffe2a18fecc9c5f4";
    let mut request =
        OwnedRequest { method: "GET".into(), path: "/".into(), ..OwnedRequest::default() };
    request.set("host", "localhost:9324");
    request.set("date", "Sun, 30 Aug 2015 12:36:00 GMT");
    request.set("authorization", authorization);
    assert_eq!(outcome(&request, NOON_MS), Ok(()));
    request.set("date", "Sun, 30 Aug 2015 12:36:01 GMT");
    assert_eq!(refusal(&request).0, "SignatureDoesNotMatch");
}

#[test]
fn host_and_the_headers_of_aws_have_to_be_signed() {
    let good = signed_at(NOON_MS);
    let header = good.header("authorization").unwrap();
    let signed_headers = |list: &str| {
        let mut request = good.clone();
        request.set("Authorization", &header.replace("host;x-amz-date;x-amz-target", list));
        refusal(&request)
    };
    assert!(signed_headers("x-amz-date;x-amz-target").2.starts_with("'Host' or ':authority'"));
    let target = signed_headers("host;x-amz-date");
    assert_eq!(target.0, "SignatureDoesNotMatch");
    assert!(target.2.starts_with("'x-amz-target' must be a 'SignedHeader'"), "{}", target.2);
    for bad in [
        "host;x-amz-target;x-amz-date",
        "host;host;x-amz-date;x-amz-target",
        "Host;x-amz-date;x-amz-target",
    ] {
        assert_eq!(signed_headers(bad).0, "IncompleteSignature", "{bad}");
    }
    let absent = signed_headers("cookie;host;x-amz-date;x-amz-target");
    assert_eq!(absent.2, "The signed header 'cookie' is not in the request.");
    let mut request = good.clone();
    request.set("x-amz-user-agent", "may be rewritten");
    request.set("x-amz-security-token", "added after signing");
    assert_eq!(outcome(&request, NOON_MS), Ok(()));
}

#[test]
fn a_session_token_that_was_signed_may_not_be_changed() {
    let mut request = unsigned();
    let mut signer = Signer::new(KEY, SECRET, "us-east-1").with_session_token("token");
    let signed = request.with(|request| signer.sign(request, NOON_MS));
    request.set("Authorization", &signed.authorization);
    request.set("X-Amz-Date", &signed.amz_date);
    request.set("X-Amz-Security-Token", signed.security_token.as_deref().unwrap());
    assert_eq!(outcome(&request, NOON_MS), Ok(()));
    request.set("X-Amz-Security-Token", "other");
    assert_eq!(refusal(&request).0, "SignatureDoesNotMatch");
}

#[test]
fn the_body_is_what_its_hash_says() {
    let with_hash = |hash: &str| {
        let mut request = unsigned();
        request.set("x-amz-content-sha256", hash);
        sign(request, NOON_MS)
    };
    // SHA-256 of `{}`.
    let hash = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(outcome(&with_hash(hash), NOON_MS), Ok(()));
    let text = "The provided 'x-amz-content-sha256' header does not match what was computed.";
    assert_eq!(
        refusal(&with_hash(&hash.replace('4', "5"))),
        ("SignatureDoesNotMatch", 403, text.into())
    );
    for other in ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", ""] {
        let (code, _, text) = refusal(&with_hash(other));
        assert_eq!(code, "SignatureDoesNotMatch");
        assert!(text.contains(&format!("'{other}' is not supported")), "{text}");
    }
    let mut request = signed_at(NOON_MS);
    request.body = b"[]".to_vec();
    assert_eq!(refusal(&request).0, "SignatureDoesNotMatch");
}

/// The cache of derived keys does not outlive the secret.
#[test]
fn a_key_with_another_secret_is_not_verified_by_what_was_kept() {
    let request = signed_at(NOON_MS);
    let mut verifier = Verifier::default();
    let mut with = |secret: &str| {
        request.with(|request| {
            let claim = quelea_sqs_protocol::Claim::read(request).unwrap();
            verifier.verify(request, &claim, &secret.into(), NOON_MS).is_ok()
        })
    };
    assert!(with(SECRET));
    assert!(!with("another secret"));
    assert!(with(SECRET));
}

#[test]
fn neither_errors_nor_signers_show_the_secret() {
    let mut request = signed_at(NOON_MS);
    request.body.clear();
    let error = outcome(&request, NOON_MS).unwrap_err();
    let signer = Signer::new(KEY, SECRET, "us-east-1");
    let mut verifier = Verifier::default();
    let verified = signed_at(NOON_MS).with(|request| verify(&mut verifier, request, NOON_MS));
    assert!(verified.is_ok());
    let text = format!("{error} {error:?} {signer:?} {verifier:?} {verified:?}");
    assert!(text.contains("20150830/us-east-1/sqs/aws4_request"), "it shows what was signed");
    assert!(!text.contains(SECRET));
}
