use super::*;

#[test]
fn clients_of_one_key_share_a_limiter() {
    let shared = |key| SharedLimiters::default().get(RateLimit::Auto, "http://127.0.0.1:1", key);
    assert!(Arc::ptr_eq(&shared("a"), &shared("a")));
    assert!(!Arc::ptr_eq(&shared("a"), &shared("b")));
}

#[tokio::test]
async fn cancelled_waits_take_no_permit() {
    let limiter = Arc::new(RateLimiter::new(RateLimit::PerSecond(0.001)));
    limiter.acquire().await;
    let next = limiter.lock().next;
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.acquire().await })
        })
        .collect();
    while limiter.state().waiting < 3 {
        tokio::task::yield_now().await;
    }
    for task in waiting {
        task.abort();
        assert!(task.await.is_err());
    }
    assert_eq!(limiter.state().waiting, 0);
    assert_eq!(limiter.lock().next, next);
}
