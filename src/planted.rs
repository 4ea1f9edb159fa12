//! Known bugs of the past, which the tests of the simulation plant one at a time to show that it finds them. Without the
//! feature `planted-bugs`, none can be planted and every check is compiled out.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// `concurrency` bounds each query instead of the client.
    PermitPerQuery,
    /// The deadline includes the queue of the client's own rate limit.
    DeadlineIncludesQueue,
    /// Retries bypass the rate limiter.
    RetriesBypassRateLimit,
    /// Failed requests are retried without end.
    RetriesUnbounded,
    /// Errors that no retry can fix are retried.
    HopelessRetried,
    /// `Retry-After` is ignored.
    RetryAfterIgnored,
    /// A page with two lists is read as one.
    DoubledListAccepted,
    /// Requests are signed by the local clock although it is known to be wrong.
    SkewIgnored,
    /// A response is lost if the call that waits for it is cancelled.
    ResponseLostOnCancel,
    /// A cursor within a page starts one record too late.
    CursorOffByOne,
    /// Lists are not compared with their first page in the end. Found by the enumeration of schedules.
    FinalLookSkipped,
    /// A follower does not report a reorganization. Found by the enumeration of schedules.
    UndoDropped,
    /// A follower does not read again what was near the head. Found by the enumeration of schedules.
    UnsettledForgotten,
}

impl Bug {
    /// True if this bug is planted in this thread.
    #[cfg(not(feature = "planted-bugs"))]
    pub(crate) const fn is_planted(self) -> bool {
        false
    }

    #[cfg(feature = "planted-bugs")]
    pub(crate) fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in this thread, or removes it.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}
