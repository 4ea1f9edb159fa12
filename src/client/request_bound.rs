//! `RequestBound`: the most requests that a client may send, counted over its threads and forked children.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Error;

/// A bound, and the number of requests that count against it. A retry is a request.
#[derive(Debug)]
pub(super) struct RequestBound {
    max_requests: u64,
    sent: counter::Counter,
}

impl RequestBound {
    pub fn new(max_requests: u64) -> Result<Self, Error> {
        let sent = counter::Counter::new().map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Self { max_requests, sent })
    }

    fn left(&self) -> u64 {
        self.max_requests.saturating_sub(self.sent.get().load(Ordering::Relaxed))
    }

    /// Counts one more request, unless the bound is reached.
    fn take(&self) -> bool {
        let counted = self.sent.get().fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sent| {
            if sent < self.max_requests { Some(sent + 1) } else { None }
        });
        counted.is_ok()
    }

    fn give_back(&self) {
        self.sent.get().fetch_sub(1, Ordering::Relaxed);
    }
}

/// The bounds of a client: its own, and those of the clients that it derives from.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestBounds(Vec<Arc<RequestBound>>);

impl RequestBounds {
    #[must_use]
    pub fn and(&self, bound: Option<RequestBound>) -> Self {
        Self(self.0.iter().cloned().chain(bound.map(Arc::new)).collect())
    }

    /// Fails if fewer than `needed` requests are left.
    pub fn check(&self, needed: u64) -> Result<(), Error> {
        let Some(tightest) = self.0.iter().min_by_key(|bound| bound.left()) else { return Ok(()) };
        let left = tightest.left();
        if needed <= left { Ok(()) } else { Err(Error::Budget { max_requests: tightest.max_requests, left, needed }) }
    }

    /// Counts one request that is sent now, or fails.
    pub fn take(&self) -> Result<(), Error> {
        for (index, bound) in self.0.iter().enumerate() {
            if !bound.take() {
                self.0[..index].iter().for_each(|taken| taken.give_back());
                return Err(Error::Budget { max_requests: bound.max_requests, left: 0, needed: 1 });
            }
        }
        Ok(())
    }

    /// Requests that may still be sent, or `None` without a bound.
    pub fn left(&self) -> Option<u64> {
        self.0.iter().map(|bound| bound.left()).min()
    }
}

/// A number in memory that forked children share with their parent.
#[cfg(unix)]
mod counter {
    use super::AtomicU64;

    #[derive(Debug)]
    pub struct Counter(*mut libc::c_void);

    // SAFETY: the memory is mapped as long as the counter lives, and only its atomic is accessed.
    unsafe impl Send for Counter {}
    // SAFETY: the same.
    unsafe impl Sync for Counter {}

    const SIZE: usize = size_of::<AtomicU64>();

    impl Counter {
        pub fn new() -> std::io::Result<Self> {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_ANON;
            // SAFETY: a new mapping, which no other memory overlaps.
            let memory = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, access, flags, -1, 0) };
            if memory == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(Self(memory)) }
        }

        pub fn get(&self) -> &AtomicU64 {
            // SAFETY: the mapping begins at a page, is zero at first, and lives as long as `self`.
            unsafe { &*self.0.cast::<AtomicU64>() }
        }
    }

    impl Drop for Counter {
        fn drop(&mut self) {
            // SAFETY: the mapping of `new`. That of another process stays.
            unsafe { libc::munmap(self.0, SIZE) };
        }
    }
}

#[cfg(not(unix))]
mod counter {
    use super::AtomicU64;

    #[derive(Debug)]
    pub struct Counter(AtomicU64);

    impl Counter {
        pub fn new() -> std::io::Result<Self> {
            Ok(Self(AtomicU64::new(0)))
        }

        pub fn get(&self) -> &AtomicU64 {
            &self.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(numbers: &[u64]) -> RequestBounds {
        let own = |number: &u64| Some(RequestBound::new(*number).unwrap());
        numbers.iter().fold(RequestBounds::default(), |bounds, number| bounds.and(own(number)))
    }

    #[test]
    fn threads_together_take_exactly_the_bound() {
        let bounds = bounds(&[2_000, 1_000]);
        let taken: usize = std::thread::scope(|scope| {
            let takers: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..600).filter(|_| bounds.take().is_ok()).count())).collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!((taken, bounds.left()), (1_000, Some(0)));
    }

    #[test]
    fn refused_request_counts_against_no_bound() {
        let outer = bounds(&[3]);
        let inner = outer.and(Some(RequestBound::new(1).unwrap()));
        assert!(inner.take().is_ok());
        assert!(matches!(inner.take(), Err(Error::Budget { max_requests: 1, left: 0, needed: 1 })));
        assert_eq!((inner.left(), outer.left()), (Some(0), Some(2)));
        assert!(outer.check(2).is_ok());
        assert!(matches!(outer.check(3), Err(Error::Budget { max_requests: 3, left: 2, needed: 3 })));
        assert!(RequestBounds::default().check(u64::MAX).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn forked_child_counts_against_its_parents_bound() {
        let bounds = bounds(&[10]);
        assert!(bounds.take().is_ok());
        // SAFETY: the child only counts and ends.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let taken = (0..4).filter(|_| bounds.take().is_ok()).count();
                libc::_exit(taken as i32);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert_eq!(libc::WEXITSTATUS(status), 4);
        }
        assert_eq!(bounds.left(), Some(5));
    }
}
