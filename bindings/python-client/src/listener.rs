//! A listener of one queue.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use quelea_elastic_client::{ClientId, Error, Event, ListenerControl};

use crate::fork::Owned;
use crate::message::Message;
use crate::part::Part;
use crate::runtime::awaitable;
use crate::{error, events, wait};

/// Events that one wait brings: enough to make it cheap; the library bounds and holds the rest.
const BATCH_EVENTS: usize = 256;

/// Takes messages; `quelea_client.Listener` and `quelea_client.aio.Listener` are made of it.
#[pyclass(frozen, module = "quelea_client._core")]
pub(crate) struct Listener {
    source: Owned<Arc<Source>>,
}

/// What is here, and where more comes from. Waiting brings events here; taking them is another thing, so
/// that who gives up waiting loses nothing.
struct Source {
    control: ListenerControl,
    here: Mutex<VecDeque<(u64, Event)>>,
    /// Held by the one who waits for all; the others wait for the lock, in the order in which they came.
    far: tokio::sync::Mutex<Far>,
    done: Option<Mutex<Done>>,
    /// The last message's producer, since most come in stretches.
    producer: Mutex<Option<(ClientId, Py<PyString>)>>,
}

struct Far {
    listener: quelea_elastic_client::Listener,
    messages: u64,
}

/// Messages that are acknowledged by hand: the library counts the oldest, programs name any.
#[derive(Default)]
struct Done {
    base: u64,
    done: VecDeque<bool>,
}

impl Done {
    /// Returns how many are done now that were not, from the oldest on without a hole.
    fn finish(&mut self, ordinal: u64) -> u64 {
        let Some(at) = ordinal.checked_sub(self.base).and_then(|at| usize::try_from(at).ok())
        else {
            return 0; // It was done before.
        };
        if at >= self.done.len() {
            self.done.resize(at + 1, false);
        }
        self.done[at] = true;
        let finished = self.done.iter().take_while(|done| **done).count();
        self.done.drain(..finished);
        self.base += finished as u64;
        finished as u64
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Source {
    /// Waits until something is here.
    async fn ready(&self) -> Result<(), Error> {
        if !lock(&self.here).is_empty() {
            return Ok(());
        }
        let mut far = self.far.lock().await;
        if !lock(&self.here).is_empty() {
            return Ok(());
        }
        let mut next = Some(far.listener.next().await?);
        let mut here = lock(&self.here);
        while let Some(event) = next {
            let ordinal = far.messages;
            far.messages += u64::from(matches!(event, Event::Message(_)));
            here.push_back((ordinal, event));
            let more = here.len() < BATCH_EVENTS;
            // What ended it is reported to the next one who waits.
            next = if more { far.listener.try_next().unwrap_or_default() } else { None };
        }
        Ok(())
    }

    fn to_python<'py>(
        &self,
        py: Python<'py>,
        ordinal: u64,
        event: &Event,
    ) -> PyResult<Bound<'py, PyAny>> {
        match event {
            Event::Gap(gap) => events::gap(py, gap),
            Event::Notice { code, text } => events::notice(py, *code, text),
            Event::Message(given) => {
                let mut known = lock(&self.producer);
                let name = match &*known {
                    Some((id, name)) if *id == given.producer => name.clone_ref(py),
                    _ => {
                        let name = PyString::new(py, &events::id(given.producer)).unbind();
                        *known = Some((given.producer, name.clone_ref(py)));
                        name
                    }
                };
                drop(known);
                let listener = self.control.id();
                let message = Message::copied(py, given, name, ordinal, listener)?;
                Ok(message.into_pyobject(py)?.into_any())
            }
        }
    }
}

impl Listener {
    pub(crate) fn new(listener: quelea_elastic_client::Listener, by_hand: bool) -> Self {
        let source = Source {
            control: listener.control(),
            here: Mutex::default(),
            far: tokio::sync::Mutex::new(Far { listener, messages: 0 }),
            done: by_hand.then(Mutex::default),
            producer: Mutex::default(),
        };
        Self { source: Owned::new(Arc::new(source)) }
    }

    fn control(&self, py: Python<'_>) -> PyResult<&ListenerControl> {
        Ok(&self.source.get(py)?.control)
    }
}

#[pymethods]
impl Listener {
    #[getter]
    fn queue(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.control(py)?.queue().to_owned())
    }

    #[getter]
    fn id(&self, py: Python<'_>) -> PyResult<String> {
        Ok(events::id(self.control(py)?.id()))
    }

    #[getter]
    fn trouble(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.control(py)?.last_error())
    }

    /// Takes the next message, gap or notice that is here, and returns it.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let source = self.source.get(py)?;
        let next = lock(&source.here).pop_front();
        next.map(|(ordinal, event)| source.to_python(py, ordinal, &event)).transpose()
    }

    /// Waits until something is here; False when the time is over.
    fn ready(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let source = self.source.get(py)?;
        let timeout = wait::seconds("timeout", timeout)?;
        match wait::block(py, timeout, source.ready())? {
            Some(Ok(())) => Ok(true),
            Some(Err(error)) => Err(error::client(py, error, None)),
            None => Ok(false),
        }
    }

    /// Returns an awaitable that waits as `ready` does, for an event loop.
    fn ready_later<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let source = Arc::clone(self.source.get(py)?);
        awaitable(
            py,
            async move { source.ready().await.map_err(|error| error::from_afar(error, None)) },
        )
    }

    /// Acknowledges these messages: they are done.
    fn acknowledge(&self, py: Python<'_>, messages: Vec<Py<Message>>) -> PyResult<()> {
        let source = self.source.get(py)?;
        let Some(done) = &source.done else {
            return Err(PyValueError::new_err("it was not opened with acknowledge_by_hand"));
        };
        if messages.iter().any(|message| message.get().listener != source.control.id()) {
            return Err(PyValueError::new_err("the message is of another listener"));
        }
        let mut done = lock(done);
        let finished = messages.iter().map(|message| done.finish(message.get().ordinal)).sum();
        // Within the lock: they are counted in their order.
        source.control.acknowledge(finished);
        Ok(())
    }

    fn subscribe(&self, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = prefix.py();
        let subscribed = self.control(py)?.subscribe(Part::of(prefix)?);
        subscribed.map_err(|error| error::client(py, error, None))
    }

    fn unsubscribe(&self, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = prefix.py();
        let unsubscribed = self.control(py)?.unsubscribe(Part::of(prefix)?);
        unsubscribed.map_err(|error| error::client(py, error, None))
    }

    fn stats(&self, py: Python<'_>) -> PyResult<HashMap<&'static str, u64>> {
        let stats = self.control(py)?.stats();
        Ok(HashMap::from([
            ("messages", stats.messages),
            ("duplicates", stats.duplicates),
            ("gaps", stats.gaps),
            ("moves", stats.moves),
            ("last_hold_us", stats.last_hold_us),
            ("relays_lost", stats.relays_lost),
        ]))
    }

    /// Leaves the queue.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let control = self.control(py)?;
        wait::block(py, None, control.close())?;
        Ok(())
    }

    fn close_later<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let control = self.control(py)?.clone();
        awaitable(py, async move {
            control.close().await;
            Ok(())
        })
    }
}
