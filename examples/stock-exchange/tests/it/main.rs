//! What a run leaves behind at a broker that, as Qpid does, refuses to delete what is not there.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use quelea_amqp_codec::method::{Method, exchange, queue};
use quelea_amqp_codec::{ConnectionConfig, Event, ReplyCode, ServerConnection};
use quelea_model::Timestamp;
use quelea_stock_exchange::connection::Venue;

/// Serves one connection to its end; returns what was to be deleted. Only what is called `there` is there.
fn serve(mut stream: TcpStream, there: &str) -> Vec<String> {
    let config = Arc::new(ConnectionConfig::default());
    let mut amqp = ServerConnection::new(config, Timestamp::ZERO);
    let (mut deleted, mut chunk) = (Vec::new(), [0; 4096]);
    while !amqp.is_finished() {
        match stream.read(&mut chunk).unwrap() {
            0 => break,
            count => amqp.receive(Bytes::copy_from_slice(&chunk[..count]), Timestamp::ZERO),
        }
        while let Some(event) = amqp.poll(Timestamp::ZERO) {
            match event {
                Event::Authenticate { .. } => amqp.authenticated(Ok(())),
                Event::Open { .. } => amqp.opened(Ok(())),
                Event::ChannelClosed(channel) => amqp.channel_close_ok(channel),
                Event::Closed => amqp.connection_close_ok(),
                Event::Method { channel, method } => {
                    let (name, done): (String, Method) = match method {
                        Method::QueueDelete(delete) => {
                            (delete.queue.to_string(), queue::DeleteOk::default().into())
                        }
                        Method::ExchangeDelete(delete) => {
                            (delete.exchange.to_string(), exchange::DeleteOk::default().into())
                        }
                        other => panic!("{} is not needed to clear up", other.name()),
                    };
                    if name == there {
                        amqp.send(channel, &done);
                    } else {
                        let text = format!("no '{name}'");
                        amqp.close_channel(channel, ReplyCode::NotFound, &text, 50, 40);
                    }
                    deleted.push(name);
                }
                _ => {}
            }
        }
        let bytes = amqp.output().to_bytes();
        stream.write_all(&bytes).unwrap();
        amqp.output().advance(bytes.len());
    }
    deleted
}

#[test]
fn what_is_not_there_need_not_be_deleted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("amqp://{}", listener.local_addr().unwrap()).parse().unwrap();
    let served = thread::spawn(move || serve(listener.accept().unwrap().0, "x.statistics"));
    let venue = Venue { uri, prefix: "x".to_owned(), durable: true, feed: false, expires: false };
    venue.clear(0.0).unwrap();
    let all = ["x.orders", "x.trades", "x.statistics", "x.feed", "x"];
    assert_eq!(served.join().unwrap(), all);
}
