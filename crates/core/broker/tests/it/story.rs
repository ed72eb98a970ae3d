//! The small language of the stories.
//!
//! A file holds scenes, each begun by a line `== what it shows`. A line is a command, its words and
//! its `-options`; `=> text` at its end says that it fails with that text, or what it answers. After
//! each line the broker runs until nothing is left to do. `#` begins a comment.
//!
//! | command | does |
//! |---|---|
//! | `on NAME` | goes on as this client: a connection with one channel |
//! | `config KEY=N …` | before all else: a broker with these limits |
//! | `declare Q -durable -exclusive -auto-delete -passive -x-…=V` | queue.declare |
//! | `delete Q -if-unused -if-empty`, `purge Q` | |
//! | `exchange E KIND -durable -auto-delete -internal -alternate-exchange=E` | exchange.declare |
//! | `bind Q E KEY -ARG=V`, `unbind …`, `bind-exchange TO FROM KEY` | |
//! | `publish Q BODY… -exchange=E -persistent -ttl=MS -priority=N -cc=K,K -bcc=K -reply-to=K -user-id=U -mandatory` | with key `Q` |
//! | `consume Q -tag=T -no-ack -exclusive -priority=N`, `cancel T` | |
//! | `prefetch N -global`, `recover` | |
//! | `expect BODY…` | exactly these came since the last time; `BODY!` is a redelivery; none: nothing came |
//! | `expect-header NAME=V`, `expect-no-header NAME`, `expect-key K`, `expect-exchange E`, `expect-death N FACT=V …` | about the last message that was expected or got |
//! | `expect-cancelled T…`, `expect-blocked TEXT`, `expect-unblocked`, `expect-closed TEXT` | |
//! | `accepts => yes` or `=> no` | whether publishers are read from, before anything else happens |
//! | `get Q -no-ack => BODY` or `=> empty` | |
//! | `look Q BODY… -page=N -times=N` | these are ready, and stay so; looked at by so many at once |
//! | `ack BODY… -multiple`, `nack BODY… -requeue -multiple`, `reject BODY -requeue`, `ack-all`, `ack-tag N` | |
//! | `count Q ready=N unacked=N consumers=N dead-lettered=N`, `total FACT=N` | `expired`, `overflowed`, `redelivered`, `dead-lettered`: since it was made |
//! | `create Q -fifo -by-group -delay=MS -retention=MS -hint=K -redrive=Q:N -os`, `set Q …` | a queue as SQS has it |
//! | `send Q BODY… -delay=MS -group=G -dedup=N` | `=> as BODY`: taken for that one |
//! | `receive Q -max=N -timeout=MS -attempt=N => BODY…` or `=> nothing` | `BODY*2` is the second reception |
//! | `poll Q NAME -wait=MS …`, `answer NAME => BODY…` or `=> waits` or `=> gone`, `hang-up NAME` | a receive that waits |
//! | `delete-message Q BODY…`, `visibility Q BODY MS`, `give-back BODY…` | by the newest receipt, or that of reception 1: `BODY@1` |
//! | `backlog Q visible=N in-flight=N delayed=N age=MS`, `purge-all Q`, `drop-queue Q` | |
//! | `move Q TO -rate=N`, `cancel-move => N`, `moves Q => MOVED/OF STATE, …` | without `TO` to where each came from |
//! | `crash -down=MS`, `shutdown`, `power-cut SEEDS` | the last loses what was not synced |
//! | `wait MS`, `crash`, `close`, `close-channel`, `begin`, `commit`, `stop-reading`, `read` | |
//! | `disk full`, `disk failed`, `disk healthy` | |
//!
//! `BODY` may be `m{1..9}` for nine of them, and `a~500` for one of 500 bytes named `a`.

use crate::broker_test::StoreKind;
use crate::line::Line;
use crate::stage::Stage;

pub(crate) struct Story {
    pub(crate) place: String,
    lines: Vec<(usize, String)>,
}

impl Story {
    pub(crate) fn parse(file: &str, text: &str) -> Vec<Self> {
        let mut scenes: Vec<Self> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match (line.strip_prefix("== "), scenes.last_mut()) {
                (Some(title), _) => {
                    scenes.push(Self { place: format!("{file}: {title}"), lines: Vec::new() });
                }
                (None, Some(scene)) => scene.lines.push((at + 1, line.to_owned())),
                (None, None) => panic!("{file} has to begin with a scene"),
            }
        }
        scenes
    }

    /// Returns whether it orders the store about, which only the one in memory can be.
    pub(crate) fn is_for_memory(&self) -> bool {
        self.lines.iter().any(|(_, line)| line.starts_with("disk "))
    }

    /// Plays the scene; the error says which line did not come true, and why.
    pub(crate) fn play(&self, store_kind: StoreKind) -> Result<(), String> {
        let mut stage = Stage::new(store_kind);
        for (at, text) in &self.lines {
            let line = Line::parse(text);
            let result = stage.perform(&line);
            let problem = match (result, &line.answer) {
                (Ok(answer), None) if answer.is_empty() => continue,
                (Ok(answer), Some(wanted)) if answer == *wanted => continue,
                (Ok(answer), wanted) => format!("answered {answer:?}, wanted {wanted:?}"),
                (Err(error), Some(wanted)) if error.contains(wanted.as_str()) => continue,
                (Err(error), wanted) => format!("failed: {error}; wanted {wanted:?}"),
            };
            return Err(format!("{}, line {at}: {text}\n    {problem}", self.place));
        }
        Ok(())
    }
}
