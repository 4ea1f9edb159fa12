//! Damaged responses: 100,000 in every run of the tests, and as many as fit in `FUZZ_SECONDS` in `make fuzz`.
//! Whatever the bytes are, the decoder says what they hold or what is wrong with them. It does not panic, and it ends.

#![expect(clippy::disallowed_methods, reason = "it measures itself, and damages other responses each time")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chainframe::columns::{DecimalPolicy, batch, schema};
use chainframe::decode::{Decoder, Envelope, code_and_msg};
use chainframe::interface::{Deployment, ENDPOINTS};
use fastrand::Rng;

const RESPONSES: u64 = 100_000;
/// Decoding one response takes microseconds.
const STUCK: Duration = Duration::from_secs(60);

/// Fragments that mutations insert into a response.
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

struct Seed {
    name: String,
    body: Vec<u8>,
    decoder: Decoder,
}

/// Responses of every endpoint, in files named after them.
fn corpus() -> Vec<Seed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let seed = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let endpoint = ENDPOINTS.iter().find(|endpoint| name.split('-').next() == Some(endpoint.name));
        let decoder = Decoder::new(endpoint.expect("a file is named after its endpoint"), &Deployment::default());
        Seed { name, body: std::fs::read(path).unwrap(), decoder }
    };
    files.into_iter().map(seed).collect()
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

/// Decodes a response and reads the result. Returns its kind: a page, an error response, or neither.
fn digest(decoder: &Decoder, body: &[u8]) -> usize {
    let _ = code_and_msg(body);
    match decoder.decode(&Bytes::copy_from_slice(body), 4) {
        Ok(Envelope::Page(page)) => {
            for numbers in [DecimalPolicy::Decimal, DecimalPolicy::Float, DecimalPolicy::String] {
                let record = page.columns.record();
                if let Ok(batch) = batch(&page.columns, &schema(record, numbers), numbers, 0) {
                    assert_eq!(batch.num_rows(), page.columns.rows());
                }
            }
            0
        }
        Ok(Envelope::Error { code, .. }) => {
            assert!(!code.is_empty());
            1
        }
        Err(error) => {
            assert!(!error.path().is_empty() && !error.problem.is_empty());
            assert!(error.excerpt(body, <[u8]>::to_vec).chars().count() <= 81);
            2
        }
    }
}

fn run(responses: u64, until: Option<Instant>, mut dice: Rng, alive: &Sender<()>) -> [u64; 3] {
    let corpus = corpus();
    let mut outcomes = [0; 3];
    let mut number = 0;
    while until.map_or(number < responses, |until| Instant::now() < until) {
        let seed = &corpus[dice.usize(..corpus.len())];
        let mut body = seed.body.clone();
        damage(&mut body, &corpus, &mut dice);
        let outcome = catch_unwind(AssertUnwindSafe(|| digest(&seed.decoder, &body)));
        let Ok(outcome) = outcome else {
            let kept = std::env::temp_dir().join(format!("{}-{number}.json", seed.name));
            std::fs::write(&kept, &body).unwrap();
            panic!("a response crashed the decoder: fix it, and keep {} in fuzz/corpus", kept.display());
        };
        outcomes[outcome] += 1;
        number += 1;
        if number.is_multiple_of(1_000) {
            alive.send(()).unwrap();
        }
    }
    outcomes
}

#[test]
fn every_endpoint_has_valid_seeds() {
    let corpus = corpus();
    for endpoint in &ENDPOINTS {
        assert!(corpus.iter().any(|seed| seed.name == endpoint.name), "{} has no seed", endpoint.name);
    }
    for seed in &corpus {
        let sound = seed.decoder.decode(&Bytes::copy_from_slice(&seed.body), 4).is_ok();
        assert_eq!(sound, !seed.name.ends_with("-html"), "{}", seed.name);
    }
}

#[test]
fn damaged_responses_are_errors_or_pages() {
    let seconds = std::env::var("FUZZ_SECONDS").ok().map(|seconds| seconds.parse().expect("FUZZ_SECONDS is a number"));
    let until = seconds.map(|seconds: u64| Instant::now() + Duration::from_secs(seconds));
    // The same responses in every run of the tests, and others in every run of the fuzzer.
    let dice = if until.is_some() { Rng::new() } else { Rng::with_seed(20_260_131) };
    let (alive, heard) = channel();
    let worker = std::thread::spawn(move || run(RESPONSES, until, dice, &alive));
    // It hangs up when it is done.
    while match heard.recv_timeout(STUCK) {
        Ok(()) => true,
        Err(RecvTimeoutError::Disconnected) => false,
        Err(RecvTimeoutError::Timeout) => panic!("a thousand responses took longer than {STUCK:?}"),
    } {}
    let outcomes = worker.join().expect("no response breaks the decoder");
    println!("{} pages, {} error responses, {} errors", outcomes[0], outcomes[1], outcomes[2]);
    // Damage that always or never leaves a valid response would test nothing.
    assert!(outcomes.iter().all(|count| *count > 100), "{outcomes:?}");
    assert!(until.is_some() || outcomes.iter().sum::<u64>() == RESPONSES);
}
