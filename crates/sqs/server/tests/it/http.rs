//! What HTTP/1.1 allows.

use quelea_sqs_protocol::Action;

use crate::client::{Server, long_poll, post};

#[test]
fn a_connection_serves_one_request_after_the_other_in_both_protocols() {
    let server = Server::new();
    let mut client = server.connect();
    let made = client.ask(post("CreateQueue", r#"{"QueueName":"q"}"#));
    assert_eq!(made.status, 200);
    assert_eq!(made.body, r#"{"QueueUrl":"http://queues.test:9324/000000000000/q"}"#);
    assert!(made.head.contains("content-type: application/x-amz-json-1.0\r\n"), "{}", made.head);
    assert!(made.head.contains("\r\nx-amzn-requestid: "), "{}", made.head);
    let form = "Action=SendMessage&MessageBody=hello";
    let sent = client.ask(format!(
        "POST /000000000000/q HTTP/1.1\r\nHost: h\r\nContent-Type: \
         application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    ));
    assert_eq!(sent.status, 200);
    assert!(sent.body.contains("<MD5OfMessageBody>5d41402abc4b2a76b9719d911017c592<"));
    assert!(sent.head.contains("content-type: text/xml\r\n"), "{}", sent.head);
    let received = client.ask(
        "GET /000000000000/q?Action=ReceiveMessage&AttributeName=All HTTP/1.1\r\nHost: h\r\n\r\n",
    );
    assert!(received.body.contains("<Body>hello</Body>"), "{}", received.body);
}

#[test]
fn errors_have_the_words_of_the_protocol() {
    let server = Server::new();
    let mut client = server.connect();
    let json = client.ask(post("PurgeQueue", r#"{"QueueUrl":"none"}"#));
    assert_eq!(json.status, 400);
    assert!(
        json.head.contains("x-amzn-query-error: aws.simplequeueservice.nonexistentqueue;sender")
    );
    assert!(json.body.contains(r#""message":"The specified queue does not exist.""#));
    let xml = client.ask("GET /1/none?Action=PurgeQueue HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(xml.status, 400);
    let text = "<Message>The specified queue does not exist for this wsdl version.</Message>";
    assert!(xml.body.contains(text), "{}", xml.body);
    let options = client.ask("OPTIONS / HTTP/1.1\r\nHost: h\r\nOrigin: http://x\r\n\r\n");
    assert_eq!(options.status, 403);
    assert!(!options.head.contains("access-control"), "{}", options.head);
}

#[test]
fn health_needs_no_credentials() {
    let server = Server::new();
    let answer = server.connect().ask("GET /health HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let server = Server::new();
    let mut client = server.connect();
    let create = |n: u32| post("CreateQueue", &format!(r#"{{"QueueName":"q-{n}"}}"#));
    let requests: String = (0..50).map(create).collect();
    assert!(client.write(requests));
    for n in 0..50 {
        assert!(client.read().body.contains(&format!("/q-{n}\"")));
    }
}

#[test]
fn a_client_of_http_1_0_is_answered_and_closed() {
    let server = Server::new();
    let mut client = server.connect();
    let answer = client.ask(post("ListQueues", "{}").replace("HTTP/1.1", "HTTP/1.0"));
    assert_eq!(answer.status, 200);
    assert_eq!(client.read_to_close(), b"");
    let mut bare = server.connect();
    let body = r#"{"QueueName":"q"}"#;
    let made = bare.ask(format!(
        "POST / HTTP/1.0\r\nX-Amz-Target: AmazonSQS.CreateQueue\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    // Without a host the server's own address has to do.
    assert!(made.body.contains(&format!("http://{}/", server.address)), "{}", made.body);
}

#[test]
fn a_body_in_chunks_is_put_together() {
    let server = Server::new();
    let mut client = server.connect();
    assert!(client.write(
        "POST / HTTP/1.1\r\nHost: h\r\nX-Amz-Target: AmazonSQS.CreateQueue\r\nTransfer-Encoding: \
         chunked\r\n\r\n"
    ));
    for piece in ["{\"Queue", "Name\":", "\"q\"}"] {
        assert!(client.write(format!("{:x}\r\n{piece}\r\n", piece.len())));
    }
    let made = client.ask("0\r\n\r\n");
    assert_eq!(made.status, 200, "{}", made.body);
    assert!(made.body.contains("/q\""));
}

#[test]
fn a_client_that_expects_it_gets_100_continue() {
    let server = Server::new();
    let mut client = server.connect();
    let request = post("CreateQueue", r#"{"QueueName":"q"}"#);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let go_on = client.ask(format!("{head}\r\nExpect: 100-continue\r\n\r\n"));
    assert_eq!(go_on.status, 100);
    assert_eq!(client.ask(body).status, 200);
}

#[test]
fn a_long_poll_is_answered_when_a_message_comes() {
    let server = Server::new();
    let (mut sender, mut receiver) = (server.connect(), server.connect());
    sender.ask(post("CreateQueue", r#"{"QueueName":"q"}"#));
    assert!(receiver.write(long_poll()));
    while server.queues.waiting() == 0 {
        std::thread::yield_now();
    }
    sender.ask(post("SendMessage", r#"{"QueueUrl":"q","MessageBody":"late"}"#));
    assert!(receiver.read().body.contains(r#""Body":"late""#));
}

#[test]
fn the_response_time_has_no_receive_that_may_wait() {
    let server = Server::new();
    let (mut sender, mut receiver) = (server.connect(), server.connect());
    let counted = || server.counters.response_times().count();
    sender.ask(post("CreateQueue", r#"{"QueueName":"q"}"#));
    sender.ask(post("ReceiveMessage", r#"{"QueueUrl":"q","WaitTimeSeconds":0}"#));
    assert_eq!(counted(), 2);
    assert!(receiver.write(long_poll()));
    while server.queues.waiting() == 0 {
        std::thread::yield_now();
    }
    sender.ask(post("SendMessage", r#"{"QueueUrl":"q","MessageBody":"late"}"#));
    receiver.read();
    // The queue's own wait may hold.
    sender.ask(post("ReceiveMessage", r#"{"QueueUrl":"q"}"#));
    assert_eq!(counted(), 3);
    assert_eq!(server.counters.request_times(Action::ReceiveMessage).count(), 3);
    sender.ask(post("DeleteMessage", r#"{"QueueUrl":"q"}"#));
    assert_eq!(counted(), 4, "what is refused is answered, too");
}

#[test]
fn several_threads_share_the_listener() {
    let mut settings = crate::client::settings();
    settings.threads = 2;
    let server = Server::with(&settings);
    for n in 0..20 {
        let request = post("CreateQueue", &format!(r#"{{"QueueName":"q-{n}"}}"#));
        assert_eq!(server.connect().ask(request).status, 200);
    }
}
