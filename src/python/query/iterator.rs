//! `FeedIterator`: an iterator of Python over a feed, for `for` and `async for` alike.

use pyo3::PyClass;
use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;

use super::feed::{Feed, Polled, Source};
use crate::python::base::asyncio::{ANEXT, AsyncStep, Coroutine, coroutine};
use crate::python::base::block_on::block_on;

/// A class whose methods `feed_iterator!` declares. Threads that share one get each item once.
pub trait FeedIterator: PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync {
    type Source: Source;

    fn feed(&self) -> &Feed<Self::Source>;

    /// The next item if it was read already.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Polled<Bound<'py, PyAny>>>;

    /// The exception that ends a wait, with the position.
    fn interrupted(&self, py: Python<'_>, raised: PyErr) -> PyErr;

    fn annotate(&self, exception: &Bound<'_, PyAny>);

    fn end(&self) {
        self.feed().close();
    }
}

pub fn next<'py>(iterator: &impl FeedIterator, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
    loop {
        match iterator.take(py).map_err(|raised| iterator.interrupted(py, raised))? {
            Polled::Item(item) => return Ok(Some(item)),
            Polled::Ended | Polled::Failure(_) => return Ok(None),
            // Another thread may take what this one waited for.
            Polled::Pending => {
                let feed = iterator.feed();
                let filled = block_on(py, feed.client(), feed.fill(py)?);
                filled.map_err(|raised| iterator.interrupted(py, raised))?;
            }
        }
    }
}

pub fn next_async<I: FeedIterator>(iterator: Py<I>, py: Python<'_>) -> Coroutine {
    let annotated = iterator.clone_ref(py);
    let next = Coroutine::new(ANEXT, move |py| match iterator.get().take(py)? {
        Polled::Item(item) => Ok(AsyncStep::Done(item.unbind())),
        Polled::Ended | Polled::Failure(_) => Err(PyStopAsyncIteration::new_err(())),
        Polled::Pending => {
            let feed = iterator.get().feed();
            Ok(AsyncStep::Wait(feed.client().clone(), Box::pin(feed.fill(py)?)))
        }
    });
    next.annotating(move |exception| annotated.get().annotate(exception))
}

pub fn close_async<I: FeedIterator>(iterator: Py<I>, name: &'static str) -> Coroutine {
    coroutine(name, iterator.get().feed().client().clone(), move |_| {
        iterator.get().end();
        Ok((std::future::ready(()), |py: Python<'_>, ()| Ok(py.None())))
    })
}

/// Declares the methods of an iterator over a feed.
macro_rules! feed_iterator {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            #[classmethod]
            fn __class_getitem__(class: &Bound<'_, PyType>, item: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                crate::python::base::generic(class, item)
            }

            fn __iter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
                iterator::next(self, py)
            }

            fn __aiter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __anext__(slf: Py<Self>, py: Python<'_>) -> Coroutine {
                iterator::next_async(slf, py)
            }

            #[doc = doc!($class.close)]
            fn close(&self) {
                self.end();
            }

            #[doc = doc!($class.aclose)]
            fn aclose(slf: Py<Self>) -> Coroutine {
                iterator::close_async(slf, concat!(stringify!($class), ".aclose"))
            }
        }
    };
}

pub(super) use feed_iterator;
