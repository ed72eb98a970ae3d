//! Ready line, signals, exit codes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;

use crate::broker::{Broker, DataDir, Starting, command, refused, word};
use crate::client::{Client, Gone, PATIENCE, PERSISTENT};

fn confirmed_publish(client: &mut Client, queue: &str, body: &'static str) {
    client.publish(queue, PERSISTENT, body);
    client.expect(1, "basic.ack").unwrap();
}

#[test]
fn the_ready_line_names_addresses_process_and_directory() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let line = &broker.ready_line;
    assert_eq!(word(line, "pid"), broker.pid().to_string());
    assert!(word(line, "http").starts_with("127.0.0.1:"), "{line}");
    let data_dir = dir.path().canonicalize().unwrap().join("data");
    assert_eq!(word(line, "data_dir"), data_dir.to_str().unwrap());
}

#[test]
fn the_management_api_listens_where_the_ready_line_says_unless_off() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let mut stream = TcpStream::connect(word(&broker.ready_line, "http")).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(broker.terminate().0.code(), Some(0));
    let broker = Broker::start(&dir, &[("http.enabled", "false")]);
    assert_eq!(word(&broker.ready_line, "http"), "-");
    assert_eq!(broker.terminate().0.code(), Some(0));
}

/// Returns what the management port answers, with its head.
fn ask(broker: &Broker, path: &str) -> String {
    let mut stream = TcpStream::connect(word(&broker.ready_line, "http")).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_browser_at_the_management_port_learns_what_this_is() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let page = ask(&broker, "/").to_lowercase();
    assert!(page.starts_with("http/1.1 200"), "{page}");
    // The console says the rest by itself.
    let plain: &[_] =
        if cfg!(feature = "console") { &[] } else { &["/api/overview", "/metrics", "docs"] };
    for part in ["content-type: text/html", "quelea"].iter().chain(plain) {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn systemd_is_notified_of_readiness_and_of_a_stop() {
    let dir = DataDir::new();
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = command(dir.path(), &[]);
    command.env("NOTIFY_SOCKET", &path);
    let Ok(broker) = Starting::run(command).ready_within(PATIENCE) else { panic!("not ready") };
    let notified = || {
        let mut message = [0; 256];
        let len = manager.recv(&mut message).unwrap();
        String::from_utf8(message[..len].to_vec()).unwrap()
    };
    assert!(notified().contains("READY=1"));
    broker.terminate();
    assert!(notified().contains("STOPPING=1"));
}

/// Runs `quelea admin` against a broker.
fn admin(broker: &Broker, words: &[&str]) -> Output {
    let url = format!("http://{}", word(&broker.ready_line, "http"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_quelea"));
    command.args(["admin", "--url", &url]).args(words).stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn admin_refuses_a_user_that_exists_and_a_virtual_host_that_does_not() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let add = ["user", "add", "ada", "--new-password", "lovelace"];
    assert!(admin(&broker, &add).status.success());
    for words in [&add[..], &["queue", "list", "--vhost", "nope"]] {
        let refused = admin(&broker, words);
        assert_eq!(refused.status.code(), Some(1), "{words:?}");
        assert!(!refused.stderr.is_empty(), "{words:?}");
    }
    assert!(Client::login(broker.amqp, "ada", "lovelace").is_err(), "it has no permission yet");
}

#[test]
fn sigterm_tells_clients_keeps_the_data_and_exits_with_0() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let mut client = Client::connect(broker.amqp);
    client.declare("orders", true).unwrap();
    client.confirm_select().unwrap();
    confirmed_publish(&mut client, "orders", "first");
    let closed = std::thread::spawn(move || client.until_gone());
    let (status, lines) = broker.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(lines.iter().any(|line| line.starts_with("quelea stopped clean=true")), "{lines:?}");
    assert!(matches!(closed.join().unwrap(), Gone::Closed { code: 320, .. }));

    let broker = Broker::start(&dir, &[]);
    let mut client = Client::connect(broker.amqp);
    assert_eq!(client.get("orders").unwrap().as_deref(), Some(&b"first"[..]));
    assert_eq!(client.get("orders").unwrap(), None);
}

#[test]
fn sigint_stops_too_and_leaves_a_silent_client_behind() {
    let dir = DataDir::new();
    let mut broker = Broker::start(&dir, &[("stop_timeout_ms", "50")]);
    let silent = Client::connect(broker.amqp);
    broker.signal(Signal::INT);
    assert_eq!(broker.wait().code(), Some(0));
    drop(silent);
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let dir = DataDir::new();
    let mut broker = Broker::start(&dir, &[("stop_timeout_ms", "86400000")]);
    let mut silent = Client::connect(broker.amqp);
    broker.signal(Signal::TERM);
    // Once it was notified, the stop has begun; without an answer it would wait for a day.
    assert_eq!(silent.until_told_to_close().unwrap(), 320);
    broker.signal(Signal::TERM);
    assert_eq!(broker.wait().code(), Some(1));
}

#[test]
fn a_second_broker_on_the_directory_is_refused_with_its_owner() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let taken = broker.amqp.to_string();
    for settings in [&[][..], &[("amqp.listen", taken.as_str()), ("http.listen", &taken)]] {
        let (code, errors) = refused(&dir, settings);
        assert_eq!(code, Some(1));
        assert!(errors.contains(&format!("in use by process {}", broker.pid())), "{errors}");
    }
}

#[cfg(feature = "cassandra")]
#[test]
fn a_second_broker_does_not_wait_for_cassandra_to_learn_of_its_owner() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    // Nobody listens there any more.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nodes = format!("[\"{closed}\"]");
    let (code, errors) = refused(&dir, &[("cassandra.nodes", &nodes)]);
    assert_eq!(code, Some(1));
    assert!(errors.contains(&format!("in use by process {}", broker.pid())), "{errors}");
    assert!(!errors.contains("Cassandra"), "{errors}");
}

#[test]
fn a_wrong_configuration_is_refused_with_the_key_and_its_limits() {
    let dir = DataDir::new();
    let (code, errors) = refused(&dir, &[("amqp.frame_max", "1")]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("amqp.frame_max = 1 is not within 4KiB to 16MiB"), "{errors}");
    let (code, errors) = refused(&dir, &[("amqp.lisen", "127.0.0.1:0")]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("amqp.lisen"), "{errors}");
}

#[test]
fn an_address_in_use_is_named() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let taken = broker.amqp.to_string();
    let (code, errors) = refused(&DataDir::new(), &[("amqp.listen", &taken)]);
    assert_eq!(code, Some(1));
    assert!(errors.contains(&format!("amqp.listen: cannot listen on {taken}")), "{errors}");
    // A wrong setting, and another broker's directory, say more than an address.
    let dir = DataDir::new();
    let settings = [
        ("amqp.listen", taken.as_str()),
        ("http.listen", &taken),
        ("sqs.listen", &taken),
        ("cmq.listen", "127.0.0.1:0"),
        ("elastic.open_beyond_loopback", "true"),
        #[cfg(feature = "kubernetes")]
        ("elastic.provider", "kubernetes"),
        #[cfg(feature = "kubernetes")]
        ("elastic.kubernetes_image", "quelea"),
    ];
    let broken = dir.path().join("broken.json");
    std::fs::write(&broken, "{\"queues\": 1}").unwrap();
    let broken = broken.to_str().unwrap();
    for (setting, text) in [
        (("cmq.route", "[{mailboxes='x'}]"), "cmq.route.mailboxes"),
        (("elastic.default", "{"), "elastic.default"),
        (
            (
                "bridge.feed",
                "[{exchange='e',queue='q',through='t'},{exchange='e',queue='p',through='t'}]",
            ),
            "bridge.feed",
        ),
        (("elastic.advertise", "0.0.0.0:5670"), "elastic.advertise"),
        (("bridge.keep_listen", "0.0.0.0:0"), "bridge.keep_advertise"),
        (("definitions", "nowhere.json"), "definitions: nowhere.json"),
        (("definitions", broken), "definitions: "),
        #[cfg(feature = "kubernetes")]
        (("elastic.kubernetes_pod_template", "nowhere.yaml"), "elastic.kubernetes_pod_template"),
    ] {
        let (code, errors) = refused(&dir, &[&settings[..], &[setting]].concat());
        assert_eq!(code, Some(2), "{text}: {errors}");
        assert!(errors.contains(text) && !errors.contains("cannot listen"), "{text}: {errors}");
        assert!(!dir.path().join("data").exists(), "nothing was made");
    }
    let (_, errors) = refused(&dir, &settings[1..2]);
    assert!(errors.contains(&format!("http.listen: cannot listen on {taken}")), "{errors}");
    let (_, errors) = refused(&dir, &settings[2..3]);
    assert!(errors.contains(&format!("sqs.listen: cannot listen on {taken}")), "{errors}");
    let lock = std::fs::read_to_string(dir.path().join("data/LOCK")).unwrap();
    assert_eq!(lock.trim(), "clean", "nothing was opened, so nothing crashed");
}

#[test]
fn the_first_administrator_is_the_configured_one() {
    let dir = DataDir::new();
    let settings = [("access.bootstrap_user", "ada"), ("access.bootstrap_password", "lovelace")];
    let broker = Broker::start(&dir, &settings);
    assert!(Client::login(broker.amqp, "ada", "lovelace").is_ok());
    assert!(matches!(
        Client::login(broker.amqp, "guest", "guest"),
        Err(Gone::Closed { code: 403, .. })
    ));
}
