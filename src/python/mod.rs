//! The extension module `chainframe._native`: Python's names for the core, and the only place that knows PyO3.

// `doc!(Class.member)` is what the stub says of it.
include!(concat!(env!("OUT_DIR"), "/docs.rs"));

mod arguments;
mod bridge;
mod cassette;
mod classes;
mod client;
mod convert;
mod declaration;
mod deployment;
mod errors;
mod export;
mod html;
mod local;
mod logs;
mod pace;
mod page;
mod plan;
mod progress;
mod query;
mod record;
mod records;
mod report;
mod stream;

use pyo3::prelude::*;

// Safe without the interpreter's lock: docs/survival.md says of each class why.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    logs::install();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<deployment::Deployment>()?;
    module.add_class::<client::Client>()?;
    module.add_class::<pace::RateLimitState>()?;
    module.add_class::<query::Query>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<page::Page>()?;
    module.add_class::<records::Records>()?;
    module.add_class::<report::Report>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<export::Schema>()?;
    module.add_class::<record::Record>()?;
    classes::add_to(module)?;
    module.add_class::<cassette::Cassette>()?;
    module.add_class::<local::LocalService>()?;
    module.add_function(wrap_pyfunction!(declaration::_declaration, module)?)?;
    module.add_function(wrap_pyfunction!(record::_restore_record, module)?)?;
    module.add_function(wrap_pyfunction!(records::_restore_records, module)?)?;
    module.add_function(wrap_pyfunction!(export::_restore_schema, module)?)?;
    module.add_function(wrap_pyfunction!(page::_restore_page, module)?)?;
    module.add_function(wrap_pyfunction!(report::_restore_report, module)?)?;
    module.add_function(wrap_pyfunction!(query::_restore_query, module)?)?;
    module.add_function(wrap_pyfunction!(client::_signature, module)?)?;
    module.add_function(wrap_pyfunction!(query::_resume_query, module)?)?;
    module.add_function(wrap_pyfunction!(cassette::_environment_cassette, module)?)?;
    module.add_function(wrap_pyfunction!(cassette::_with_cassette, module)?)?;
    module.add_function(wrap_pyfunction!(cassette::_restore_cassette, module)?)?;
    module.add_function(wrap_pyfunction!(client::_restore_client, module)?)?;
    module.add_function(wrap_pyfunction!(deployment::_restore_deployment, module)?)
}
