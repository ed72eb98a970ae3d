//! From exchange, routing key and headers to queues.

use std::sync::Arc;

use quelea_model::limits::{EXCHANGE_HOPS_MAX, ROUTE_STEPS_MAX};
use quelea_model::{PropertyView, QueueId, Table};

use super::matcher::Matcher;
use super::{ExchangeKey, Router, carbon_copy};
use crate::routing::exchange::RouteError;
use crate::routing::exchange::targets::{RouteMatches, Target};
use crate::routing::route_cache::Route;

impl Router {
    /// Returns the queues for a message: through bindings between exchanges and alternate
    /// exchanges, with the keys of `CC` and `BCC`, each queue once. Allocates nothing if exchange
    /// and key were routed before in this epoch and the message's headers do not matter.
    ///
    /// # Errors
    /// [`RouteError`].
    pub(crate) fn route(
        &mut self,
        exchange: &str,
        routing_key: &str,
        properties: PropertyView<'_>,
    ) -> Result<Route, RouteError> {
        let copies = if properties.has_headers() {
            carbon_copy::keys(properties)?
        } else {
            Default::default()
        };
        if copies.is_empty()
            && let Some(route) = self.cache.get(self.epoch, exchange, routing_key)
        {
            return Ok(route.clone());
        }
        let Some(key) = self.exchange_names.get(exchange).copied() else {
            return Err(self.no_such_exchange(exchange).into());
        };
        let mut keys: Vec<&str> = Vec::with_capacity(1 + copies.len());
        keys.push(routing_key);
        keys.extend(copies.iter().map(|key| &**key));
        keys.sort_unstable();
        keys.dedup();
        let mut headers = Headers { properties, table: None };
        let queues = self.search(key, &keys, &mut headers)?;
        let route = Route { exchange: key, queues };
        if copies.is_empty() && headers.table.is_none() {
            self.cache.put(self.epoch, exchange, routing_key, route.clone());
        }
        Ok(route)
    }

    /// Goes through the graph of exchanges, level by level, each exchange once.
    fn search(
        &mut self,
        from: ExchangeKey,
        keys: &[&str],
        headers: &mut Headers<'_>,
    ) -> Result<Arc<[QueueId]>, RouteError> {
        self.search += 1;
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let mut level = vec![from];
        let mut steps = 0;
        for _ in 0..=EXCHANGE_HOPS_MAX {
            for exchange in level.drain(..) {
                let left = ROUTE_STEPS_MAX - steps;
                steps += self.visit(exchange, keys, headers, &mut found, left);
                if steps > ROUTE_STEPS_MAX {
                    self.found = found;
                    return Err(RouteError::TooManySteps { max: ROUTE_STEPS_MAX });
                }
            }
            std::mem::swap(&mut level, &mut found.exchanges);
            if level.is_empty() {
                break;
            }
        }
        found.queues.sort_unstable();
        found.queues.dedup();
        let queues = match &found.queues[..] {
            [] => self.nowhere.clone(),
            queues => Arc::from(queues),
        };
        self.found = found;
        Ok(queues)
    }

    /// Returns the steps through the bindings of an exchange, those for what it found apart: as soon as they are more than
    /// `steps_max` it gives up.
    fn visit(
        &mut self,
        key: ExchangeKey,
        keys: &[&str],
        headers: &mut Headers<'_>,
        found: &mut RouteMatches,
        steps_max: u64,
    ) -> u64 {
        let exchange = &mut self.exchanges[key.0 as usize];
        if exchange.visited == self.search {
            return 0;
        }
        exchange.visited = self.search;
        let before = (found.queues.len(), found.exchanges.len());
        let mut steps = 0;
        match &mut exchange.matcher {
            Matcher::Default => {
                let queues = keys.iter().filter_map(|key| self.queue_names.get(*key));
                found.queues.extend(queues.flat_map(|queue| queue.iter().copied()));
            }
            Matcher::Headers(matcher) => {
                steps = matcher.matches(headers.table(), found, steps_max);
            }
            matcher => {
                for key in keys {
                    steps += matcher.matches_key(key, found);
                    if steps > steps_max {
                        break;
                    }
                }
            }
        }
        self.steps += steps;
        self.steps += (found.queues.len() - before.0 + found.exchanges.len() - before.1) as u64;
        if !self.leaving.is_empty() {
            let stays = |end: Target| !self.leaving.contains_key(&end);
            let queues = found.queues.split_off(before.0).into_iter();
            found.queues.extend(queues.filter(|queue| stays(Target::Queue(*queue))));
            let exchanges = found.exchanges.split_off(before.1).into_iter();
            found.exchanges.extend(exchanges.filter(|key| stays(Target::Exchange(*key))));
        }
        let matched = before != (found.queues.len(), found.exchanges.len());
        let alternate = if matched { None } else { exchange.spec.alternate() };
        let alternate = alternate.and_then(|name| self.exchange_names.get(name));
        found.exchanges.extend(alternate);
        steps
    }
}

/// A message's headers, decoded when the first headers exchange asks for them.
struct Headers<'a> {
    properties: PropertyView<'a>,
    table: Option<Table>,
}

impl Headers<'_> {
    fn table(&mut self) -> &Table {
        let properties = self.properties;
        self.table.get_or_insert_with(|| properties.headers().unwrap_or_default())
    }
}
