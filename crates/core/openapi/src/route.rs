//! A path with its methods.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::MethodRouter;

use crate::operation::Operation;

/// A path with what answers its methods, and what is said of them.
#[derive(Clone)]
pub struct Route<S = ()> {
    pub(crate) path: &'static str,
    methods: MethodRouter<S>,
    pub(crate) operations: Vec<(Method, Operation)>,
}

impl<S: Clone + Send + Sync + 'static> Route<S> {
    /// Returns a route of a path in axum's form, such as `/queues/{queue}`.
    #[must_use]
    pub fn at(path: &'static str) -> Self {
        Self { path, methods: MethodRouter::new(), operations: Vec::new() }
    }

    /// Returns the route's path.
    #[must_use]
    pub const fn path(&self) -> &'static str {
        self.path
    }

    /// Adds what answers GET.
    #[must_use]
    pub fn get<H: Handler<T, S>, T: 'static>(self, handler: H, operation: Operation) -> Self {
        self.with(Method::GET, operation, |methods| methods.get(handler))
    }

    /// Adds what answers PUT.
    #[must_use]
    pub fn put<H: Handler<T, S>, T: 'static>(self, handler: H, operation: Operation) -> Self {
        self.with(Method::PUT, operation, |methods| methods.put(handler))
    }

    /// Adds what answers POST.
    #[must_use]
    pub fn post<H: Handler<T, S>, T: 'static>(self, handler: H, operation: Operation) -> Self {
        self.with(Method::POST, operation, |methods| methods.post(handler))
    }

    /// Adds what answers DELETE.
    #[must_use]
    pub fn delete<H: Handler<T, S>, T: 'static>(self, handler: H, operation: Operation) -> Self {
        self.with(Method::DELETE, operation, |methods| methods.delete(handler))
    }

    fn with(
        mut self,
        method: Method,
        operation: Operation,
        add: impl FnOnce(MethodRouter<S>) -> MethodRouter<S>,
    ) -> Self {
        self.methods = add(self.methods);
        self.operations.push((method, operation));
        self
    }

    /// Returns the route with each handler wrapped or given its state.
    #[must_use]
    pub fn map<S2>(self, change: impl FnOnce(MethodRouter<S>) -> MethodRouter<S2>) -> Route<S2> {
        Route { path: self.path, methods: change(self.methods), operations: self.operations }
    }
}

/// Returns the routes, with the state that their handlers need.
pub fn with_state<S: Clone + Send + Sync + 'static>(
    routes: impl IntoIterator<Item = Route<S>>,
    state: &S,
) -> Vec<Route> {
    let with_state = |route: Route<S>| route.map(|methods| methods.with_state(state.clone()));
    routes.into_iter().map(with_state).collect()
}

/// Returns a router of all of them.
pub fn router<S: Clone + Send + Sync + 'static>(
    routes: impl IntoIterator<Item = Route<S>>,
) -> Router<S> {
    routes.into_iter().fold(Router::new(), |router, route| router.route(route.path, route.methods))
}
