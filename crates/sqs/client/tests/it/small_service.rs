//! An SQS service just large enough for the client and the load generator: queues in memory, one
//! lock, a thread for each connection, long polls, visibility timeouts.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A running service; takes no more connections when the value is gone.
pub(crate) struct SmallService {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    queues: HashMap<String, Queue>,
    next_id: u64,
    calls: HashMap<String, u64>,
    /// Timeouts that messages were given.
    visibility_changes: Vec<Duration>,
    /// Statuses that the next calls of an action are answered with.
    failures: HashMap<String, Vec<u16>>,
    /// So many of the next messages are lost, although the answer is that they are there.
    drop_sent: u32,
}

#[derive(Default)]
struct Queue {
    entries: Vec<Entry>,
    visibility_timeout: Duration,
}

/// BDQS's tuple (T, I), with the message beside it.
struct Entry {
    visible_at: Instant,
    id: u64,
    body: String,
    receives: u64,
}

/// Instead of a status: no answer, the connection left open.
pub(crate) const SILENCE: u16 = 0;
/// Instead of a status: the connection closed without an answer.
pub(crate) const CLOSE: u16 = 1;
/// Instead of a status: an answer longer than clients take.
pub(crate) const TOO_LONG: u16 = 2;

type Answer = Result<Value, (u16, &'static str)>;

impl SmallService {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.stop.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || serve(&shared, stream.unwrap()));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next calls of `action` are answered with these statuses and no effect.
    pub(crate) fn fail(&self, action: &str, statuses: &[u16]) {
        let mut state = self.shared.state.lock().unwrap();
        state.failures.insert(action.to_owned(), statuses.to_vec());
    }

    /// So many of the next messages are lost, although the answer is that they are there.
    pub(crate) fn drop_sent(&self, messages: u32) {
        self.shared.state.lock().unwrap().drop_sent = messages;
    }

    pub(crate) fn queues(&self) -> usize {
        self.shared.state.lock().unwrap().queues.len()
    }

    pub(crate) fn calls(&self, action: &str) -> u64 {
        self.shared.state.lock().unwrap().calls.get(action).copied().unwrap_or(0)
    }

    /// Returns the timeouts that messages were given by ChangeMessageVisibility.
    pub(crate) fn visibility_changes(&self) -> Vec<Duration> {
        self.shared.state.lock().unwrap().visibility_changes.clone()
    }

    /// Counts the messages of a queue, visible or not.
    pub(crate) fn messages(&self, queue: &str) -> usize {
        self.shared.state.lock().unwrap().length(queue)
    }

    /// Waits until a queue has so many messages.
    pub(crate) fn wait_for_messages(&self, queue: &str, count: usize) {
        let state = self.shared.state.lock().unwrap();
        let (state, waited) = self
            .shared
            .changed
            .wait_timeout_while(state, Duration::from_secs(60), |state| {
                state.length(queue) != count
            })
            .unwrap();
        assert!(!waited.timed_out(), "{queue} has {} messages, not {count}", state.length(queue));
    }
}

impl State {
    fn length(&self, queue: &str) -> usize {
        self.queues.get(queue).map_or(0, |queue| queue.entries.len())
    }

    fn entries(&mut self, queue: &str) -> &mut Vec<Entry> {
        &mut self.queues.get_mut(queue).unwrap().entries
    }
}

impl Drop for SmallService {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Wakes the listener, so that it sees the flag.
        let _ = TcpStream::connect(self.address);
    }
}

/// One request after the other, until the client goes.
fn serve(shared: &Shared, stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some((action, body)) = read_request(&mut reader) {
        let answer = answer(shared, &action, &body);
        match answer {
            Err((TOO_LONG, _)) => {
                let _ = stream.write_all(b"HTTP/1.1 200 X\r\nContent-Length: 99999999\r\n\r\n");
                return;
            }
            Err((SILENCE, _)) => {
                // Until the client goes.
                let _ = reader.read_line(&mut String::new());
                return;
            }
            Err((CLOSE, _)) => return,
            _ => {}
        }
        let (status, body) = match answer {
            Ok(value) => (200, value),
            Err((status, code)) => {
                (status, json!({ "__type": format!("com.amazonaws.sqs#{code}"), "message": code }))
            }
        };
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", text.len());
        if stream.write_all((head + &text).as_bytes()).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<(String, Value)> {
    let (mut action, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            if line == "\r\n" {
                break;
            }
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "x-amz-target" => action = value.strip_prefix("AmazonSQS.").unwrap().to_owned(),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((action, serde_json::from_slice(&body).unwrap()))
}

fn answer(shared: &Shared, action: &str, call: &Value) -> Answer {
    let mut state = shared.state.lock().unwrap();
    *state.calls.entry(action.to_owned()).or_default() += 1;
    if let Some(failures) = state.failures.get_mut(action)
        && !failures.is_empty()
    {
        let status = failures.remove(0);
        let code = if status < 500 { "AccessDenied" } else { "InternalFailure" };
        return Err((status, code));
    }
    if let Some(name) = call["QueueName"].as_str() {
        if call["Attributes"].get("OrderHint").is_some() {
            return Err((400, "InvalidAttributeName"));
        }
        if action == "CreateQueue" {
            let seconds = call["Attributes"]["VisibilityTimeout"].as_str().unwrap_or("30");
            let visibility_timeout = Duration::from_secs(seconds.parse().unwrap());
            let queue = Queue { entries: Vec::new(), visibility_timeout };
            state.queues.entry(name.to_owned()).or_insert(queue);
        } else if !state.queues.contains_key(name) {
            return Err((400, "QueueDoesNotExist"));
        }
        return Ok(json!({ "QueueUrl": format!("http://small/000000000000/{name}") }));
    }
    if action == "ListQueues" {
        return Ok(json!({}));
    }
    let url = call["QueueUrl"].as_str().unwrap_or_default();
    let queue = url.rsplit('/').next().unwrap().to_owned();
    if !state.queues.contains_key(&queue) {
        return Err((400, "QueueDoesNotExist"));
    }
    if action == "ReceiveMessage" {
        drop(state);
        return Ok(receive(shared, &queue, call));
    }
    let answered = act(&mut state, action, &queue, call);
    drop(state);
    shared.changed.notify_all();
    answered
}

fn act(state: &mut State, action: &str, queue: &str, call: &Value) -> Answer {
    match action {
        "SendMessage" => Ok(send(state, queue, call)),
        "SendMessageBatch" => batch(call, |entry| Ok(send(state, queue, entry))),
        "DeleteMessage" => delete(state, queue, call),
        "DeleteMessageBatch" => batch(call, |entry| delete(state, queue, entry)),
        "ChangeMessageVisibility" => change_visibility(state, queue, call),
        "ChangeMessageVisibilityBatch" => {
            batch(call, |entry| change_visibility(state, queue, entry))
        }
        "PurgeQueue" => {
            state.entries(queue).clear();
            Ok(Value::Null)
        }
        "DeleteQueue" => {
            state.queues.remove(queue);
            Ok(Value::Null)
        }
        "GetQueueAttributes" => Ok(json!({ "Attributes": {
            "ApproximateNumberOfMessages": state.length(queue).to_string(),
            "ApproximateNumberOfMessagesNotVisible": "0" } })),
        _ => Err((400, "InvalidAction")),
    }
}

fn batch(call: &Value, mut each: impl FnMut(&Value) -> Answer) -> Answer {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for entry in call["Entries"].as_array().unwrap() {
        match each(entry) {
            Ok(value) => {
                let mut value = if value.is_null() { json!({}) } else { value };
                value["Id"] = entry["Id"].clone();
                done.push(value);
            }
            Err((_, code)) => {
                failed.push(json!({ "Id": entry["Id"], "Code": code, "SenderFault": true }));
            }
        }
    }
    Ok(json!({ "Successful": done, "Failed": failed }))
}

fn send(state: &mut State, queue: &str, call: &Value) -> Value {
    let id = state.next_id;
    state.next_id += 1;
    if state.drop_sent > 0 {
        state.drop_sent -= 1;
        return json!({ "MessageId": id.to_string(), "MD5OfMessageBody": "" });
    }
    let delay = Duration::from_secs(call["DelaySeconds"].as_u64().unwrap_or(0));
    let body = call["MessageBody"].as_str().unwrap().to_owned();
    let entry = Entry { visible_at: Instant::now() + delay, id, body, receives: 0 };
    state.entries(queue).push(entry);
    json!({ "MessageId": id.to_string(), "MD5OfMessageBody": "" })
}

fn receive(shared: &Shared, queue: &str, call: &Value) -> Value {
    let wait = Duration::from_secs(call["WaitTimeSeconds"].as_u64().unwrap_or(0));
    let until = Instant::now() + wait;
    let max = usize::try_from(call["MaxNumberOfMessages"].as_u64().unwrap_or(1)).unwrap();
    let mut state = shared.state.lock().unwrap();
    loop {
        let now = Instant::now();
        let Some(found) = state.queues.get_mut(queue) else { return json!({}) };
        let asked = call["VisibilityTimeout"].as_u64().map(Duration::from_secs);
        let timeout = asked.unwrap_or(found.visibility_timeout);
        let mut visible: Vec<_> =
            found.entries.iter_mut().filter(|entry| entry.visible_at <= now).collect();
        visible.sort_by_key(|entry| (entry.visible_at, entry.id));
        let messages: Vec<Value> =
            visible.into_iter().take(max).map(|e| hand_out(e, timeout)).collect();
        if !messages.is_empty() {
            return json!({ "Messages": messages });
        }
        if now >= until {
            return json!({});
        }
        // Looks again now and then: messages also become visible by the passing of time.
        let pause = (until - now).min(Duration::from_millis(20));
        state = shared.changed.wait_timeout(state, pause).unwrap().0;
    }
}

fn hand_out(entry: &mut Entry, timeout: Duration) -> Value {
    entry.visible_at = Instant::now() + timeout;
    entry.receives += 1;
    json!({
        "MessageId": entry.id.to_string(),
        "ReceiptHandle": format!("{}:{}", entry.id, entry.receives),
        "Body": entry.body,
        "MD5OfBody": "",
        "Attributes": { "ApproximateReceiveCount": entry.receives.to_string() },
    })
}

fn delete(state: &mut State, queue: &str, call: &Value) -> Answer {
    let (id, _) = handle(call).ok_or((400, "ReceiptHandleIsInvalid"))?;
    state.entries(queue).retain(|entry| entry.id != id);
    Ok(json!({}))
}

fn change_visibility(state: &mut State, queue: &str, call: &Value) -> Answer {
    let (id, receives) = handle(call).ok_or((400, "ReceiptHandleIsInvalid"))?;
    let timeout = Duration::from_secs(call["VisibilityTimeout"].as_u64().unwrap());
    let now = Instant::now();
    let mut entries = state.entries(queue).iter_mut();
    let entry = entries
        .find(|entry| entry.id == id && entry.receives == receives && entry.visible_at > now)
        .ok_or((400, "MessageNotInflight"))?;
    entry.visible_at = now + timeout;
    state.visibility_changes.push(timeout);
    Ok(Value::Null)
}

fn handle(call: &Value) -> Option<(u64, u64)> {
    let (id, receives) = call["ReceiptHandle"].as_str()?.split_once(':')?;
    Some((id.parse().ok()?, receives.parse().ok()?))
}
