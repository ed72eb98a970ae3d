//! Who may send requests.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use quelea_sqs_protocol::{AccessKey, Action, HttpRequest, Signer, User};
use quelea_sqs_server::{Outcome, Verify};

use crate::client::{Server, post, settings};

fn server(verify: Verify) -> Server {
    let mut settings = settings();
    settings.verify = verify;
    let server = Server::with(&settings);
    for (id, enabled) in [("AKIAGOOD", true), ("AKIAOLD", false)] {
        let user = User { name: Some("ann".into()), account: "000000000000".into() };
        let key = AccessKey { user, secret: Arc::from("secret"), enabled };
        server.queues.add_access_key(id, key);
    }
    server
}

/// Lists queues, signed by that key.
fn signed(id: &str, secret: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let body = "{}";
    let headers: [(&str, &[u8]); 2] = [("host", b"h"), ("x-amz-target", b"AmazonSQS.ListQueues")];
    let request = HttpRequest {
        method: "POST",
        path: "/",
        query: "",
        headers: &headers,
        body: body.as_bytes(),
    };
    let added = Signer::new(id, secret, "eu-west-1").sign(&request, now.as_millis() as u64);
    format!(
        "POST / HTTP/1.1\r\nHost: h\r\nX-Amz-Target: AmazonSQS.ListQueues\r\nX-Amz-Date: {}\r\n\
         Authorization: {}\r\nContent-Length: 2\r\n\r\n{body}",
        added.amz_date, added.authorization
    )
}

fn with(request: String, header: &str) -> String {
    request.replacen("Content-Length", &format!("{header}\r\nContent-Length"), 1)
}

#[test]
fn where_all_is_verified_only_good_signatures_pass() {
    let server = server(Verify::Always);
    let mut client = server.connect();
    assert_eq!(client.ask(signed("AKIAGOOD", "secret")).status, 200);
    for (request, code) in [
        (post("ListQueues", "{}"), "MissingAuthenticationToken"),
        (signed("AKIAGOOD", "wrong"), "SignatureDoesNotMatch"),
        (signed("AKIAOLD", "secret"), "InvalidClientTokenId"),
        (signed("AKIANONE", "secret"), "InvalidClientTokenId"),
    ] {
        let answer = client.ask(request);
        assert_eq!(answer.status, 403, "{code}");
        assert!(answer.head.contains(&code.to_lowercase()), "{}", answer.head);
    }
    let counters = &server.counters;
    assert_eq!(counters.signatures_refused(), 4);
    assert_eq!(counters.requests(None, Outcome::Refused), 4);
    assert_eq!(counters.requests(Some(Action::ListQueues), Outcome::Done), 1);
}

#[test]
fn on_loopback_only_wrong_credentials_of_a_known_key_are_refused() {
    let server = server(Verify::Remote);
    let mut client = server.connect();
    for request in [
        post("ListQueues", "{}"),
        signed("AKIANONE", "whatever"),
        signed("AKIAGOOD", "secret"),
        post("ListQueues", "{}").replace("\r\n\r\n", "\r\nAuthorization: Basic dGVzdA==\r\n\r\n"),
    ] {
        assert_eq!(client.ask(request).status, 200);
    }
    for (id, secret) in [("AKIAGOOD", "wrong"), ("AKIAOLD", "secret")] {
        assert_eq!(client.ask(signed(id, secret)).status, 403, "{id}");
    }
}

#[test]
fn what_a_proxy_or_an_allowed_page_sends_needs_a_known_key() {
    let server = server(Verify::Remote);
    let mut client = server.connect();
    for header in [
        "Forwarded: for=192.0.2.1",
        "X-Forwarded-For: 192.0.2.1",
        "X-Forwarded-Host: queues.example",
        "X-Real-IP: 192.0.2.1",
        "Via: 1.1 proxy",
        "Origin: https://app.example",
        "Origin: https://App.Example\r\nSec-Fetch-Site: cross-site",
    ] {
        for request in [post("ListQueues", "{}"), signed("AKIANONE", "x"), signed("AKIAOLD", "x")] {
            let answer = client.ask(with(request, header));
            assert_eq!(answer.status, 403, "{header}");
            assert!(answer.body.contains("sqs.verify"), "{header}: {}", answer.body);
        }
        let known = client.ask(with(signed("AKIAGOOD", "secret"), header));
        assert_eq!(known.status, 200, "{header}");
        let wrong = client.ask(with(signed("AKIAGOOD", "wrong"), header));
        assert!(wrong.head.contains("signaturedoesnotmatch"), "{header}: {}", wrong.head);
    }
    let own = client.ask(with(signed("AKIAGOOD", "secret"), "Origin: http://h"));
    assert_eq!(own.status, 200, "a page that came from here");
    for header in ["Sec-Fetch-Site: none", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"] {
        let answer = client.ask(with(post("ListQueues", "{}"), header));
        assert_eq!(answer.status, 200, "{header}");
    }
}

#[test]
fn a_page_of_a_forbidden_origin_changes_nothing_even_with_a_key() {
    for verify in [Verify::Remote, Verify::Always] {
        let server = server(verify);
        let mut client = server.connect();
        for header in [
            "Origin: https://evil.example",
            "Origin: https://app.example.evil.example",
            "Origin: http://app.example",
            "Origin: null",
            "Origin: \u{fc}",
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Site: same-site",
        ] {
            let answer = client.ask(with(signed("AKIAGOOD", "secret"), header));
            assert_eq!(answer.status, 403, "{header}");
            assert!(answer.body.contains("sqs.origins"), "{header}: {}", answer.body);
            assert!(!answer.head.contains("access-control"), "{header}: {}", answer.head);
        }
        assert_eq!(server.counters.requests(Some(Action::ListQueues), Outcome::Done), 0);
    }
}

#[test]
fn a_browser_lets_an_allowed_page_ask_and_read() {
    let server = server(Verify::Always);
    let mut client = server.connect();
    let asks = "Access-Control-Request-Method: POST\r\n\
                Access-Control-Request-Headers: authorization,x-amz-target\r\n";
    let preflight =
        |origin: &str| format!("OPTIONS / HTTP/1.1\r\nHost: h\r\nOrigin: {origin}\r\n{asks}\r\n");
    let allowed = client.ask(preflight("https://app.example"));
    assert_eq!((allowed.status, allowed.body.as_str()), (204, ""));
    for header in [
        "access-control-allow-origin: https://app.example",
        "access-control-allow-methods: post",
        "access-control-allow-headers: authorization,x-amz-target",
        "vary: origin",
    ] {
        assert!(allowed.head.contains(header), "{header}: {}", allowed.head);
    }
    let other = client.ask(preflight("https://evil.example"));
    assert_eq!(other.status, 403);
    assert!(!other.head.contains("access-control"), "{}", other.head);
    // It may also read why it was refused.
    let origin = "Origin: https://app.example";
    for (secret, status) in [("secret", 200), ("wrong", 403)] {
        let answer = client.ask(with(signed("AKIAGOOD", secret), origin));
        assert_eq!(answer.status, status);
        let header = "access-control-allow-origin: https://app.example";
        assert!(answer.head.contains(header), "{}", answer.head);
    }
    let program = client.ask(signed("AKIAGOOD", "secret"));
    assert!(!program.head.contains("access-control"), "{}", program.head);
}

#[test]
fn a_name_that_a_web_page_may_have_needs_a_known_key() {
    let server = server(Verify::Remote);
    let mut client = server.connect();
    let asked_as = |host: &str| post("ListQueues", "{}").replace("queues.test:9324", host);
    for host in ["127.0.0.1:9324", "[::1]:9324", "localhost", "quelea:9324", "sqs.localhost:9324"] {
        assert_eq!(client.ask(asked_as(host)).status, 200, "{host}");
    }
    for host in ["evil.example", "evil.example:9324", "localhost.evil.example"] {
        let answer = client.ask(asked_as(host));
        assert_eq!(answer.status, 403, "{host}");
        assert!(answer.body.contains("sqs.hosts"), "{host}: {}", answer.body);
    }
    // `h` is what the signed request names; a key is worth more than a name.
    assert_eq!(client.ask(signed("AKIAGOOD", "secret")).status, 200);
}

#[test]
fn a_get_of_a_browser_carries_out_nothing() {
    let server = server(Verify::Remote);
    let mut client = server.connect();
    let mut get = |header: &str| {
        let request = "GET /?Action=CreateQueue&QueueName=q HTTP/1.1\r\nHost: localhost\r\n";
        client.ask(format!("{request}{header}\r\n")).status
    };
    for header in [
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n",
        "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n",
        "Sec-Fetch-Site: same-origin\r\n",
    ] {
        assert_eq!(get(header), 403, "{header}");
    }
    assert_eq!(server.counters.requests(Some(Action::CreateQueue), Outcome::Done), 0);
    assert_eq!(get("User-Agent: curl/8.9.1\r\n"), 200);
}
