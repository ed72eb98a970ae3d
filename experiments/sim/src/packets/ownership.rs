//! Which directory owns the queue: [`quelea_elastic_core::ownership`] against the models of the store and of the
//! provider. One queue, so one shard.

use std::collections::{BTreeMap, VecDeque};

use quelea_elastic_core::directory::Input;
use quelea_elastic_core::ownership::keys::Shard;
use quelea_elastic_core::ownership::meta::Change;
use quelea_elastic_core::ownership::{
    Answer, Call, Effect, Input as OwnershipInput, Ownership as Core, Request,
};
use quelea_elastic_proto::Time;

use crate::packets::context::Context;
use crate::packets::event::ProviderCall;
use crate::packets::workload::QUEUE;

/// One directory's share in the ownership of the queue.
pub(super) struct Ownership {
    core: Core,
    /// Until when what was asked may be answered.
    asked: BTreeMap<Call, Time>,
    /// What has changed since the look that is under way.
    looking: Option<(Call, Vec<Change>)>,
    /// For the directory's state machine.
    pub(super) inputs: VecDeque<Input>,
}

impl Ownership {
    /// Returns a directory's share. `incarnation` is another one for each incarnation of a machine.
    pub(super) fn new(address: String, incarnation: String, now: Time) -> Self {
        let core = Core::new(address, incarnation, now);
        Self { core, asked: BTreeMap::new(), looking: None, inputs: VecDeque::new() }
    }

    /// Returns the fence, while it believes that the queue is its own.
    pub(super) fn fence(&self) -> Option<u64> {
        self.core.fence(QUEUE).map(|fence| fence.0)
    }

    pub(super) fn deadline(&self) -> Time {
        let asked = self.asked.values().copied().chain(self.core.next_due());
        asked.fold(self.core.next_deadline(), Time::min)
    }

    /// The store notifies of changes.
    pub(super) fn changed(&mut self, cx: &mut Context<'_>, changes: Vec<Change>) {
        match &mut self.looking {
            // A watch reports what came after the look that it follows.
            Some((_, kept)) => kept.extend(changes),
            None => self.handle(cx, OwnershipInput::Changes(changes)),
        }
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, input: OwnershipInput) {
        self.core.handle(cx.now, input);
        self.carry_out(cx);
    }

    /// The store or the provider answers. Nothing happens if it is too late.
    pub(super) fn answered(&mut self, cx: &mut Context<'_>, call: Call, answer: Answer) {
        if self.asked.remove(&call).is_none() {
            return;
        }
        let looked = self.looking.take_if(|(of, _)| *of == call).map(|(_, changes)| changes);
        let changes = looked.filter(|_| matches!(answer, Answer::Listed(_)));
        self.core.answered(cx.now, call, answer);
        self.carry_out(cx);
        if let Some(changes) = changes {
            self.handle(cx, OwnershipInput::Changes(changes));
        }
    }

    /// Does what is due.
    pub(super) fn turn(&mut self, cx: &mut Context<'_>) {
        let late: Vec<Call> = self
            .asked
            .iter()
            .filter(|(_, until)| **until <= cx.now)
            .map(|(call, _)| *call)
            .collect();
        for call in late {
            self.answered(cx, call, Answer::Failed("no answer in time".to_owned()));
        }
        while self.deadline() <= cx.now {
            self.core.tick(cx.now);
            self.core.run_deferred(cx.now);
            self.carry_out(cx);
        }
    }

    fn carry_out(&mut self, cx: &mut Context<'_>) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Request { call, request, timeout_ms } => {
                    self.asked.insert(call, cx.now.plus_ms(timeout_ms));
                    if request == Request::ListAndWatch {
                        self.looking = Some((call, Vec::new()));
                    }
                    match request {
                        Request::Relays { .. } => cx.ask_provider(call.0, ProviderCall::List),
                        request => cx.ask_store(call, request),
                    }
                }
                Effect::Notify(input) => self.inputs.push_back(input),
                Effect::ShardLost { shard, owner } => {
                    if shard == Shard::of(QUEUE) {
                        self.inputs.push_back(Input::Disowned { queue: QUEUE.to_owned(), owner });
                    }
                }
                Effect::Info(_) | Effect::Warn(_) => {}
            }
        }
    }
}
