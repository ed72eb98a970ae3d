//! A socket and everything that is pushed and popped through it.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use quelea_cmq::endpoint::Unsettled;
use quelea_cmq::multicast::Interface;
use quelea_cmq::responder::{Responder as CmqResponder, ResponderOptions};
use quelea_cmq::{Caller as CmqCaller, Endpoint as CmqEndpoint, WhenFull};

use crate::dest::Dest;
use crate::exit::{self, Leaving};
use crate::fork::Owned;
use crate::options::{self, EndpointOptions};
use crate::queue::Queue;
use crate::request::{Caller, Responder};
use crate::{error, events, key, wait};

/// One UDP socket with its destinations and mailboxes. Any thread may use it.
#[pyclass(frozen, module = "quelea_cmq", weakref)]
pub(crate) struct Endpoint {
    leaving: Owned<Arc<Leaving>>,
}

impl Endpoint {
    fn made(py: Python<'_>, given: CmqEndpoint, linger: Duration) -> Self {
        let leaving = Arc::new(Leaving::new(given, linger));
        exit::remember(py, &leaving);
        Self { leaving: Owned::new(leaving) }
    }

    /// Returns the library's endpoint, unless it was closed.
    fn open(&self, py: Python<'_>) -> PyResult<CmqEndpoint> {
        self.leaving.get(py)?.open().ok_or_else(|| error::closed(py, "endpoint"))
    }
}

#[pymethods]
impl Endpoint {
    /// Binds a socket to an address. Options by name are those of `EndpointConfig`.
    #[new]
    #[pyo3(signature = (bind, **config))]
    fn bind(bind: &Bound<'_, PyAny>, config: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let py = bind.py();
        let options = EndpointOptions::of(config)?;
        let address = key::address(bind)?;
        let endpoint = py.detach(|| CmqEndpoint::bind(address, options.config));
        let endpoint = endpoint.map_err(error::system)?;
        Ok(Self::made(py, endpoint, options.linger))
    }

    /// Shares a UDP socket that is bound already (any object with `fileno`); Python's object may be
    /// closed afterwards.
    #[classmethod]
    #[pyo3(signature = (socket, **config))]
    fn from_socket(
        _class: &Bound<'_, PyType>,
        socket: &Bound<'_, PyAny>,
        config: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = socket.py();
        let options = EndpointOptions::of(config)?;
        let number: i32 = socket.call_method0("fileno")?.extract()?;
        if number < 0 {
            return Err(PyValueError::new_err("the socket is closed"));
        }
        // SAFETY: `socket` keeps the descriptor open while it is duplicated here, with the GIL held.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()?;
        let socket = UdpSocket::from(descriptor);
        let endpoint = py.detach(|| CmqEndpoint::from_socket(socket, options.config));
        let endpoint = endpoint.map_err(error::system)?;
        Ok(Self::made(py, endpoint, options.linger))
    }

    /// Returns the socket's address, whose port the system chose if none was given.
    #[getter]
    fn address<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        key::to_address(py, self.leaving.get(py)?.address())
    }

    /// Returns whether `close` was called.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.leaving.get(py)?.open().is_none())
    }

    /// Opens a mailbox: what peers push to (this address, `mailbox`) comes out there. Options by name
    /// are those of `QueueOptions`.
    #[pyo3(signature = (mailbox=0, **options))]
    fn queue(
        &self,
        py: Python<'_>,
        mailbox: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Queue> {
        let options = options::mailbox(options)?;
        let queue = self.open(py)?.queue(mailbox, options);
        queue.map(Queue::new).map_err(|error| error::mailbox(py, error))
    }

    /// Opens all mailboxes that are not opened by themselves, as one queue; each message says which one
    /// it was pushed to.
    #[pyo3(signature = (**options))]
    fn queue_of_others(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Queue> {
        let options = options::mailbox(options)?;
        let queue = self.open(py)?.queue_of_others(options);
        queue.map(Queue::new).map_err(|error| error::mailbox(py, error))
    }

    /// Returns a handle to a destination, made anew or found. Options by name are those of
    /// `DestOptions`.
    #[pyo3(signature = (key, **options))]
    fn dest(&self, key: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Dest> {
        let py = key.py();
        let key = key::key(key)?;
        let options = options::destination(options)?;
        let waits = options.when_full == WhenFull::Block;
        let dest = self.open(py)?.dest(key, options);
        dest.map(|dest| Dest::new(dest, waits)).map_err(|error| error::destination(py, error))
    }

    /// Asks the server at a key. Options by name are those of `DestOptions`; answers come in the mode of
    /// the requests. It does not wait for room: `WouldBlock` says that too much is under way.
    #[pyo3(signature = (key, **options))]
    fn caller(
        &self,
        key: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Caller> {
        let py = key.py();
        let key = key::key(key)?;
        let mut options = options::destination(options)?;
        // A loop that waited here would not hear the answers that make room.
        options.when_full = WhenFull::Refuse;
        let caller = CmqCaller::new(&self.open(py)?, key, options);
        caller.map(Caller::new).map_err(|error| error::caller(py, error))
    }

    /// Answers the requests that are pushed to a mailbox. Options by name are those of `QueueOptions`.
    #[pyo3(signature = (mailbox=0, **options))]
    fn responder(
        &self,
        py: Python<'_>,
        mailbox: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Responder> {
        let queue = self.open(py)?.queue(mailbox, options::mailbox(options)?);
        let queue = queue.map_err(|error| error::mailbox(py, error))?;
        Ok(Responder::new(CmqResponder::new(queue, ResponderOptions::default())))
    }

    /// Sends what is pending to all destinations now.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let endpoint = self.open(py)?;
        py.detach(|| endpoint.flush());
        Ok(())
    }

    /// Returns every counter by its name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = PyDict::new(py);
        for (name, count) in self.open(py)?.stats().counters() {
            counters.set_item(name, count)?;
        }
        Ok(counters)
    }

    /// Waits for the next event and returns it; with a timeout it waits at most so many seconds,
    /// then it returns None.
    #[pyo3(signature = (timeout=None))]
    fn next_event<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let leaving = self.leaving.get(py)?;
        let endpoint = self.open(py)?;
        let timeout = wait::timeout(timeout)?;
        let event = match endpoint.try_event() {
            Some(event) => Some(Some(event)),
            None if timeout == Some(Duration::ZERO) => None,
            None => wait::until(py, timeout, |slice| match endpoint.next_event(slice) {
                Some(event) => Some(Some(event)),
                None => leaving.open().is_none().then_some(None),
            })?,
        };
        match event {
            Some(Some(event)) => events::to_python(py, event).map(Some),
            Some(None) => Err(error::closed(py, "endpoint")),
            None => Ok(None),
        }
    }

    /// Receives what is sent to a multicast group; `interface` is an IPv4 address of this host or an
    /// interface's index, or the system chooses.
    #[pyo3(signature = (group, interface=None))]
    fn join_multicast(
        &self,
        py: Python<'_>,
        group: &str,
        interface: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (group, interface) = (ip(group)?, of_interface(interface)?);
        self.open(py)?.join_multicast(group, interface).map_err(error::system)
    }

    /// Receives it no more.
    #[pyo3(signature = (group, interface=None))]
    fn leave_multicast(
        &self,
        py: Python<'_>,
        group: &str,
        interface: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (group, interface) = (ip(group)?, of_interface(interface)?);
        self.open(py)?.leave_multicast(group, interface).map_err(error::system)
    }

    /// Sets the interface by which multicasts leave.
    fn set_multicast_interface(&self, interface: &Bound<'_, PyAny>) -> PyResult<()> {
        let endpoint = self.open(interface.py())?;
        endpoint.set_multicast_interface(of_interface(Some(interface))?).map_err(error::system)
    }

    /// Sets whether sockets of this host that joined get what is sent here, as they do by default.
    fn set_multicast_loop(&self, py: Python<'_>, on: bool) -> PyResult<()> {
        self.open(py)?.set_multicast_loop(on).map_err(error::system)
    }

    /// Sets how many routers a multicast may pass, plus one; 1 by default: it stays in its network.
    fn set_multicast_ttl(&self, py: Python<'_>, ttl: u32) -> PyResult<()> {
        self.open(py)?.set_multicast_ttl(ttl).map_err(error::system)
    }

    /// Flushes, waits at most `timeout` seconds (the endpoint's `linger` if not given) until
    /// everything is sent and, in reliable modes, acknowledged, and closes: waiting pops end. Raises
    /// `NotAcknowledged` if it took longer; it is closed then too.
    #[pyo3(signature = (timeout=None))]
    fn close(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let leaving = self.leaving.get(py)?;
        let within = wait::timeout(timeout)?.unwrap_or_else(|| leaving.linger());
        match py.detach(|| leaving.close(within)) {
            Ok(()) => Ok(()),
            Err(Unsettled::TimedOut) => Err(error::not_acknowledged(py, within)),
            Err(Unsettled::Abandoned { .. }) => Err(error::abandoned(py)),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Closes. While an exception is on its way nobody waits for acknowledgements.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if kind.is_none() {
            return self.close(py, None);
        }
        let leaving = self.leaving.get(py)?;
        // The exception says more.
        let _ = py.detach(|| leaving.close(Duration::ZERO));
        Ok(())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let leaving = self.leaving.get(py)?;
        let closed = if leaving.open().is_none() { " closed" } else { "" };
        Ok(format!("<Endpoint {}{closed}>", leaving.address()))
    }
}

fn ip(text: &str) -> PyResult<IpAddr> {
    text.parse().map_err(|_| PyValueError::new_err(format!("{text:?} is not an IP address")))
}

fn of_interface(given: Option<&Bound<'_, PyAny>>) -> PyResult<Interface> {
    let Some(given) = given else { return Ok(Interface::Any) };
    if let Ok(index) = given.extract::<u32>() {
        return Ok(Interface::Index(index));
    }
    let text: &str = given.extract()?;
    text.parse::<Ipv4Addr>().map(Interface::Address).map_err(|_| {
        PyValueError::new_err(format!("{text:?} is not an IPv4 address; IPv6 takes an index"))
    })
}
