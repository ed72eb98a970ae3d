//! The rule of one exchange, whatever its type.

use quelea_model::ExchangeName;
use quelea_model::limits::HEADERS_STEPS_MAX;

use crate::error::TopicLimit;
use crate::routing::exchange::direct::Direct;
use crate::routing::exchange::fanout::Fanout;
use crate::routing::exchange::headers::{BindingKey, Headers, HeadersPattern};
use crate::routing::exchange::targets::{RouteMatches, Target};
use crate::routing::exchange::topic::Topic;
use crate::routing::exchange::{ExchangeKind, ExchangeSpec};

/// Where a binding comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A client asks for it.
    New,
    /// It was made before: limits that are newer do not take it away.
    Stored,
}

/// A limit of an exchange that a binding would go beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatcherLimit {
    Topic(TopicLimit),
    /// Steps that the bindings of a headers exchange could take with it.
    HeadersSteps {
        needed: u64,
    },
}

/// The bindings of one exchange in the shape that its type searches.
#[derive(Debug)]
pub(super) enum Matcher {
    /// The default exchange: the router looks queues up by their names.
    Default,
    Direct(Direct),
    Fanout(Fanout),
    Topic(Box<Topic>),
    Headers(Headers),
}

impl Matcher {
    pub(super) fn new(spec: &ExchangeSpec) -> Self {
        match spec.kind {
            _ if is_default(&spec.name) => Self::Default,
            ExchangeKind::Direct => Self::Direct(Direct::default()),
            ExchangeKind::Fanout => Self::Fanout(Fanout::default()),
            ExchangeKind::Topic => Self::Topic(Box::default()),
            ExchangeKind::Headers => Self::Headers(Headers::default()),
        }
    }

    /// Adds a binding. `pattern` is given for a headers exchange, and for no other.
    ///
    /// # Errors
    /// [`MatcherLimit`] for a new binding of a topic or headers exchange; nothing has changed then.
    pub(super) fn add(
        &mut self,
        binding: BindingKey,
        key: &str,
        target: Target,
        pattern: Option<HeadersPattern>,
        origin: Origin,
    ) -> Result<(), MatcherLimit> {
        match (self, pattern) {
            (Self::Direct(direct), _) => direct.add(key, target),
            (Self::Fanout(fanout), _) => fanout.add(target),
            (Self::Topic(topic), _) if origin == Origin::New => {
                topic.add(key, target).map_err(MatcherLimit::Topic)?;
            }
            (Self::Topic(topic), _) => topic.restore(key, target),
            (Self::Headers(headers), Some(pattern)) => {
                let needed = headers.steps_max() + pattern.steps();
                if origin == Origin::New && needed > HEADERS_STEPS_MAX {
                    return Err(MatcherLimit::HeadersSteps { needed });
                }
                headers.add(binding, target, pattern);
            }
            (Self::Headers(_), None) => unreachable!("a headers binding was parsed"),
            (Self::Default, _) => unreachable!("the default exchange cannot be bound"),
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, binding: BindingKey, key: &str, target: Target) {
        match self {
            Self::Direct(direct) => direct.remove(key, target),
            Self::Fanout(fanout) => fanout.remove(target),
            Self::Topic(topic) => topic.remove(key, target),
            Self::Headers(headers) => headers.remove(binding),
            Self::Default => unreachable!("the default exchange cannot be bound"),
        }
    }

    /// Finds what a key leads to. Returns the steps beside those for what it found. Not for a headers
    /// exchange.
    pub(super) fn matches_key(&mut self, key: &str, found: &mut RouteMatches) -> u64 {
        match self {
            Self::Direct(direct) => direct.matches(key, found),
            Self::Fanout(fanout) => fanout.matches(found),
            Self::Topic(topic) => return topic.matches(key, found),
            Self::Default | Self::Headers(_) => {}
        }
        1
    }
}

fn is_default(name: &ExchangeName) -> bool {
    name.as_str().is_empty()
}
