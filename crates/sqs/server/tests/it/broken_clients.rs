//! Clients that are slow, gone, too many, or send too much.

use std::time::{Duration, Instant};

use quelea_sqs_server::Outcome;

use crate::client::{PATIENCE, Server, long_poll, post, settings};

const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Returns a server that gives a request a moment to arrive.
fn hasty() -> Server {
    let mut settings = settings();
    settings.request_max = Duration::from_millis(100);
    Server::with(&settings)
}

#[test]
fn a_client_that_says_nothing_or_half_a_head_is_closed() {
    let server = hasty();
    for start in ["", "POST / HT", "POST / HTTP/1.1\r\nHost: h\r\nX-Amz-Ta"] {
        let mut client = server.connect();
        client.write(start);
        assert_eq!(client.read_to_close(), b"", "{start}");
    }
    assert_eq!(server.counters.slow_clients_closed(), 3);
}

#[test]
fn a_client_that_sends_half_a_body_is_closed() {
    let server = hasty();
    let mut client = server.connect();
    let request = post("CreateQueue", r#"{"QueueName":"q"}"#);
    client.write(&request[..request.len() - 1]);
    client.read_to_close();
    let mut other = server.connect();
    other.write("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab");
    other.read_to_close();
}

#[test]
fn dripping_does_not_help_a_slow_client() {
    let server = hasty();
    let mut client = server.connect();
    client.write("POST / HTTP/1.1\r\nHost: h\r\nX-Long: ");
    // Each drop comes well within the time for a whole request.
    while !client.closes_within(Duration::from_millis(20)) {
        client.write("a");
    }
}

#[test]
fn a_connection_that_is_not_used_is_closed() {
    let mut settings = settings();
    settings.idle_max = Duration::from_millis(500);
    let server = Server::with(&settings);
    let mut client = server.connect();
    assert_eq!(client.ask(post("ListQueues", "{}")).status, 200);
    assert_eq!(client.read_to_close(), b"");
}

#[test]
fn a_receive_may_wait_longer_than_a_connection_may_be_idle() {
    let mut settings = settings();
    settings.idle_max = Duration::from_millis(500);
    settings.request_max = Duration::from_millis(500);
    let server = Server::with(&settings);
    server.connect().ask(post("CreateQueue", r#"{"QueueName":"q"}"#));
    let mut receiver = server.connect();
    assert!(receiver.write(long_poll()));
    while server.queues.waiting() == 0 {
        std::thread::yield_now();
    }
    // Several sweeps go by: those that watch over these two are closed.
    for _ in 0..2 {
        server.connect().read_to_close();
    }
    server.connect().ask(post("SendMessage", r#"{"QueueUrl":"q","MessageBody":"late"}"#));
    assert!(receiver.read().body.contains(r#""Body":"late""#));
}

#[test]
fn a_client_that_vanishes_in_a_long_poll_waits_no_more() {
    let server = Server::new();
    server.connect().ask(post("CreateQueue", r#"{"QueueName":"q"}"#));
    let mut gone = server.connect();
    let half_open = {
        let mut client = server.connect();
        client.write(long_poll());
        client.finish_writing();
        client
    };
    gone.write(long_poll());
    while server.queues.waiting() == 0 {
        std::thread::yield_now();
    }
    drop(gone);
    while server.queues.waiting() > 0 {
        std::thread::yield_now();
    }
    drop(half_open);
    let sent = server.connect().ask(post("SendMessage", r#"{"QueueUrl":"q","MessageBody":"x"}"#));
    assert_eq!(sent.status, 200);
    let mut last = server.connect();
    assert!(last.ask(long_poll()).body.contains(r#""Body":"x""#), "nobody took it");
}

#[test]
fn a_body_announced_too_long_is_refused_before_it_is_sent() {
    let server = Server::new();
    for expect in ["", "Expect: 100-continue\r\n"] {
        let mut client = server.connect();
        let length = BODY_BYTES_MAX + 1;
        let answer = client.ask(format!(
            "POST / HTTP/1.1\r\nHost: h\r\nX-Amz-Target: AmazonSQS.SendMessage\r\n{expect}\
             Content-Length: {length}\r\n\r\n"
        ));
        assert_eq!(answer.status, 413);
        assert!(answer.body.contains("RequestEntityTooLarge"), "{}", answer.body);
        client.read_to_close();
    }
}

#[test]
fn a_body_that_grows_too_long_is_cut_off() {
    let server = Server::new();
    let mut client = server.connect();
    client.write("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    let piece = "a".repeat(64 * 1024);
    let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
    for _ in 0..BODY_BYTES_MAX / piece.len() + 1 {
        if !client.write(&chunk) {
            break;
        }
    }
    assert_eq!(client.read().status, 413);
    client.read_to_close();
}

#[test]
fn a_body_as_long_as_may_be_is_read() {
    let server = Server::new();
    let body = format!("{{\"QueueName\":\"{}\"}}", "a".repeat(BODY_BYTES_MAX - 100));
    let answer = server.connect().ask(post("CreateQueue", &body));
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("1 to 80 in length"), "{}", answer.body);
}

/// Returns a server that holds 1,100 bytes of bodies, and a request with a body of 400.
fn narrow() -> (Server, String) {
    let mut settings = settings();
    settings.bodies_bytes_max = 1_100;
    (Server::with(&settings), post("ListQueues", &format!("{{}}{}", " ".repeat(398))))
}

#[test]
fn bodies_that_are_together_too_long_are_refused_until_others_are_done() {
    let (server, request) = narrow();
    let mut halves = [server.connect(), server.connect()];
    for half in &mut halves {
        half.write(&request[..request.len() - 1]);
    }
    // Refused as soon as the server has read the halves.
    let (mut refused, answer) = loop {
        let mut client = server.connect();
        let answer = client.ask(&request);
        if answer.status != 200 {
            break (client, answer);
        }
    };
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("ServiceUnavailable"), "{}", answer.body);
    assert!(answer.head.contains("connection: close\r\n"), "{}", answer.head);
    refused.read_to_close();
    let [mut finished, gone] = halves;
    drop(gone);
    assert_eq!(finished.ask(" ").status, 200);
    // Free as soon as the server has seen the end of the other.
    let mut both = [server.connect(), server.connect()];
    both[0].write(&request[..request.len() - 1]);
    while server.connect().ask(&request).status != 200 {}
    assert_eq!(both[0].ask(" ").status, 200);
    assert_eq!(both[1].ask(&request).status, 200);
}

#[test]
fn bodies_that_never_arrive_keep_small_requests_out_of_nothing() {
    const HALVES: usize = 20;
    let mut settings = settings();
    settings.bodies_bytes_max = 1024 * 1024;
    let server = Server::with(&settings);
    let long = post("ListQueues", &format!("{{}}{}", " ".repeat(100_000)));
    let mut refused = 0;
    let halves: Vec<_> = (0..HALVES)
        .map(|_| {
            let mut half = server.connect();
            half.write(&long[..long.len() - 1]);
            half
        })
        .collect();
    // Each of them is held, or answered at once; small requests are served in between.
    while refused == 0 {
        refused = server.counters.requests(None, Outcome::Failed);
        let answer = server.connect().ask(post("ListQueues", "{}"));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    drop(halves);
}

#[test]
fn a_request_that_is_answered_or_refused_gives_its_bytes_back() {
    let (server, request) = narrow();
    let mut client = server.connect();
    for _ in 0..10 {
        assert_eq!(client.ask(&request).status, 200);
    }
    let long = post("ListQueues", &" ".repeat(1_101));
    for _ in 0..3 {
        assert_eq!(server.connect().ask(&long).status, 503);
    }
    assert_eq!(client.ask(&request).status, 200);
}

/// The kernel takes some megabytes of them, and one answer is left.
#[test]
fn answers_that_nobody_reads_keep_further_receives_out() {
    const MESSAGES: usize = 100;
    let mut settings = settings();
    settings.bodies_bytes_max = 400_000;
    let server = Server::with(&settings);
    let mut client = server.connect();
    for name in ["full", "q"] {
        let made = client.ask(post("CreateQueue", &format!("{{\"QueueName\":\"{name}\"}}")));
        assert_eq!(made.status, 200, "{}", made.body);
    }
    let body = "a".repeat(200_000);
    let send =
        post("SendMessage", &format!("{{\"QueueUrl\":\"full\",\"MessageBody\":\"{body}\"}}"));
    for _ in 0..MESSAGES {
        assert_eq!(client.ask(&send).status, 200);
    }
    let two = r#"{"QueueUrl":"full","MaxNumberOfMessages":2,"VisibilityTimeout":600}"#;
    let mut reads_nothing = server.connect();
    reads_nothing.keep_buffer_small();
    for _ in 0..MESSAGES / 2 {
        assert!(reads_nothing.write(post("ReceiveMessage", two)));
    }
    let receive = post("ReceiveMessage", r#"{"QueueUrl":"q"}"#);
    let began = Instant::now();
    let refused = loop {
        let answer = client.ask(&receive);
        if answer.status != 200 {
            break answer;
        }
        assert!(began.elapsed() < PATIENCE, "the kernel has taken all answers");
    };
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("clients have received and do not read"), "{}", refused.body);
    let listed = client.ask(post("ListQueues", "{}"));
    assert_eq!(listed.status, 200, "what is no receive is served");
    // Free as soon as the server has seen its end.
    drop(reads_nothing);
    while client.ask(&receive).status != 200 {
        assert!(began.elapsed() < 2 * PATIENCE, "its share does not return");
    }
}

#[test]
fn a_head_that_is_too_long_or_none_is_refused() {
    let server = Server::new();
    let many: String = (0..101).map(|n| format!("X-{n}: 1\r\n")).collect();
    for request in [
        format!("GET /health HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(70_000)),
        format!("GET /health HTTP/1.1\r\n{many}\r\n"),
    ] {
        let mut client = server.connect();
        client.write(request);
        assert_eq!(client.read().status, 431);
        client.read_to_close();
    }
    for garbage in ["AMQP\0\0\x09\x01", "\x16\x03\x01\x02\0\x01", "GET\r\n\r\n"] {
        let mut client = server.connect();
        client.write(garbage);
        client.write("\r\n\r\n");
        let answer = client.read_to_close();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{garbage:?}");
    }
}

#[test]
fn connections_beyond_the_limit_are_closed_at_once() {
    let mut settings = settings();
    settings.connections_max = 2;
    let server = Server::with(&settings);
    let (mut first, mut second) = (server.connect(), server.connect());
    assert_eq!(first.ask(post("ListQueues", "{}")).status, 200);
    assert_eq!(second.ask(post("ListQueues", "{}")).status, 200);
    assert_eq!(server.connect().read_to_close(), b"");
    assert_eq!((server.counters.connections(), server.counters.connections_refused()), (2, 1));
    drop(first);
    // The place is free as soon as the server has seen the end.
    while server.connect().closes_within(Duration::from_millis(50)) {}
    assert_eq!(second.ask(post("ListQueues", "{}")).status, 200);
}

#[test]
fn a_stop_ends_receives_that_wait() {
    let mut server = Server::new();
    server.connect().ask(post("CreateQueue", r#"{"QueueName":"q"}"#));
    let mut receiver = server.connect();
    receiver.write(long_poll());
    while server.queues.waiting() == 0 {
        std::thread::yield_now();
    }
    server.stop();
    // It is answered, with nothing, and not only closed.
    let answer = String::from_utf8(receiver.read_to_close()).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n{}"),
        "{answer}"
    );
    assert_eq!(server.queues.waiting(), 0);
}
