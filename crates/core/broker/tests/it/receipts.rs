//! The lines of a story that act as SQS does: without a channel.

use quelea_broker::{
    Fifo, GROUP_HEADER, MoveTaskId, MoveTaskState, QueueAttributes, QueueSettings,
    REDRIVE_SOURCE_HEADER, Receipt, ReceiptOutcome, Receive, ReceiveId, ReceivedMessage, Redrive,
    Send,
};
use quelea_model::{Properties, QueueId, Table, Value};
use quelea_store::Durability;

use crate::broker_test::BrokerTest;
use crate::line::{Line, body};
use crate::stage::{Outcome, check, done, said};

/// What callers without a channel remember.
#[derive(Default)]
pub(crate) struct Callers {
    /// Every receipt that anybody got, by the message's name, oldest first.
    receipts: Vec<(String, Receipt)>,
    /// Receives that have no answer yet, by the caller's name.
    waiting: Vec<(String, QueueId, ReceiveId)>,
    tasks: Vec<MoveTaskId>,
    pub(crate) last: Option<ReceivedMessage>,
}

impl Callers {
    pub(crate) fn knows(command: &str) -> bool {
        matches!(
            command,
            "create"
                | "set"
                | "send"
                | "receive"
                | "poll"
                | "answer"
                | "hang-up"
                | "delete-message"
                | "visibility"
                | "give-back"
                | "backlog"
                | "purge-all"
                | "drop-queue"
                | "move"
                | "cancel-move"
                | "moves"
        )
    }

    pub(crate) fn perform(&mut self, test: &mut BrokerTest, line: &Line<'_>) -> Outcome {
        match line.command {
            "create" => create(test, line),
            "set" => {
                let id = queue(test, line)?;
                let ticket = test.broker.put_queue_attributes(id, attributes(line)?);
                test.promise(ticket.map_err(said)?);
                done()
            }
            "send" => send(test, line),
            "receive" => self.receive(test, line),
            "poll" => self.poll(test, line),
            "answer" => self.answer(test, line),
            "hang-up" => {
                let at = self.waiting.iter().position(|(name, ..)| name == line.word(0));
                let (_, queue, id) = self.waiting.remove(at.ok_or("nobody of that name waits")?);
                test.broker.cancel_receive(queue, id);
                done()
            }
            "delete-message" => self.delete(test, line),
            "visibility" => self.change(test, line),
            "give-back" => {
                let receipts: Result<Vec<_>, _> =
                    line.words.iter().map(|word| self.receipt(word)).collect();
                test.broker.undo_receives(test.now, &receipts?);
                done()
            }
            "backlog" => backlog(test, line),
            "purge-all" => {
                let id = queue(test, line)?;
                let purged = test.broker.purge_queue_by_id(test.now, id).map_err(said)?;
                test.promise(purged.ticket);
                done()
            }
            "drop-queue" => {
                let id = queue(test, line)?;
                let ticket = test.broker.delete_queue_by_id(test.now, id).map_err(said)?;
                test.promise(ticket);
                done()
            }
            _ => self.moves(test, line),
        }
    }

    fn moves(&mut self, test: &mut BrokerTest, line: &Line<'_>) -> Outcome {
        let now = test.now;
        match line.command {
            "move" => {
                let source = queue(test, line)?;
                let to = match line.word(1) {
                    "" => None,
                    name => Some(test.broker.queue_id("/", name).ok_or("no such queue")?),
                };
                let rate = number(line, "rate")?.map(|rate| rate as u32);
                let (task, ticket) = test.broker.start_move(now, source, to, rate).map_err(said)?;
                assert_eq!(task.to_string().parse(), Ok(task));
                self.tasks.push(task);
                test.promise(ticket);
                done()
            }
            "cancel-move" => {
                let task = *self.tasks.last().ok_or("no task")?;
                Ok(test.broker.cancel_move(task).map_err(said)?.0.to_string())
            }
            _ => {
                let tasks = test.broker.move_tasks(queue(test, line)?);
                let said = tasks.iter().map(|task| {
                    let state = match task.progress.state {
                        MoveTaskState::Running => "running".to_owned(),
                        MoveTaskState::Completed => "completed".to_owned(),
                        MoveTaskState::Cancelled => "cancelled".to_owned(),
                        MoveTaskState::Failed(failure) => match &task.destination {
                            Some((_, name)) => format!("failed to {name}: {failure}"),
                            None => format!("failed: {failure}"),
                        },
                    };
                    format!("{}/{} {state}", task.progress.moved, task.progress.to_move)
                });
                let said = said.collect::<Vec<_>>().join(", ");
                Ok(if said.is_empty() { String::from("none") } else { said })
            }
        }
    }

    fn request(line: &Line<'_>, wait_ms: u64) -> Result<Receive, String> {
        Ok(Receive {
            max: number(line, "max")?.unwrap_or(1) as usize,
            visibility_timeout_ms: number(line, "timeout")?.unwrap_or(30_000),
            wait_ms,
            attempt: number(line, "attempt")?,
        })
    }

    /// Receives, and waits for nobody but the disk.
    fn receive(&mut self, test: &mut BrokerTest, line: &Line<'_>) -> Outcome {
        let id = queue(test, line)?;
        let request = Self::request(line, 0)?;
        let receive = test.broker.receive(test.now, id, request).map_err(said)?;
        test.settle();
        let answer = test.received.remove(&receive).ok_or("no answer")?;
        Ok(self.note(answer))
    }

    /// Waits until there is something.
    fn poll(&mut self, test: &mut BrokerTest, line: &Line<'_>) -> Outcome {
        let id = queue(test, line)?;
        let request = Self::request(line, number(line, "wait")?.unwrap_or(20_000))?;
        let receive = test.broker.receive(test.now, id, request).map_err(said)?;
        self.waiting.push((line.word(1).to_owned(), id, receive));
        done()
    }

    fn answer(&mut self, test: &mut BrokerTest, line: &Line<'_>) -> Outcome {
        let at = self.waiting.iter().position(|(name, ..)| name == line.word(0));
        let at = at.ok_or("nobody of that name waits")?;
        match test.received.remove(&self.waiting[at].2) {
            None => Ok(String::from("waits")),
            Some(answer) => {
                self.waiting.remove(at);
                Ok(self.note(answer))
            }
        }
    }

    fn note(&mut self, answer: Option<Vec<ReceivedMessage>>) -> String {
        let Some(messages) = answer else {
            return String::from("gone");
        };
        let mut names = Vec::new();
        for message in messages {
            let name = name_of(message.message.body());
            names.push(match message.receipt.receive_count {
                1 => name.clone(),
                count => format!("{name}*{count}"),
            });
            self.receipts.push((name, message.receipt));
            self.last = Some(message);
        }
        if names.is_empty() { String::from("nothing") } else { names.join(" ") }
    }

    /// Returns the newest receipt of a message, or with `a@1` that of its first reception.
    fn receipt(&self, word: &str) -> Result<Receipt, String> {
        let (name, count) = match word.split_once('@') {
            Some((name, count)) => (name, Some(count.parse::<u16>().map_err(said)?)),
            None => (word, None),
        };
        let mut receipts = self.receipts.iter().rev();
        let found = receipts.find(|(known, receipt)| {
            known == name && count.is_none_or(|count| receipt.receive_count == count)
        });
        found.map(|(_, receipt)| *receipt).ok_or_else(|| format!("no receipt of {word}"))
    }

    fn delete(&mut self, test: &mut BrokerTest, line: &Line<'_>) -> Outcome {
        let id = queue(test, line)?;
        let receipts: Result<Vec<_>, _> =
            line.words[1..].iter().map(|word| self.receipt(word)).collect();
        let (outcomes, ticket) =
            test.broker.delete_messages(test.now, id, &receipts?).map_err(said)?;
        test.promise(ticket);
        Ok(outcome(&outcomes))
    }

    fn change(&mut self, test: &mut BrokerTest, line: &Line<'_>) -> Outcome {
        let id = queue(test, line)?;
        let receipt = self.receipt(line.word(1))?;
        let timeout_ms = line.word(2).parse().map_err(said)?;
        let changes = [(receipt, timeout_ms)];
        let (outcomes, ticket) =
            test.broker.change_visibility(test.now, id, &changes).map_err(said)?;
        test.promise(ticket);
        Ok(outcome(&outcomes))
    }
}

/// Returns the first outcome that is not simply done, as text; empty if there is none.
fn outcome(outcomes: &[ReceiptOutcome]) -> String {
    let other = outcomes.iter().find(|outcome| **outcome != ReceiptOutcome::Done);
    other.map(|outcome| format!("{outcome:?}")).unwrap_or_default()
}

fn queue(test: &BrokerTest, line: &Line<'_>) -> Result<QueueId, String> {
    test.broker.queue_id("/", line.word(0)).ok_or_else(|| format!("no queue {}", line.word(0)))
}

fn number(line: &Line<'_>, option: &str) -> Result<Option<u64>, String> {
    line.option(option).map(|text| text.parse().map_err(said)).transpose()
}

fn attributes(line: &Line<'_>) -> Result<QueueAttributes, String> {
    let redrive = line.option("redrive").map(|text| {
        let (target, receives_max) = text.split_once(':').expect("-redrive=QUEUE:N");
        Redrive { target: target.into(), receives_max: receives_max.parse().expect("a number") }
    });
    let settings = QueueSettings {
        delay_ms: number(line, "delay")?.unwrap_or(0),
        retention_ms: number(line, "retention")?,
        order_hint: number(line, "hint")?.unwrap_or(1) as u16,
        redrive,
        fifo: line.has("fifo").then_some(Fifo { deduplicates_by_group: line.has("by-group") }),
        fair: false,
        durability: line.has("os").then_some(Durability::Os),
    };
    Ok(QueueAttributes { settings, ..QueueAttributes::default() })
}

fn create(test: &mut BrokerTest, line: &Line<'_>) -> Outcome {
    let attributes = attributes(line)?;
    let (_, ticket) =
        test.broker.create_queue(test.now, "/", line.word(0), attributes).map_err(said)?;
    test.promise(ticket);
    done()
}

fn send(test: &mut BrokerTest, line: &Line<'_>) -> Outcome {
    let id = queue(test, line)?;
    let mut headers = Table::new();
    for (option, header) in [("group", GROUP_HEADER), ("source", REDRIVE_SOURCE_HEADER)] {
        if let Some(text) = line.option(option) {
            headers.set(header, Value::text(text));
        }
    }
    let properties = Properties {
        delivery_mode: Some(2),
        headers: (!headers.is_empty()).then_some(headers),
        ..Properties::default()
    };
    let messages = line.words[1..].iter().map(|word| {
        let mut message_id = [0; 16];
        message_id[..word.len().min(16)].copy_from_slice(&word.as_bytes()[..word.len().min(16)]);
        Ok(Send {
            properties: properties.to_bytes(),
            body: body(word),
            delay_ms: number(line, "delay")?,
            group: line.option("group").map(Box::from),
            deduplication: line.option("dedup").map(Box::from),
            message_id,
        })
    });
    let messages: Result<Vec<_>, String> = messages.collect();
    let names = line.words[1..].to_vec();
    let (outcomes, ticket) = test.broker.send(test.now, id, messages?).map_err(said)?;
    test.promise(ticket);
    let mut answer = String::new();
    for (name, outcome) in names.iter().zip(outcomes) {
        let sent = outcome.map_err(said)?;
        let end = sent.message_id.iter().position(|byte| *byte == 0).unwrap_or(16);
        let first = String::from_utf8_lossy(&sent.message_id[..end]);
        if first != name[..name.len().min(16)] {
            answer = format!("as {first}");
        }
    }
    Ok(answer)
}

fn backlog(test: &mut BrokerTest, line: &Line<'_>) -> Outcome {
    let id = queue(test, line)?;
    let backlog = test.broker.queue_backlog(test.now, id).map_err(said)?;
    for word in &line.words[1..] {
        let (fact, wanted) = word.split_once('=').ok_or("backlog wants FACT=N")?;
        let is = match fact {
            "visible" => backlog.visible,
            "in-flight" => backlog.in_flight,
            "delayed" => backlog.delayed,
            "age" => backlog.oldest_sent_at.map_or(0, |at| test.now.since_ms(at)),
            _ => return Err(format!("no such fact: {fact}")),
        };
        check(is.to_string() == wanted, || format!("{fact} is {is}"))?;
    }
    done()
}

fn name_of(body: &[u8]) -> String {
    String::from_utf8_lossy(body).split('~').next().unwrap_or_default().to_owned()
}
