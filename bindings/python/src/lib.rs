//! CMQ for Python: the extension module `quelea_cmq._core`. It turns the library's types into Python's,
//! and must never hold the GIL while it waits, nor take it in one of the library's threads. Start
//! reading at [`endpoint`]; what is simpler in Python stands in `quelea_cmq/`.

mod alarm;
mod bell;
mod bytes_like;
mod dest;
mod endpoint;
mod error;
mod events;
mod exit;
mod fork;
mod incoming_request;
mod key;
mod mailbox;
mod message;
mod options;
mod pending;
mod queue;
mod request;
mod wait;

use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::alarm::Alarm;
    #[pymodule_export]
    use crate::bell::Bell;
    #[pymodule_export]
    use crate::dest::Dest;
    #[pymodule_export]
    use crate::endpoint::Endpoint;
    #[pymodule_export]
    use crate::exit::_at_exit;
    #[pymodule_export]
    use crate::fork::_after_fork_in_child;
    #[pymodule_export]
    use crate::incoming_request::Request;
    #[pymodule_export]
    use crate::message::Message;
    #[pymodule_export]
    use crate::pending::Pending;
    #[pymodule_export]
    use crate::queue::Queue;
    #[pymodule_export]
    use crate::request::{Caller, Responder};

    use super::{Bound, PyAnyMethods, PyDict, PyDictMethods, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        py.import("atexit")?.call_method1("register", (module.getattr("_at_exit")?,))?;
        let in_child = PyDict::new(py);
        in_child.set_item("after_in_child", module.getattr("_after_fork_in_child")?)?;
        py.import("os")?.call_method("register_at_fork", (), Some(&in_child))?;
        Ok(())
    }
}
