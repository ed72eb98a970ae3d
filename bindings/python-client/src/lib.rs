//! The client of elastic queues for Python: the extension module `quelea_client._core`. It turns the
//! library's types into Python's, and must never hold the GIL while it waits. A wait never takes anything
//! for the program: who gives one up, by a cancelled task or Ctrl-C, loses nothing. Start reading at
//! [`client`]; what users see stands in `quelea_client/`.

mod client;
mod error;
mod events;
mod fork;
mod gate;
mod listener;
mod message;
mod part;
mod producer;
mod runtime;
mod wait;

use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::fork::_after_fork_in_child;
    #[pymodule_export]
    use crate::listener::Listener;
    #[pymodule_export]
    use crate::message::Message;
    #[pymodule_export]
    use crate::producer::Producer;
    #[pymodule_export]
    use crate::runtime::_before_exit;

    use super::{Bound, PyAnyMethods, PyDict, PyDictMethods, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let in_child = PyDict::new(py);
        in_child.set_item("after_in_child", module.getattr("_after_fork_in_child")?)?;
        py.import("os")?.call_method("register_at_fork", (), Some(&in_child))?;
        py.import("atexit")?.call_method1("register", (module.getattr("_before_exit")?,))?;
        Ok(())
    }
}
