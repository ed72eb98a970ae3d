//! A producer of one queue.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;
use quelea_elastic_client::{Error, MessageSeq, PublishError, SessionEvent};

use crate::fork::Owned;
use crate::part::Part;
use crate::runtime::awaitable;
use crate::{error, events, wait};

/// Publishes messages; `quelea_client.Producer` and `quelea_client.aio.Producer` are made of it.
#[pyclass(frozen, module = "quelea_client._core")]
pub(crate) struct Producer {
    producer: Owned<Arc<quelea_elastic_client::Producer>>,
}

impl Producer {
    pub(crate) fn new(producer: quelea_elastic_client::Producer) -> Self {
        Self { producer: Owned::new(Arc::new(producer)) }
    }

    fn failed(&self, py: Python<'_>, error: Error) -> PyErr {
        match self.producer.get(py) {
            Ok(producer) => error::client(py, error, Some(&producer.unacknowledged())),
            Err(error) => error,
        }
    }
}

/// Returns which of the messages below `below` are not acknowledged.
fn in_doubt(producer: &quelea_elastic_client::Producer, below: MessageSeq) -> Range<MessageSeq> {
    let Range { start, end } = producer.unacknowledged();
    start.min(below)..end.min(below)
}

#[pymethods]
impl Producer {
    #[getter]
    fn queue(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.producer.get(py)?.queue().to_owned())
    }

    #[getter]
    fn id(&self, py: Python<'_>) -> PyResult<String> {
        Ok(events::id(self.producer.get(py)?.id()))
    }

    #[getter]
    fn relay(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.producer.get(py)?.relay().map(|relay| relay.0))
    }

    #[getter]
    fn trouble(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.producer.get(py)?.last_error())
    }

    /// Returns the number of the first message that is not acknowledged, and of the next one to be
    /// published.
    #[getter]
    fn unacknowledged(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let Range { start, end } = self.producer.get(py)?.unacknowledged();
        Ok((start.0, end.0))
    }

    /// Publishes a message of these parts and gives its number; waits for room if need be.
    fn publish(&self, parts: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<u64> {
        let py = parts.py();
        let producer = self.producer.get(py)?;
        let timeout = wait::seconds("timeout", timeout)?;
        let parts = Part::all(parts)?;
        // With the GIL: it takes less time than to give it away and take it again.
        let full = match producer.try_publish(&parts) {
            Ok(number) => return Ok(number.0),
            Err(full @ Error::Publish(PublishError::Full { .. })) => full,
            Err(error) => return Err(self.failed(py, error)),
        };
        match wait::block(py, timeout, producer.publish_parts(&parts))? {
            Some(Ok(number)) => Ok(number.0),
            Some(Err(error)) => Err(self.failed(py, error)),
            None => Err(self.failed(py, full)),
        }
    }

    /// Publishes as `publish` does, without waiting; returns None if there is no room now.
    fn publish_now(&self, parts: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let py = parts.py();
        match self.producer.get(py)?.try_publish(&Part::all(parts)?) {
            Ok(number) => Ok(Some(number.0)),
            Err(Error::Publish(PublishError::Full { .. })) => Ok(None),
            Err(error) => Err(self.failed(py, error)),
        }
    }

    /// Returns an awaitable with which an event loop waits until there is room for a message of so
    /// many bytes.
    fn room_later<'py>(&self, py: Python<'py>, bytes: usize) -> PyResult<Bound<'py, PyAny>> {
        let producer = Arc::clone(self.producer.get(py)?);
        awaitable(py, async move {
            let room = producer.room(bytes).await;
            room.map_err(|error| error::from_afar(error, Some(&producer.unacknowledged())))
        })
    }

    /// Waits until all below is acknowledged. Raises `NotAcknowledged` when the time is over.
    fn acknowledged(&self, py: Python<'_>, below: u64, timeout: Option<f64>) -> PyResult<()> {
        let (producer, below) = (self.producer.get(py)?, MessageSeq(below));
        let timeout = wait::seconds("timeout", timeout)?;
        match wait::block(py, timeout, producer.acknowledged_below(below))? {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.failed(py, error)),
            None => Err(error::not_acknowledged(py, &in_doubt(producer, below), timeout)),
        }
    }

    fn acknowledged_later<'py>(&self, py: Python<'py>, below: u64) -> PyResult<Bound<'py, PyAny>> {
        let producer = Arc::clone(self.producer.get(py)?);
        awaitable(py, async move {
            let done = producer.acknowledged_below(MessageSeq(below)).await;
            done.map_err(|error| error::from_afar(error, Some(&producer.unacknowledged())))
        })
    }

    /// Waits until all that was published has been written to a relay.
    fn flush(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let producer = self.producer.get(py)?;
        let timeout = wait::seconds("timeout", timeout)?;
        match wait::block(py, timeout, producer.flush())? {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.failed(py, error)),
            None => Err(error::not_acknowledged(py, &producer.unacknowledged(), timeout)),
        }
    }

    fn flush_later<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let producer = Arc::clone(self.producer.get(py)?);
        awaitable(py, async move {
            let done = producer.flush().await;
            done.map_err(|error| error::from_afar(error, Some(&producer.unacknowledged())))
        })
    }

    /// Takes what the directory and relays had to say, and returns it, oldest first.
    fn news<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let producer = self.producer.get(py)?;
        let mut news = Vec::new();
        while let Some(next) = producer.next_event() {
            match next {
                SessionEvent::Notice { code, text } => news.push(events::notice(py, code, &text)?),
                SessionEvent::Refused(error) => news.push(events::refusal(py, &error)?),
                SessionEvent::Closed => {}
            }
        }
        Ok(news)
    }

    fn stats(&self, py: Python<'_>) -> PyResult<HashMap<&'static str, u64>> {
        let stats = self.producer.get(py)?.stats();
        Ok(HashMap::from([
            ("moves", stats.moves),
            ("failovers", stats.failovers),
            ("resent", stats.resent),
            ("last_move_us", stats.last_move_us),
            ("last_pause_us", stats.last_pause_us),
        ]))
    }

    /// Waits until all is acknowledged and the queue was left. When the time is over, what is not
    /// acknowledged is given up, and `NotAcknowledged` names it.
    fn close(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let producer = self.producer.get(py)?;
        let timeout = wait::seconds("timeout", timeout)?;
        match wait::block(py, timeout, producer.close())? {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.failed(py, error)),
            None => {
                let in_doubt = producer.unacknowledged();
                producer.abandon();
                if in_doubt.is_empty() {
                    return Ok(());
                }
                Err(error::not_acknowledged(py, &in_doubt, timeout))
            }
        }
    }

    fn close_later<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let producer = Arc::clone(self.producer.get(py)?);
        awaitable(py, async move {
            let closed = producer.close().await;
            closed.map_err(|error| error::from_afar(error, Some(&producer.unacknowledged())))
        })
    }

    /// Ends at once; what is not acknowledged is given up.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.producer.get(py)?.abandon();
        Ok(())
    }
}
