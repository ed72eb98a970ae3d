//! Addresses and keys, as Python writes them.

use std::net::{IpAddr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use quelea_cmq::Key;

/// As on the command line: `quelea push HOST` means this port.
const PORT_DEFAULT: u16 = 4711;

/// Reads an address: `"host:port"`, `"host"`, or `("host", port)`.
pub(crate) fn address(given: &Bound<'_, PyAny>) -> PyResult<SocketAddr> {
    let py = given.py();
    if let Ok(text) = given.extract::<&str>() {
        let (host, port) = split_port(text)?;
        return resolve(py, host, port);
    }
    let Ok((host, port)) = given.extract::<(String, u16)>() else {
        return Err(PyTypeError::new_err("an address is 'host:port' or ('host', port)"));
    };
    resolve(py, &host, port)
}

/// Reads a key: `"host:port/mailbox"`, an address (mailbox 0), or `(address, mailbox)`.
pub(crate) fn key(given: &Bound<'_, PyAny>) -> PyResult<Key> {
    if let Ok(text) = given.extract::<&str>() {
        let (at, mailbox) = match text.split_once('/') {
            Some((at, number)) => (at, mailbox_number(text, number)?),
            None => (text, 0),
        };
        let (host, port) = split_port(at)?;
        return Ok(Key::new(resolve(given.py(), host, port)?, mailbox));
    }
    // ("host", port) and ("host:port", mailbox) look alike; a pair of text and number is an address,
    // as everywhere in Python, unless the text has a port of its own.
    if let Ok((first, mailbox)) = given.extract::<(Bound<'_, PyAny>, u64)>() {
        let is_host = first.extract::<&str>().is_ok_and(|text| explicit_port(text).is_none());
        if !is_host {
            return Ok(Key::new(address(&first)?, mailbox));
        }
    }
    Ok(Key::new(address(given)?, 0))
}

fn mailbox_number(text: &str, number: &str) -> PyResult<u64> {
    number.parse().map_err(|_| {
        PyValueError::new_err(format!("{text:?}: a mailbox is a number from 0 to {}", u64::MAX))
    })
}

fn split_port(text: &str) -> PyResult<(&str, u16)> {
    match explicit_port(text) {
        Some((host, port)) => {
            let port = port.parse().map_err(|_| {
                PyValueError::new_err(format!("{text:?}: a port is a number from 0 to 65535"))
            })?;
            Ok((host, port))
        }
        None => Ok((text.trim_start_matches('[').trim_end_matches(']'), PORT_DEFAULT)),
    }
}

/// Splits a text into host and port; returns none if it has no port, as `::1` has none.
fn explicit_port(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split_once("]:");
    }
    let (host, port) = text.split_once(':')?;
    (!port.contains(':')).then_some((host, port))
}

/// Returns a host's address: numeric ones at once, names by the system's resolver, with the GIL
/// released.
fn resolve(py: Python<'_>, host: &str, port: u16) -> PyResult<SocketAddr> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    if host.contains('%')
        && let Ok(scoped) = format!("[{host}]:{port}").parse::<SocketAddrV6>()
    {
        return Ok(SocketAddr::V6(scoped));
    }
    let found = py.detach(|| (host, port).to_socket_addrs().map(|mut all| all.next()));
    found?.ok_or_else(|| PyOSError::new_err(format!("{host:?} has no address")))
}

static ADDRESS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static KEY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Returns the address as a `quelea_cmq.Address`.
pub(crate) fn to_address<'py>(py: Python<'py>, address: SocketAddr) -> PyResult<Bound<'py, PyAny>> {
    let host = match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
        other => other.ip().to_string(),
    };
    ADDRESS.import(py, "quelea_cmq.address", "Address")?.call1((host, address.port()))
}

/// Returns the key as a `quelea_cmq.Key`.
pub(crate) fn to_key(py: Python<'_>, key: Key) -> PyResult<Bound<'_, PyAny>> {
    let address = to_address(py, key.address)?;
    KEY.import(py, "quelea_cmq.address", "Key")?.call1((address, key.mailbox.0))
}
