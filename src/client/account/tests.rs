use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::client::SettingsInput;

const HOUR: u64 = 3_600;
/// Time after which a service replaces the credentials of an account.
const PERIOD: u64 = 365 * 24 * HOUR / 1_000;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn settings() -> Settings {
    Settings::new(SettingsInput::minimal("https://api.example", credentials(0))).unwrap()
}

fn credentials(period: u64) -> Credentials {
    let secret = |name: &str| Secret::new(format!("{name}-{period}"));
    Credentials { api_key: secret("key"), secret_key: secret("secret"), passphrase: secret("passphrase") }
}

/// Issues the credentials of the period that begins within a minute. Of every other one it does not say when it ends.
#[derive(Default)]
struct Rotating {
    now: AtomicU64,
    issued: AtomicU64,
}

impl CredentialSource for Rotating {
    fn issue(&self) -> BoxFuture<'static, Result<Issued, Error>> {
        self.issued.fetch_add(1, Ordering::Relaxed);
        let period = (self.now.load(Ordering::Relaxed) + 60) / PERIOD;
        let expires = period.is_multiple_of(2).then(|| at((period + 1) * PERIOD));
        Box::pin(std::future::ready(Ok(Issued { credentials: credentials(period), expires })))
    }

    fn account(&self) -> &str {
        "rotating"
    }
}

#[tokio::test]
async fn thousand_rotations_in_a_year_reject_no_request_twice() {
    let (settings, source) = (settings(), Arc::new(Rotating::default()));
    let account = Account::new(&settings, Some(source.clone())).unwrap();
    assert!(account.latest().is_none());
    let mut rejected = 0;
    for minute in 0..365 * 24 * 60 {
        let seconds = minute * 60 + 30;
        source.now.store(seconds, Ordering::Relaxed);
        let mut current = account.usable(at(seconds)).await.unwrap();
        let is_accepted = |current: &Current| {
            [seconds, seconds + 60].iter().any(|time| current.credentials == credentials(time / PERIOD))
        };
        if !is_accepted(&current) {
            // Two requests at the same time ask once.
            let other = account.renewed(Some(current.generation)).await.unwrap();
            current = account.renewed(Some(current.generation)).await.unwrap();
            assert_eq!(other.generation, current.generation);
            rejected += 1;
        }
        assert!(is_accepted(&current), "{seconds}");
        assert_eq!(account.name(&settings), "rotating");
    }
    let issued = source.issued.load(Ordering::Relaxed);
    assert!((990..1_010).contains(&issued) && (490..510).contains(&rejected), "{issued} {rejected}");
    // The latest and some before are redacted.
    let text = account.redact(b"key-999 secret-998 passphrase-995 key-3", "");
    assert_eq!(text, b"******* ********** ************** key-3");
}

#[tokio::test]
async fn credentials_that_are_still_valid_are_used_if_others_cannot_be_had() {
    struct Failing(AtomicU64);
    impl CredentialSource for Failing {
        fn issue(&self) -> BoxFuture<'static, Result<Issued, Error>> {
            let is_first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
            let issued = Issued { credentials: credentials(1), expires: Some(at(1_000)) };
            let error = || Error::config("credentials", "raised OSError");
            Box::pin(std::future::ready(if is_first { Ok(issued) } else { Err(error()) }))
        }

        fn account(&self) -> &str {
            "failing"
        }
    }
    let account = Account::new(&settings(), Some(Arc::new(Failing(AtomicU64::new(0))))).unwrap();
    for (seconds, is_usable) in [(0, true), (939, true), (960, true), (999, true), (1_000, false)] {
        assert_eq!(account.usable(at(seconds)).await.is_ok(), is_usable, "{seconds}");
    }
}
