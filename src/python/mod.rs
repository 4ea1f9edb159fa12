//! The extension module `chainframe._native`: Python's names for the core, and the only place that knows PyO3.

// `doc!(Class.member)` is what the stub says of it.
include!(concat!(env!("OUT_DIR"), "/docs.rs"));

mod base;
mod client;
mod query;
mod results;

use pyo3::prelude::*;

// Safe without the interpreter's lock: docs/concurrency.md says of each class why.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::process::wait_for_locks_on_fork();
    base::log::install();
    base::finalize::install(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<client::deployment::Deployment>()?;
    module.add_class::<client::client::Client>()?;
    module.add_class::<client::cache::Cache>()?;
    module.add_class::<client::rate_limit_state::RateLimitState>()?;
    module.add_class::<client::usage::Usage>()?;
    module.add_class::<query::query::Query>()?;
    module.add_class::<query::stream::Stream>()?;
    module.add_class::<query::follow::Follow>()?;
    module.add_class::<results::undo::Undo>()?;
    module.add_class::<results::page::Page>()?;
    module.add_class::<results::records::Records>()?;
    module.add_class::<results::event::Event>()?;
    module.add_class::<results::decoded_logs::DecodedLogs>()?;
    module.add_class::<results::report::Report>()?;
    module.add_class::<results::estimate::Estimate>()?;
    module.add_class::<base::hint::Hint>()?;
    module.add_class::<results::arrow::Schema>()?;
    module.add_class::<query::part_buffer::PartBuffer>()?;
    module.add_class::<results::record::Record>()?;
    results::record_classes::add_to(module)?;
    module.add_class::<client::cassette::Cassette>()?;
    module.add_class::<client::local_server::LocalService>()?;
    module.add_function(wrap_pyfunction!(base::asyncio::_set_result, module)?)?;
    module.add_function(wrap_pyfunction!(base::arguments::_package_attribute, module)?)?;
    module.add_function(wrap_pyfunction!(base::telemetry::_set_telemetry, module)?)?;
    module.add_function(wrap_pyfunction!(base::declaration::_declaration, module)?)?;
    module.add_function(wrap_pyfunction!(results::record_classes::_restore_record, module)?)?;
    module.add_function(wrap_pyfunction!(results::records::_restore_records, module)?)?;
    module.add_function(wrap_pyfunction!(results::arrow::_restore_schema, module)?)?;
    module.add_function(wrap_pyfunction!(results::page::_restore_page, module)?)?;
    module.add_function(wrap_pyfunction!(query::part_buffer::_release_memory, module)?)?;
    module.add_function(wrap_pyfunction!(base::hint::_restore_hint, module)?)?;
    module.add_function(wrap_pyfunction!(results::report::_restore_report, module)?)?;
    module.add_function(wrap_pyfunction!(client::evidence::_evidence, module)?)?;
    module.add_function(wrap_pyfunction!(client::cache::_environment_cache, module)?)?;
    module.add_function(wrap_pyfunction!(client::cache::_restore_cache, module)?)?;
    module.add_function(wrap_pyfunction!(client::rate_limit_state::_restore_rate_limit_state, module)?)?;
    module.add_function(wrap_pyfunction!(client::usage::_restore_usage, module)?)?;
    module.add_function(wrap_pyfunction!(results::estimate::_restore_estimate, module)?)?;
    module.add_function(wrap_pyfunction!(client::calls::_restore_query, module)?)?;
    module.add_function(wrap_pyfunction!(client::calls::_sent_value, module)?)?;
    module.add_function(wrap_pyfunction!(client::internal::_signature, module)?)?;
    module.add_function(wrap_pyfunction!(client::internal::_proxy, module)?)?;
    module.add_function(wrap_pyfunction!(client::calls::_resume_query, module)?)?;
    module.add_function(wrap_pyfunction!(client::shared_cassette::_environment_cassette, module)?)?;
    module.add_function(wrap_pyfunction!(client::deployment::_environment_deployment, module)?)?;
    module.add_function(wrap_pyfunction!(client::internal::_without_cassette, module)?)?;
    module.add_function(wrap_pyfunction!(client::internal::_send_recorded, module)?)?;
    module.add_function(wrap_pyfunction!(client::shared_cassette::_share_cassette, module)?)?;
    module.add_function(wrap_pyfunction!(client::shared_cassette::_name_cassette, module)?)?;
    module.add_function(wrap_pyfunction!(client::shared_cassette::_unname_cassette, module)?)?;
    module.add_function(wrap_pyfunction!(client::shared_cassette::_forget_cassette, module)?)?;
    module.add_function(wrap_pyfunction!(client::cassette::_block_network, module)?)?;
    module.add_function(wrap_pyfunction!(client::origin::_keep_origins, module)?)?;
    module.add_function(wrap_pyfunction!(client::origin::_sent_requests, module)?)?;
    module.add_function(wrap_pyfunction!(client::origin::_client_count, module)?)?;
    module.add_function(wrap_pyfunction!(client::recorded_response::_decode_response, module)?)?;
    module.add_function(wrap_pyfunction!(client::cassette::_merge_cassette, module)?)?;
    if std::env::var_os("CHAINFRAME_BLOCK_NETWORK").is_some_and(|value| !value.is_empty() && value != "0") {
        crate::cassette::block_network(true);
    }
    module.add_function(wrap_pyfunction!(client::cassette::_restore_cassette, module)?)?;
    module.add_function(wrap_pyfunction!(client::pickle::_restore_client, module)?)?;
    module.add_function(wrap_pyfunction!(client::deployment::_openapi, module)?)?;
    module.add_function(wrap_pyfunction!(client::deployment::_restore_deployment, module)?)
}
