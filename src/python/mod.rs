//! The extension module `chainframe._native`: Python's names for the core, and the only place that knows PyO3.

// `doc!(Class.member)` is what the stub says of it.
include!(concat!(env!("OUT_DIR"), "/docs.rs"));

/// Declares attributes of a class that are members of its inner value, or that its methods return.
macro_rules! getters {
    ($class:ident { $($name:ident(): $kind:ty),* $(,)? }) => {
        #[pymethods]
        impl $class {
            $(
                #[getter]
                fn $name(&self) -> $kind {
                    self.inner.$name()
                }
            )*
        }
    };
    ($class:ident { $($name:ident: $kind:ty),* $(,)? }) => {
        #[pymethods]
        impl $class {
            $(
                #[doc = doc!($class.$name)]
                #[getter]
                fn $name(&self) -> $kind {
                    self.inner.$name
                }
            )*
        }
    };
}

mod base;
mod client;
mod query;
mod results;

use pyo3::prelude::*;

/// Adds functions of the files of one folder.
macro_rules! add_functions {
    ($module:ident, $folder:ident::{$($file:ident::$function:ident),* $(,)?}) => {
        $($module.add_function(wrap_pyfunction!($folder::$file::$function, $module)?)?;)*
    };
}

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
    module.add_class::<query::follow_buffer::FollowBuffer>()?;
    module.add_class::<query::positions::Positions>()?;
    module.add_class::<results::record::Record>()?;
    results::record_classes::add_to(module)?;
    module.add_class::<client::cassette::Cassette>()?;
    module.add_class::<client::local_server::LocalService>()?;
    add_functions!(module, base::{
        arguments::_package_attribute, declaration::_declaration, future_awaiter::_set_result, hint::_restore_hint,
        telemetry::_set_telemetry,
    });
    add_functions!(module, results::{
        arrow::_restore_schema, estimate::_restore_estimate, page::_restore_page,
        record_classes::_restore_record, records::_restore_records, report::_restore_report,
    });
    add_functions!(module, query::{part_buffer::_release_memory, positions::_split_positions});
    add_functions!(module, client::{
        cache::_environment_cache, cache::_restore_cache, calls::_restore_query, calls::_resume_query,
        calls::_sent_value, cassette::_block_network, cassette::_merge_cassette, cassette::_restore_cassette,
        deployment::_environment_deployment, deployment::_openapi, deployment::_restore_deployment,
        evidence::_evidence, internal::_proxy, internal::_send_recorded, internal::_signature,
        internal::_without_cassette, origin::_client_count, origin::_keep_origins, origin::_sent_requests,
        pickle::_restore_client, rate_limit_state::_restore_rate_limit_state,
        recorded_response::_decode_response, shared_cassette::_forget_cassette,
        shared_cassette::_name_cassette, shared_cassette::_share_cassette,
        shared_cassette::_unname_cassette, usage::_restore_usage,
    });
    if std::env::var_os("CHAINFRAME_BLOCK_NETWORK").is_some_and(|value| !value.is_empty() && value != "0") {
        crate::cassette::block_network(true);
    }
    Ok(())
}
