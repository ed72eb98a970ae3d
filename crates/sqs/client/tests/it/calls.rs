//! Single calls: retries, lost requests and answers, errors.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quelea_sqs_client::{Client, Credentials, Error, Loss, OutgoingMessage, Receive, Retry};
use quelea_sqs_protocol::{Claim, HttpRequest, Verifier};

use crate::small_service::{CLOSE, SmallService};

fn client(service: &SmallService) -> Client {
    Client::new(service.endpoint().parse().unwrap(), None).with_retry(quick())
}

fn quick() -> Retry {
    Retry { attempts: 5, first: Duration::from_millis(1), longest: Duration::from_millis(1) }
}

fn queue(client: &mut Client) -> String {
    client.create_queue("q", &BTreeMap::new()).unwrap()
}

#[test]
fn a_message_is_sent_received_and_deleted() {
    let service = SmallService::start();
    let mut client = client(&service);
    let url = queue(&mut client);
    let text = "\"quoted\", \\ and ünïcode\n";
    client.send(&url, &OutgoingMessage::new(text)).unwrap();
    let received = client.receive(&url, &Receive::default()).unwrap();
    assert_eq!((received.len(), received[0].body.as_str()), (1, text));
    assert_eq!(received[0].receive_count(), 1);
    assert!(client.receive(&url, &Receive::default()).unwrap().is_empty(), "it is invisible");
    client.delete(&url, &received[0].receipt_handle).unwrap();
    assert_eq!(service.messages("q"), 0);
}

#[test]
fn batches_go_in_one_call_and_name_what_failed() {
    let service = SmallService::start();
    let mut client = client(&service);
    let url = queue(&mut client);
    let messages: Vec<_> = (0..10).map(|n| OutgoingMessage::new(n.to_string())).collect();
    assert_eq!(client.send_batch(&url, &messages).unwrap(), []);
    let received = client.receive(&url, &Receive { max: 10, ..Receive::default() }).unwrap();
    assert_eq!(received.len(), 10);
    let mut handles: Vec<&str> = received.iter().map(|m| m.receipt_handle.as_str()).collect();
    handles[3] = "nonsense";
    let failed = client.delete_batch(&url, &handles).unwrap();
    assert_eq!((failed.len(), failed[0].id.as_str()), (1, "3"));
    assert_eq!(failed[0].code, "ReceiptHandleIsInvalid");
    assert_eq!(service.messages("q"), 1);
    for entries in [0, 11] {
        let messages = vec![OutgoingMessage::new("x"); entries];
        let error = client.send_batch(&url, &messages).unwrap_err();
        assert!(matches!(error, Error::BatchSize { entries: found } if found == entries));
    }
}

#[test]
fn what_may_pass_is_tried_again_and_a_refusal_is_not() {
    let service = SmallService::start();
    let mut client = client(&service);
    let url = queue(&mut client);
    service.fail("SendMessage", &[500, 503, 500, 429]);
    client.send(&url, &OutgoingMessage::new("x")).unwrap();
    assert_eq!((service.calls("SendMessage"), service.messages("q")), (5, 1));
    service.fail("SendMessage", &[500; 5]);
    let error = client.send(&url, &OutgoingMessage::new("x")).unwrap_err();
    assert!(error.to_string().contains("InternalFailure (HTTP 500)"), "{error}");
    service.fail("SendMessage", &[403]);
    let error = client.send(&url, &OutgoingMessage::new("x")).unwrap_err();
    assert!(!error.is_transient(), "{error}");
    assert_eq!(service.calls("SendMessage"), 11);
}

#[test]
fn a_lost_request_costs_nothing_and_a_lost_answer_a_duplicate() {
    let service = SmallService::start();
    let mut client = client(&service);
    let url = queue(&mut client);
    for (loss, messages) in [(Loss::Request, 1), (Loss::Response, 3)] {
        let mut losses = vec![loss];
        client.inject(move || losses.pop());
        client.send(&url, &OutgoingMessage::new("x")).unwrap();
        assert_eq!(service.messages("q"), messages, "{loss}");
    }
    client.inject(|| Some(Loss::Request));
    let error = client.send(&url, &OutgoingMessage::new("x")).unwrap_err();
    assert!(matches!(error, Error::Lost(Loss::Request)), "{error}");
}

#[test]
fn a_kept_connection_that_the_service_closed_is_replaced_without_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let mut client = Client::new(endpoint.parse().unwrap(), None).with_retry(Retry::never());
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            // One answer each, and then the end without a word.
            let mut stream = listener.accept().unwrap().0;
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        }
    });
    assert_eq!(client.call("ListQueues", b"{}").unwrap(), b"{}");
    assert_eq!(client.call("ListQueues", b"{}").unwrap(), b"{}");
    server.join().unwrap();
    // Its end is known, so that not even a message need be sent twice.
    let error = client.call("SendMessage", b"{}").unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    let error = client.call("ListQueues", b"{}").unwrap_err();
    assert!(matches!(error, Error::Connect { .. }) && error.is_transient(), "{error}");
}

#[test]
fn what_was_perhaps_done_is_not_done_again_unasked() {
    let service = SmallService::start();
    let mut client = client(&service).with_retry(Retry::never());
    let url = queue(&mut client);
    service.fail("SendMessage", &[CLOSE]);
    let error = client.send(&url, &OutgoingMessage::new("x")).unwrap_err();
    assert!(matches!(error, Error::Response(_)) && error.is_transient(), "{error}");
    assert_eq!((service.calls("SendMessage"), service.messages("q")), (1, 0));
    queue(&mut client);
    service.fail("GetQueueAttributes", &[CLOSE]);
    client.queue_attributes(&url).unwrap();
    assert_eq!(service.calls("GetQueueAttributes"), 2);
}

#[test]
fn a_long_poll_can_be_cancelled() {
    let service = SmallService::start();
    let mut client = client(&service);
    let url = queue(&mut client);
    let canceller = client.canceller();
    let poll = std::thread::spawn(move || {
        client.receive(&url, &Receive { wait_seconds: 20, ..Receive::default() })
    });
    while service.calls("ReceiveMessage") == 0 {
        std::thread::yield_now();
    }
    canceller.cancel();
    assert!(matches!(poll.join().unwrap(), Err(Error::Cancelled)));
}

#[test]
fn what_is_not_the_expected_answer_is_an_error_with_the_operation() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\noops").unwrap();
    });
    let mut client = Client::new(endpoint.parse().unwrap(), None);
    let error = client.queue_url("q").unwrap_err().to_string();
    assert!(error.starts_with("the answer to GetQueueUrl is not understood"), "{error}");
    server.join().unwrap();
}

#[test]
fn a_signed_request_is_what_a_service_verifies() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut request = Vec::new();
        while !request.ends_with(b"{\"QueueName\":\"q\"}") {
            let mut part = [0; 4096];
            let length = stream.read(&mut part).unwrap();
            request.extend_from_slice(&part[..length]);
        }
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"QueueUrl\":\"u\"}";
        stream.write_all(answer).unwrap();
        String::from_utf8(request).unwrap()
    });
    let key = Credentials {
        session_token: Some("token".to_owned()),
        ..Credentials::new("AKIDEXAMPLE", "secret")
    };
    let mut client = Client::new(endpoint.parse().unwrap(), Some(key));
    assert_eq!(client.queue_url("q").unwrap(), "u");
    let request = server.join().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let headers: Vec<(&str, &[u8])> = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name, value.as_bytes()))
        .collect();
    assert!(headers.contains(&("X-Amz-Security-Token", b"token")));
    let request = HttpRequest {
        method: "POST",
        path: "/",
        query: "",
        headers: &headers,
        body: body.as_bytes(),
    };
    let claim = Claim::read(&request).unwrap();
    assert_eq!((claim.access_key_id(), claim.region()), ("AKIDEXAMPLE", "us-east-1"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_ms = u64::try_from(now.as_millis()).unwrap();
    let mut verifier = Verifier::default();
    assert!(verifier.verify(&request, &claim, &"secret".into(), now_ms).is_ok());
    assert!(verifier.verify(&request, &claim, &"another".into(), now_ms).is_err());
}
