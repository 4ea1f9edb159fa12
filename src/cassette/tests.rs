//! Lines, modes, and what is said of a request that is not there.

use std::path::PathBuf;

use super::*;
use bytes::Bytes;

mod rerecording;

/// A path of its own, removed when done.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("chainframe-{}-{name}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn open(&self, mode: Mode) -> Cassette {
        Cassette::open(Options::new(&self.0, mode)).unwrap()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn response(body: &str) -> Outcome {
    let body = Bytes::copy_from_slice(body.as_bytes());
    Outcome::Response(RecordedResponse { status: 200, retry_after: None, clock_skew: None, body })
}

fn request(query: &str) -> Request {
    Request::get(&format!("/blocks?{query}"))
}

fn interaction(query: &str, body: &str) -> Interaction {
    Interaction { note: None, request: request(query), outcome: response(body), is_scrubbed: false }
}

#[test]
fn interaction_round_trips_through_its_line() {
    let bodies: [&[u8]; 8] = [
        b"{\"code\":\"0\",\"data\":[\"a\nb\"]}",
        br#"{"code":0,"a":1.0,"a":0.150851832900380503,"e":2.625E-6,"n":[1e400]}"#,
        b"[]",
        b"null",
        b"",
        b"<html>\n\"bad\" gateway \\</html>",
        b"\xff\xfe\x00",
        b"{\"code\":\"0\"",
    ];
    for body in bodies {
        let response = RecordedResponse {
            status: 429,
            retry_after: Some(2.5),
            clock_skew: Some(-45),
            body: Bytes::copy_from_slice(body),
        };
        let interaction = Interaction { outcome: Outcome::Response(response), ..interaction("b=2&a=x%26y", "") };
        let line = interaction.to_line();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(Interaction::from_line(&line).unwrap(), interaction);
    }
    let failure = RecordedFailure { phase: "read".into(), timed_out: true, retryable: true };
    let interaction = Interaction { outcome: Outcome::Failure(failure), ..interaction("", "") };
    assert_eq!(Interaction::from_line(&interaction.to_line()).unwrap(), interaction);
}

#[test]
fn line_is_readable_json() {
    let body = "{\n  \"code\": \"0\",\r\n  \"data\": []\n}";
    let line = interaction("page=2&limit=50", body).to_line();
    let start = r#"{"method":"GET","path":"/blocks","params":{"limit":"50","page":"2"},"status":200,"json":{"#;
    assert!(line.starts_with(start), "{line}");
    let Ok(Interaction { outcome: Outcome::Response(RecordedResponse { body: read, .. }), .. }) =
        Interaction::from_line(&line)
    else {
        panic!("{line}");
    };
    assert_eq!(read.len(), body.len());
}

#[test]
fn requests_are_equal_in_any_order_and_encoding_of_parameters() {
    assert_eq!(request("a=1&b=x%2Cy"), request("b=x,y&a=1"));
    assert_ne!(request("a=1"), request("a=2"));
}

#[test]
fn once_records_into_a_new_file_and_then_replays_in_order() {
    let scratch = Scratch::new("once");
    let cassette = scratch.open(Mode::Once);
    assert!(cassette.can_record() && !scratch.0.exists());
    for body in ["[1]", "[2]"] {
        assert_eq!(cassette.play(&request("a=1")).unwrap(), None);
        cassette.record(&request("a=1"), response(body)).unwrap();
    }
    assert_eq!((cassette.len(), cassette.played()), (2, 0));
    let again = scratch.open(Mode::Once);
    assert!(!again.can_record());
    for body in ["[1]", "[2]"] {
        assert!(again.has_next(&request("a=1")));
        assert_eq!(again.play(&request("a=1")).unwrap(), Some(response(body)));
    }
    assert!(!again.has_next(&request("a=1")));
    assert!(again.play(&request("a=1")).unwrap_err().to_string().contains("all 2 recordings already played"));
    assert_eq!((again.len(), again.played()), (2, 2));
}

#[test]
fn new_episodes_mode_adds_and_all_mode_replaces() {
    let scratch = Scratch::new("modes");
    for query in ["a=1", "a=2", "a=1"] {
        scratch.open(Mode::NewEpisodes).record(&request(query), response("[0]")).unwrap();
    }
    let more = scratch.open(Mode::NewEpisodes);
    assert_eq!(more.play(&request("a=2")).unwrap(), Some(response("[0]")));
    assert_eq!(more.play(&request("a=2")).unwrap(), None);
    let all = scratch.open(Mode::All);
    for body in ["[7]", "[8]"] {
        assert_eq!(all.play(&request("a=1")).unwrap(), None);
        all.record(&request("a=1"), response(body)).unwrap();
    }
    drop(all);
    let replay = scratch.open(Mode::None);
    let played: Vec<_> = ["a=1", "a=1", "a=2"].iter().map(|query| replay.play(&request(query)).unwrap()).collect();
    assert_eq!(played, ["[7]", "[8]", "[0]"].map(|body| Some(response(body))));
    assert_eq!(scratch.text().lines().count(), 3);
}

#[test]
fn miss_names_the_closest_match() {
    let scratch = Scratch::new("miss");
    let miss = |query: &str| scratch.open(Mode::None).play(&Request::get(query)).unwrap_err().to_string();
    assert!(miss("/blocks?a=1").contains("does not exist"), "{}", miss("/blocks?a=1"));
    for query in ["height=1&page=1", "height=2&page=7"] {
        scratch.open(Mode::NewEpisodes).record(&request(query), response("[]")).unwrap();
    }
    for (query, said) in [
        ("/blocks?height=3&page=1", "the closest match has height=1 instead of 3"),
        ("/blocks?page=7", "the closest match has height=2 as well"),
        ("/blocks?height=2&page=7&x=1", "the closest match has no x"),
        ("/tokens", "nothing of that path; closest match: GET /blocks?height=1&page=1"),
    ] {
        assert!(miss(query).contains(said), "{}", miss(query));
    }
    assert!(miss(&format!("/blocks?height={}", "9".repeat(5_000))).len() < 1_000);
}

#[test]
fn invalid_line_is_named_by_number() {
    let scratch = Scratch::new("broken");
    for page in 0..3 {
        scratch.open(Mode::All).record(&request(&format!("page={page}")), response("[]")).unwrap();
    }
    let whole = scratch.text();
    std::fs::write(&scratch.0, &whole[..whole.len() - 5]).unwrap();
    let rejected = |mode| Cassette::open(Options::new(&scratch.0, mode)).unwrap_err().to_string();
    for mode in Mode::ALL {
        assert!(rejected(mode).contains("line 3: unexpected end of line"), "{}", rejected(mode));
    }
    // What another process records meanwhile comes on a line of its own.
    Cassette::join(Options::new(&scratch.0, Mode::Once)).record(&request("page=9"), response("[]")).unwrap();
    assert_eq!(scratch.text().lines().count(), 4);
    for (line, said) in [
        (r#"{"method":"GET","path":"/","params":{},"status":200}"#, "exactly one of json, text"),
        (
            r#"{"method":"GET","path":"/","params":{},"text":"","status":200,"x":1}"#,
            "unknown member \"x\"; expected one of note, method,",
        ),
        (r#"{"method":"GET","path":"/","params":{}}"#, "exactly one of status, error"),
        (r#"{"method":"GET","params":{}}"#, "\"path\" is missing"),
        (r#"{"method":"GET","path":5}"#, "expected a string, got integer 5, at column 24"),
        (r#"{"method":"GET","path":"/","params":[],"#, "expected an object of strings, got a list"),
        (
            r#"{"method":"GET","path":"/","params":{},"text":"","status":-1}"#,
            "expected an integer from 0 to 65535, got",
        ),
        (
            r#"{"method":"GET","path":"/","params":{},"text":"","status":99}"#,
            "status must be within 100 to 599; got 99",
        ),
        (r#"{"method" "GET"}"#, "invalid JSON: expected `:`"),
        ("[]", "not a JSON object"),
        ("nonsense", "not a JSON object"),
        ("<<<<<<< HEAD", "a conflict marker"),
    ] {
        std::fs::write(&scratch.0, format!("\n{line}\n")).unwrap();
        let rejected = rejected(Mode::None);
        assert!(rejected.contains("line 2: ") && rejected.contains(said) && !rejected.contains('\n'), "{rejected}");
    }
}

#[test]
fn concurrent_writers_append_complete_lines() {
    let scratch = Scratch::new("writers");
    let body = format!("[{:?}]", "x".repeat(20_000));
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (scratch, body) = (&scratch, &body);
            scope.spawn(move || {
                let cassette = Cassette::join(Options::new(&scratch.0, Mode::NewEpisodes));
                for page in 0..25 {
                    cassette.record(&request(&format!("writer={writer}&page={page}")), response(body)).unwrap();
                }
            });
        }
    });
    assert_eq!(scratch.open(Mode::None).len(), 100);
}

#[test]
fn writers_record_each_request_once() {
    let modes = [Mode::NewEpisodes, Mode::All];
    for mode in modes {
        let scratch = Scratch::new(&format!("shared-{}", mode.name()));
        let first = scratch.open(mode);
        let second = scratch.open(mode);
        for cassette in [&first, &second, &first] {
            for page in 0..5 {
                let _ = cassette.play(&request(&format!("page={page}"))).unwrap();
                cassette.record(&request(&format!("page={page}")), response("[]")).unwrap();
            }
        }
        drop((first, second));
        // The first one sent each request twice.
        assert_eq!(scratch.open(Mode::None).len(), 10, "{mode:?}");
    }
}

#[test]
fn repeats_play_the_last_recording() {
    let scratch = Scratch::new("repeats");
    let recording = scratch.open(Mode::Once);
    for body in ["[1]", "[2]"] {
        recording.record(&request("a=1"), response(body)).unwrap();
    }
    let options = Options { allow_playback_repeats: true, ..Options::new(&scratch.0, Mode::None) };
    let cassette = Cassette::open(options).unwrap();
    let played = [(); 4].map(|()| cassette.play(&request("a=1")).unwrap());
    assert_eq!(played, ["[1]", "[2]", "[2]", "[2]"].map(|body| Some(response(body))));
    assert_eq!((cassette.played(), cassette.len()), (2, 2));
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let scratch = Scratch::new("bom");
    scratch.open(Mode::Once).record(&request("a=1"), response("[]")).unwrap();
    std::fs::write(&scratch.0, format!("\u{feff}{}", scratch.text())).unwrap();
    assert_eq!(scratch.open(Mode::None).len(), 1);
}

#[test]
fn a_blocked_network_lets_recordings_and_this_machine_pass() {
    let scratch = Scratch::new("blocked");
    let recording = scratch.open(Mode::NewEpisodes);
    let replaying = scratch.open(Mode::None);
    let check = |cassette, is_loopback| check_network(|| request("a=1"), cassette, is_loopback);
    assert!(check(None, false).is_ok());
    block_network(true);
    let results =
        [check(None, true), check(Some(&recording), false), check(Some(&replaying), false), check(None, false)];
    block_network(false);
    assert_eq!(results.each_ref().map(Result::is_ok), [true, true, false, false]);
    assert!(results[3].as_ref().unwrap_err().to_string().contains("GET /blocks?a=1 was not sent"));
}

#[test]
fn modes_have_names() {
    for mode in Mode::ALL {
        assert_eq!(Mode::named(mode.name(), "mode").unwrap(), mode);
    }
    assert!(Mode::named("twice", "mode").unwrap_err().to_string().contains("twice"));
}

#[test]
fn text_that_was_recorded_without_scrub_is_scrubbed_or_refused() {
    let scratch = Scratch::new("scrub");
    for query in ["address=0xcafe", "a=2"] {
        scratch.open(Mode::NewEpisodes).record(&request(query), response("[\"0xcafe\"]")).unwrap();
    }
    // Not the same when it is applied twice.
    let scrub = Scrub::new(|text| Ok(text.replace("0xcafe", "0x0-0xcafe").replace("0x0-0xcafe", "0xcafe0")));
    let open = |mode| Cassette::open(Options { scrub: Some(scrub.clone()), ..Options::new(&scratch.0, mode) });
    for mode in [Mode::None, Mode::Once] {
        let refused = open(mode).unwrap_err().to_string();
        assert!(refused.contains("interactions that were recorded without scrub (2)"), "{refused}");
    }
    assert_eq!(open(Mode::NewEpisodes).unwrap().scrubbed(), 2);
    assert!(!scratch.text().contains("0xcafe\""), "{}", scratch.text());
    let replay = open(Mode::None).unwrap();
    assert_eq!(replay.play(&request("address=0xcafe")).unwrap(), Some(response("[\"0xcafe0\"]")));
    assert_eq!(replay.unplayed(), ["GET /blocks?a=2"]);
}

#[test]
fn scrub_that_breaks_json_is_named() {
    let scratch = Scratch::new("broken-scrub");
    let scrub = Some(Scrub::new(|text| Ok(text.replace('"', ""))));
    let cassette = Cassette::open(Options { scrub, ..Options::new(&scratch.0, Mode::All) }).unwrap();
    cassette.record(&request("a=1"), response("[1]")).unwrap();
    let refused = cassette.record(&request("a=2"), response("[\"x\"]")).unwrap_err().to_string();
    assert!(refused.contains("scrub made a body invalid JSON"), "{refused}");
    assert!(!refused.contains('\n') && scratch.text().lines().count() == 1);
}

#[test]
fn equal_recordings_after_a_played_one_are_not_missed() {
    let scratch = Scratch::new("repeated");
    let recorded = [("a=1", "[]"), ("a=1", "[]"), ("a=1", "[1]"), ("a=1", "[]"), ("a=2", "[]"), ("a=2", "[]")];
    let recording = scratch.open(Mode::All);
    for (query, body) in recorded {
        recording.record(&request(query), response(body)).unwrap();
    }
    let replay = scratch.open(Mode::None);
    assert_eq!(replay.unplayed().len(), 6);
    assert!(replay.play(&request("a=1")).is_ok());
    assert_eq!(replay.unplayed(), ["GET /blocks?a=1", "GET /blocks?a=2", "GET /blocks?a=2"]);
    assert!(replay.play(&request("a=2")).is_ok());
    assert_eq!(replay.unplayed(), ["GET /blocks?a=1"]);
}

#[test]
fn processes_know_what_others_have_played_and_missed() {
    let (scratch, journal) = (Scratch::new("journaled"), Scratch::new("journal"));
    for query in ["a=1", "a=2", "a=3"] {
        scratch.open(Mode::NewEpisodes).record(&request(query), response("[]")).unwrap();
    }
    std::fs::write(&journal.0, "").unwrap();
    let options = Options { journal: Some(journal.0.clone()), ..Options::new(&scratch.0, Mode::None) };
    let [own, other] = [options.clone(), options].map(|options| Cassette::open(options).unwrap());
    assert!(own.play(&request("a=1")).is_ok() && other.play(&request("a=2")).is_ok());
    let Err(Error::Miss { missed, .. }) = other.play(&request("a=9")) else { panic!("a request without a recording") };
    assert!(own.missed().is_empty());
    missed.note();
    assert_eq!(own.unplayed(), ["GET /blocks?a=3"]);
    assert_eq!(own.missed(), ["GET /blocks?a=9"]);
    assert_eq!(scratch.open(Mode::None).unplayed().len(), 3);
}
