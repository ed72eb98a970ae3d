//! Names of queues that another store on this node may have too: before a queue of such a name is made, somebody asks
//! there, since a name is one queue. The asking takes its time and is done elsewhere; here is what is being asked, and
//! answers that nobody has used yet.

use std::any::Any;
use std::collections::VecDeque;

use quelea_model::VhostName;
use rustc_hash::FxHashMap;

/// Names that are being asked for, or whose answer waits for its use. Who comes beyond waits for its place.
const CHECKS_MAX: usize = 1_000;

/// Longer ones are no names of SQS's queues, so no other store has them.
const NAME_BYTES_MAX: usize = 80;

/// What the other store says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameVerdict {
    /// It has no queue of that name.
    Free,
    /// It has one.
    Replicated,
    /// It does not answer, for that reason.
    Unknown(String),
}

/// The name of a queue, and its virtual host.
pub type NameQuestion = (VhostName, Box<str>);

/// What is asked of another store, if there is one.
#[derive(Default)]
pub(crate) struct NameChecks {
    is_on: bool,
    checks: FxHashMap<NameQuestion, Check>,
    /// What nobody has begun to ask.
    questions: VecDeque<NameQuestion>,
}

enum Check {
    UnderWay,
    /// What was answered, and what holds the name at the other store until this is used.
    Answered(NameVerdict, #[expect(dead_code, reason = "it is dropped")] Box<dyn Any + Send>),
}

impl NameChecks {
    pub(crate) const fn turn_on(&mut self) {
        self.is_on = true;
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Returns whether another store may have a queue of that name.
    pub(crate) fn may_be_elsewhere(&self, name: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        self.is_on && (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
    }

    /// Takes the answer, which is used up; `None`: it is being asked for.
    pub(crate) fn take(&mut self, vhost: &VhostName, name: &str) -> Option<NameVerdict> {
        let question: NameQuestion = (vhost.clone(), name.into());
        match self.checks.remove(&question) {
            Some(Check::Answered(verdict, _)) => return Some(verdict),
            Some(Check::UnderWay) => {
                self.checks.insert(question, Check::UnderWay);
            }
            None if self.checks.len() < CHECKS_MAX => {
                self.checks.insert(question.clone(), Check::UnderWay);
                self.questions.push_back(question);
            }
            None => {}
        }
        None
    }

    pub(crate) fn next_question(&mut self) -> Option<NameQuestion> {
        self.questions.pop_front()
    }

    /// The other store has answered. `held` is dropped when the answer is used, or forgotten.
    pub(crate) fn answer(
        &mut self,
        question: NameQuestion,
        verdict: NameVerdict,
        held: Box<dyn Any + Send>,
    ) {
        if self.checks.contains_key(&question) {
            self.checks.insert(question, Check::Answered(verdict, held));
        }
    }

    /// Whoever asked has gone.
    pub(crate) fn forget(&mut self, question: &NameQuestion) {
        self.checks.remove(question);
    }
}
