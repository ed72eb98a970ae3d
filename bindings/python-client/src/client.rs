//! From directories' addresses to producers and listeners.

use std::time::Duration;

use pyo3::prelude::*;
use quelea_elastic_client::{Named as _, Options, SlowPolicy, UnknownName};

use crate::fork::Owned;
use crate::listener::Listener;
use crate::part::Part;
use crate::producer::Producer;
use crate::runtime::awaitable;
use crate::{error, wait};

/// As long as any program runs, a century; a clock overflows when much more is added to it.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Knows a site's directories; `quelea_client.Client` and `quelea_client.aio.Client` are made of it.
#[pyclass(frozen, module = "quelea_client._core")]
pub(crate) struct Client {
    directories: Vec<String>,
    options: Options,
    made_here: Owned<()>,
}

impl Client {
    /// Returns the library's client, made with the options of one producer or listener.
    fn with(&self, py: Python<'_>, options: Options) -> PyResult<quelea_elastic_client::Client> {
        self.made_here.get(py)?;
        quelea_elastic_client::Client::connect(self.directories.clone(), options)
            .map_err(|error| error::client(py, error, None))
    }

    fn for_producer(
        &self,
        py: Python<'_>,
        window_bytes: i128,
        expected_bytes_per_s: i128,
    ) -> PyResult<quelea_elastic_client::Client> {
        let options = Options {
            window_bytes: whole(py, "window_bytes", window_bytes)?,
            expected_bytes_per_s: whole(py, "expected_bytes_per_s", expected_bytes_per_s)?,
            ..self.options.clone()
        };
        self.with(py, options)
    }

    fn for_listener(
        &self,
        py: Python<'_>,
        slow: Option<&str>,
        by_hand: bool,
    ) -> PyResult<quelea_elastic_client::Client> {
        let slow = slow.map(|name| slow_policy(py, name)).transpose()?;
        let options = Options { slow, acknowledge_by_hand: by_hand, ..self.options.clone() };
        self.with(py, options)
    }
}

#[pymethods]
impl Client {
    #[new]
    fn new(
        py: Python<'_>,
        directories: Vec<String>,
        name: String,
        key: &Bound<'_, PyAny>,
        open_timeout: f64,
    ) -> PyResult<Self> {
        let open_timeout = wait::seconds("open_timeout", Some(open_timeout))?;
        let key = Part::of(key)?;
        let options = Options {
            name,
            key: key.as_ref().to_vec().into(),
            open_timeout: open_timeout.unwrap_or(FOR_EVER),
            ..Options::default()
        };
        let client = Self { directories, options: options.clone(), made_here: Owned::new(()) };
        client.with(py, options)?;
        Ok(client)
    }

    /// Waits until the queue has a relay.
    fn producer(
        &self,
        py: Python<'_>,
        queue: String,
        window_bytes: i128,
        expected_bytes_per_s: i128,
    ) -> PyResult<Producer> {
        let client = self.for_producer(py, window_bytes, expected_bytes_per_s)?;
        match wait::block(py, None, client.producer(queue))? {
            Some(Ok(producer)) => Ok(Producer::new(producer)),
            Some(Err(error)) => Err(error::client(py, error, None)),
            // Without a time limit it ends only when it is done.
            None => Err(error::client(py, quelea_elastic_client::Error::Closed, None)),
        }
    }

    /// Returns an awaitable that opens what `producer` opens, for an event loop.
    fn producer_later<'py>(
        &self,
        py: Python<'py>,
        queue: String,
        window_bytes: i128,
        expected_bytes_per_s: i128,
    ) -> PyResult<Bound<'py, PyAny>> {
        let client = self.for_producer(py, window_bytes, expected_bytes_per_s)?;
        awaitable(py, async move {
            let opened = client.producer(queue).await;
            opened.map(Producer::new).map_err(|error| error::from_afar(error, None))
        })
    }

    /// Waits until it listens at all relays of the queue.
    fn listener(
        &self,
        py: Python<'_>,
        queue: String,
        prefixes: &Bound<'_, PyAny>,
        slow: Option<&str>,
        acknowledge_by_hand: bool,
    ) -> PyResult<Listener> {
        let client = self.for_listener(py, slow, acknowledge_by_hand)?;
        let prefixes = Part::all(prefixes)?;
        match wait::block(py, None, client.listener(queue, prefixes))? {
            Some(Ok(listener)) => Ok(Listener::new(listener, acknowledge_by_hand)),
            Some(Err(error)) => Err(error::client(py, error, None)),
            None => Err(error::client(py, quelea_elastic_client::Error::Closed, None)),
        }
    }

    /// Returns an awaitable that opens what `listener` opens, for an event loop.
    fn listener_later<'py>(
        &self,
        py: Python<'py>,
        queue: String,
        prefixes: &Bound<'py, PyAny>,
        slow: Option<&str>,
        acknowledge_by_hand: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let client = self.for_listener(py, slow, acknowledge_by_hand)?;
        let prefixes = Part::all(prefixes)?;
        awaitable(py, async move {
            let opened = client.listener(queue, prefixes).await;
            opened
                .map(|listener| Listener::new(listener, acknowledge_by_hand))
                .map_err(|error| error::from_afar(error, None))
        })
    }
}

fn whole<T: TryFrom<i128>>(py: Python<'_>, field: &str, value: i128) -> PyResult<T> {
    let refuse = |_| error::configuration(py, field, &format!("{value} is no number of bytes"));
    T::try_from(value).map_err(refuse)
}

fn slow_policy(py: Python<'_>, name: &str) -> PyResult<SlowPolicy> {
    SlowPolicy::parse(name)
        .map_err(|UnknownName { field, fault }| error::configuration(py, field, &fault))
}
