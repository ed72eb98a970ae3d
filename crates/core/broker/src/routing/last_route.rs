//! The last publish of a channel: most publishers send to one exchange with one key for a long
//! time, and then neither permission nor route has to be looked up.

use quelea_model::same_text;

use super::route_cache::Route;

/// Where the last publish went, and that it was permitted, while the epochs are what they were.
#[derive(Debug, Default)]
pub(crate) struct LastRoute {
    exchange: String,
    routing_key: String,
    router_epoch: u64,
    access_epoch: u64,
    /// `None`: nothing is remembered.
    route: Option<Route>,
}

impl LastRoute {
    /// Returns the route of the last publish if this one is alike. Its queues hold for messages without
    /// headers only; the permission holds for all.
    #[inline]
    pub(crate) fn find(
        &self,
        exchange: &str,
        routing_key: &str,
        router_epoch: u64,
        access_epoch: u64,
    ) -> Option<&Route> {
        let route = self.route.as_ref()?;
        let same = self.router_epoch == router_epoch
            && self.access_epoch == access_epoch
            && same_text(&self.routing_key, routing_key)
            && same_text(&self.exchange, exchange);
        same.then_some(route)
    }

    /// Remembers a permitted publish, in the buffers of the last one.
    pub(crate) fn remember(
        &mut self,
        exchange: &str,
        routing_key: &str,
        router_epoch: u64,
        access_epoch: u64,
        route: Route,
    ) {
        self.exchange.clear();
        self.exchange.push_str(exchange);
        self.routing_key.clear();
        self.routing_key.push_str(routing_key);
        self.router_epoch = router_epoch;
        self.access_epoch = access_epoch;
        self.route = Some(route);
    }
}
