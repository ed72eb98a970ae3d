//! Vectors that others made.

use quelea_sqs_protocol::{SignatureError, Signer, Verifier};

use super::fixture::{Case, OwnedRequest, cases};
use super::{KEY, NOON_MS, SECRET, verify};

/// 2026-11-21 23:59:59, when botocore's vectors were signed.
const BOTOCORE_MS: u64 = 1_795_305_599_000;

fn aws() -> Vec<Case> {
    let cases = cases(include_str!("../fixtures/aws4_testsuite.txt"));
    assert_eq!(cases.len(), 34);
    cases
}

fn botocore() -> Vec<Case> {
    let cases = cases(include_str!("../fixtures/botocore.txt"));
    assert_eq!(cases.len(), 9);
    cases
}

#[test]
fn what_aws_signed_is_verified() {
    let mut verifier = Verifier::new("service");
    for case in aws() {
        let verified = case.request.with(|request| verify(&mut verifier, request, NOON_MS));
        assert!(verified.is_ok(), "{}: {verified:?}", case.name);
        check_computed(&mut verifier, case, NOON_MS);
    }
}

#[test]
fn what_botocore_signed_is_verified() {
    let mut verifier = Verifier::default();
    for case in botocore() {
        let verified = case.request.with(|request| verify(&mut verifier, request, BOTOCORE_MS));
        assert!(verified.is_ok(), "{}: {verified:?}", case.name);
        check_computed(&mut verifier, case, BOTOCORE_MS);
    }
}

/// A wrong signature shows what it was compared with.
fn check_computed(verifier: &mut Verifier, case: Case, now_ms: u64) {
    let mut request = case.request;
    let spoil = |text: &str| {
        let (start, digits) = text.rsplit_once("Signature=").expect("a signature");
        let (first, rest) = digits.split_at(1);
        format!("{start}Signature={}{rest}", if first == "0" { "1" } else { "0" })
    };
    match request.header("authorization") {
        Some(header) => request.set("Authorization", &spoil(&header)),
        None => request.query = spoil(&request.query),
    }
    match request.with(|request| verify(verifier, request, now_ms)) {
        Err(SignatureError::Mismatch(computed)) => {
            assert_eq!(computed.canonical_request, case.canonical, "{}", case.name);
            assert_eq!(computed.string_to_sign, case.string_to_sign, "{}", case.name);
        }
        other => panic!("{}: {other:?}", case.name),
    }
}

#[test]
fn requests_are_signed_as_aws_signs_them() {
    for case in aws() {
        let mut signer = Signer::new(KEY, SECRET, "us-east-1").for_service("service");
        sign_again(&mut signer, &case, NOON_MS);
    }
}

#[test]
fn requests_are_signed_as_botocore_signs_them() {
    for case in botocore() {
        let mut signer = Signer::new(KEY, SECRET, "eu-west-1");
        if case.request.header("authorization").is_some() {
            sign_again(&mut signer, &case, BOTOCORE_MS);
        } else {
            presign_again(signer, &case);
        }
    }
}

fn sign_again(signer: &mut Signer, case: &Case, now_ms: u64) {
    let expected = case.request.header("authorization");
    let mut request = case.request.clone();
    request.remove("authorization");
    request.remove("x-amz-date");
    let token = request.header("x-amz-security-token");
    let token_is_signed = case.canonical.contains("\nx-amz-security-token:");
    let mut with_token;
    let signer = match token.filter(|_| token_is_signed) {
        Some(token) => {
            request.remove("x-amz-security-token");
            let service = if case.canonical.contains("example.") { "service" } else { "sqs" };
            let region = if service == "sqs" { "eu-west-1" } else { "us-east-1" };
            with_token =
                Signer::new(KEY, SECRET, region).for_service(service).with_session_token(&token);
            &mut with_token
        }
        None => signer,
    };
    // Twice: the second time with the key that was kept.
    for _ in 0..2 {
        let signed = request.with(|request| signer.sign(request, now_ms));
        assert_eq!(Some(&signed.authorization), expected.as_ref(), "{}", case.name);
    }
}

/// botocore gives the parameters in another order, which is of no importance.
fn presign_again(signer: Signer, case: &Case) {
    let (plain, _) = case.request.query.split_once("X-Amz-Algorithm").expect("a presigned query");
    let parameter = |name: &str| {
        let mut pairs = case.request.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(of, _)| *of == name).map(|(_, value)| value.to_owned())
    };
    let expires_s: u64 = parameter("X-Amz-Expires").expect("it expires").parse().expect("a number");
    let query = plain.trim_end_matches('&').to_owned();
    let request = OwnedRequest { query, ..case.request.clone() };
    let mut signer = match parameter("X-Amz-Security-Token") {
        Some(_) => signer.with_session_token("a/session+token=="),
        None => signer,
    };
    let query = request.with(|request| signer.presign(request, expires_s, BOTOCORE_MS));
    let sorted = |query: &str| {
        let mut pairs: Vec<String> = query.split('&').map(str::to_owned).collect();
        pairs.sort();
        pairs
    };
    assert_eq!(sorted(&query), sorted(&case.request.query), "{}", case.name);
}
