//! The fuzz targets on damaged inputs: the same ones in every run of the tests. The decoder and the parsers neither panic
//! nor hang. `make fuzz` looks for inputs by coverage.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use chainframe::decode::Decoder;
use chainframe::interface::{Deployment, ENDPOINTS};
use checks::Outcome;
use fastrand::Rng;

#[path = "../../fuzz/checks.rs"]
mod checks;
#[cfg(feature = "events")]
#[path = "../../fuzz/event_check.rs"]
mod event_check;

/// One input takes microseconds.
const STUCK: Duration = Duration::from_secs(60);

/// Fragments that mutations insert into an input.
const TOKENS: &[&str] = &[
    "\"",
    "\\",
    "\\u",
    "\\ud800",
    "\\u0000",
    "{",
    "}",
    "[",
    "]",
    "[[[[[[[[",
    ",",
    ":",
    "null",
    "true",
    "false",
    "\"\"",
    "0",
    "-",
    "-0",
    "00",
    "1e",
    "1e999999999",
    "-1e-999999999",
    "9223372036854775808",
    "-9223372036854775809",
    "4307974.5",
    "1.",
    ".5",
    "99999999999999999999999999999999999999999999999999999999999999999999999999999",
    "\"code\":",
    "\"data\":",
    "\"msg\":",
    "\"totalPage\":",
    "\"transactionList\":",
    "\u{feff}",
    "é",
    "\u{2028}",
    "\n",
    "\0",
];

type Check = Box<dyn Fn(&[u8]) -> Outcome + Send>;

struct Seed {
    name: String,
    body: Vec<u8>,
    check: Check,
}

/// Inputs of a target, in files.
fn corpus(target: &str, check: fn(&str) -> Check) -> Vec<Seed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let seed = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Seed { body: std::fs::read(path).unwrap(), check: check(&name), name }
    };
    files.into_iter().map(seed).collect()
}

/// Responses are in files named after their endpoints.
fn responses() -> Vec<Seed> {
    corpus("response", |name| {
        let endpoint = ENDPOINTS.iter().find(|endpoint| name.split('-').next() == Some(endpoint.name));
        let decoder = Decoder::new(endpoint.expect("a file is named after its endpoint"), &Deployment::default());
        Box::new(move |body| checks::response(&decoder, body))
    })
}

fn damage(body: &mut Vec<u8>, others: &[Seed], dice: &mut Rng) {
    for _ in 0..dice.usize(1..5) {
        let at = dice.usize(..=body.len());
        let end = (at + dice.usize(..40)).min(body.len());
        match dice.u8(..8) {
            0 if at < body.len() => body[at] ^= 1 << dice.u8(..8),
            1 if at < body.len() => body[at] = dice.u8(..),
            2 => drop(body.drain(at..end)),
            3 => {
                let again = body[at..end].to_vec();
                body.splice(at..at, again);
            }
            4 => body.truncate(at),
            5 => {
                let other = &others[dice.usize(..others.len())].body;
                let from = dice.usize(..=other.len());
                let to = (from + dice.usize(..200)).min(other.len());
                body.splice(at..end, other[from..to].iter().copied());
            }
            6 => {
                let nested = [b"[".as_slice(), b"{\"a\":"][dice.usize(..2)].repeat(dice.usize(1..400));
                body.splice(at..at, nested);
            }
            _ => {
                let token = TOKENS[dice.usize(..TOKENS.len())];
                body.splice(at..end, token.bytes());
            }
        }
    }
}

/// Outcomes of damaged inputs: accepted, error responses, rejected.
fn run(target: &str, corpus: &[Seed], inputs: u64, alive: &Sender<()>) -> [u64; 3] {
    let mut dice = Rng::with_seed(20_260_131);
    let mut outcomes = [0; 3];
    for number in 0..inputs {
        let seed = &corpus[dice.usize(..corpus.len())];
        let mut body = seed.body.clone();
        damage(&mut body, corpus, &mut dice);
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| (seed.check)(&body))) else {
            let kept = std::env::temp_dir().join(format!("{}-{number}", seed.name));
            std::fs::write(&kept, &body).unwrap();
            panic!("an input failed the check: fix the code, and keep {} in fuzz/corpus/{target}", kept.display());
        };
        outcomes[outcome as usize] += 1;
        if number.is_multiple_of(1_000) {
            alive.send(()).unwrap();
        }
    }
    outcomes
}

/// Runs a target on damaged inputs, and fails if it hangs.
fn outcomes(target: &'static str, corpus: Vec<Seed>, inputs: u64) -> [u64; 3] {
    let (alive, heard) = channel();
    let worker = std::thread::spawn(move || run(target, &corpus, inputs, &alive));
    // It hangs up when it is done.
    while match heard.recv_timeout(STUCK) {
        Ok(()) => true,
        Err(RecvTimeoutError::Disconnected) => false,
        Err(RecvTimeoutError::Timeout) => panic!("a thousand inputs took longer than {STUCK:?}"),
    } {}
    let outcomes = worker.join().expect("no input fails the check");
    println!("{target}: {} accepted, {} error responses, {} rejected", outcomes[0], outcomes[1], outcomes[2]);
    outcomes
}

/// Damage to a seed that is rejected as it is would test nothing.
fn assert_accepted(target: &str, corpus: &[Seed]) {
    for seed in corpus {
        let outcome = (seed.check)(&seed.body);
        assert_eq!(
            outcome,
            Outcome::Accepted,
            "fuzz/corpus/{target}: {} is rejected as it is: bring it to the current format",
            seed.name
        );
    }
}

#[test]
fn every_endpoint_has_valid_seeds() {
    let corpus = responses();
    for endpoint in &ENDPOINTS {
        let name = endpoint.name;
        assert!(corpus.iter().any(|seed| seed.name == name), "fuzz/corpus/response/{name}.json is missing: a response");
    }
    for seed in &corpus {
        let is_valid = (seed.check)(&seed.body) != Outcome::Rejected;
        assert_eq!(is_valid, !seed.name.ends_with("-html"), "{}", seed.name);
    }
}

// Damage that always or never leaves a valid input would test nothing.

#[test]
fn damaged_responses_are_errors_or_pages() {
    let outcomes = outcomes("response", responses(), 100_000);
    assert!(outcomes.iter().all(|count| *count > 100), "{outcomes:?}");
}

#[test]
fn damaged_numbers_are_rejected_or_exact() {
    let corpus = corpus("number", |_| Box::new(checks::number));
    assert_accepted("number", &corpus);
    let [accepted, _, rejected] = outcomes("number", corpus, 20_000);
    assert!(accepted > 1_000 && rejected > 1_000, "{accepted} and {rejected}");
}

#[test]
fn damaged_cursors_are_rejected_or_resume_a_query() {
    let corpus = corpus("cursor", |_| Box::new(checks::cursor));
    assert_accepted("cursor", &corpus);
    let [accepted, _, rejected] = outcomes("cursor", corpus, 5_000);
    assert!(accepted > 0 && rejected > 1_000, "{accepted} and {rejected}");
}

#[cfg(feature = "events")]
#[test]
fn damaged_events_and_logs_are_rejected_or_decoded() {
    fn check(input: &[u8]) -> Outcome {
        if event_check::event(input) > 0 { Outcome::Accepted } else { Outcome::Rejected }
    }
    let [accepted, _, rejected] = outcomes("event", corpus("event", |_| Box::new(check)), 5_000);
    assert!(accepted > 1_000 && rejected > 100, "{accepted} and {rejected}");
}
