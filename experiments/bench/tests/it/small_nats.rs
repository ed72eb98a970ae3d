//! A NATS server just large enough for the load generator, that loses, repeats or swaps what it is
//! told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What it does to the message with this number (from 0), at every listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Lose(u64),
    Repeat(u64),
    /// It comes after the next one.
    Swap(u64),
    /// It comes with its first byte changed.
    Damage(u64),
    /// The listeners are told off instead.
    Refuse(u64),
}

/// A running server; stops with the value.
pub(crate) struct SmallNats {
    address: SocketAddr,
    state: Arc<State>,
    acceptor: Option<JoinHandle<()>>,
}

struct State {
    fault: Fault,
    stop: AtomicBool,
    room: Mutex<Room>,
}

#[derive(Default)]
struct Room {
    messages: u64,
    held: Option<Vec<u8>>,
    listeners: Vec<TcpStream>,
    everybody: Vec<TcpStream>,
}

impl SmallNats {
    pub(crate) fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State { fault, stop: AtomicBool::new(false), room: Mutex::default() });
        let theirs = Arc::clone(&state);
        let accept = move || {
            let mut threads = Vec::new();
            while let Ok((stream, _)) = listener.accept() {
                if theirs.stop.load(Ordering::Relaxed) {
                    break;
                }
                theirs.room.lock().unwrap().everybody.push(stream.try_clone().unwrap());
                let state = Arc::clone(&theirs);
                threads.push(std::thread::spawn(move || serve(stream, &state)));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        };
        Self { address, state, acceptor: Some(std::thread::spawn(accept)) }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for SmallNats {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        for stream in &self.state.room.lock().unwrap().everybody {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.acceptor.take() {
            thread.join().unwrap();
        }
    }
}

fn serve(stream: TcpStream, state: &State) {
    let mut output = stream.try_clone().unwrap();
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    output.write_all(b"INFO {\"server_id\":\"small\"}\r\n").unwrap();
    loop {
        line.clear();
        if input.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            // Asks something itself, so that answering is tried too.
            ["PING"] => output.write_all(b"PING\r\nPONG\r\n").unwrap_or(()),
            ["SUB", ..] => state.room.lock().unwrap().listeners.push(output.try_clone().unwrap()),
            ["PUB", _, length] => {
                let mut body = vec![0; length.parse::<usize>().unwrap() + 2];
                if input.read_exact(&mut body).is_err() {
                    return;
                }
                let head = format!("MSG load 1 {length}\r\n").into_bytes();
                state.room.lock().unwrap().pass(state.fault, [head, body].concat());
            }
            _ => {}
        }
    }
}

impl Room {
    fn pass(&mut self, fault: Fault, mut message: Vec<u8>) {
        let number = self.messages;
        self.messages += 1;
        match fault {
            Fault::Lose(it) if it == number => {}
            Fault::Swap(it) if it == number => self.held = Some(message),
            Fault::Repeat(it) if it == number => {
                self.give(&message);
                self.give(&message);
            }
            Fault::Damage(it) if it == number => {
                let body = message.iter().position(|byte| *byte == b'\n').unwrap() + 1;
                message[body] ^= 1;
                self.give(&message);
            }
            Fault::Refuse(it) if it == number => self.give(b"-ERR 'Slow Consumer'\r\n"),
            _ => {
                self.give(&message);
                if let Some(held) = self.held.take() {
                    self.give(&held);
                }
            }
        }
    }

    fn give(&mut self, bytes: &[u8]) {
        for listener in &mut self.listeners {
            // Who is gone is gone.
            let _ = listener.write_all(bytes);
        }
    }
}
