//! Lines, modes, and what is said of a request that is not there.

use super::*;
use bytes::Bytes;

/// A path of its own, removed when done.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("chainframe-{}-{name}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn open(&self, mode: Mode) -> Cassette {
        Cassette::open(&self.0, mode).unwrap()
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

fn answer(body: &str) -> Outcome {
    let body = Bytes::copy_from_slice(body.as_bytes());
    Outcome::Answer(Answer { status: 200, retry_after: None, clock_ahead: None, body })
}

fn request(query: &str) -> Request {
    Request::get(&format!("/blocks?{query}"))
}

#[test]
fn a_line_holds_everything_and_reads_back_as_it_was() {
    let bodies: [&[u8]; 7] = [
        br#"{"code":0,"a":1.0,"a":0.150851832900380503,"e":2.625E-6,"n":[1e400]}"#,
        b"[]",
        b"null",
        b"",
        b"<html>\n\"bad\" gateway \\</html>",
        b"\xff\xfe\x00",
        b"{\"code\":\"0\"",
    ];
    for body in bodies {
        let answer =
            Answer { status: 429, retry_after: Some(2.5), clock_ahead: Some(-45), body: Bytes::copy_from_slice(body) };
        let interaction = Interaction { request: request("b=2&a=x%26y"), outcome: Outcome::Answer(answer) };
        let line = interaction.to_line();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(Interaction::of_line(&line).unwrap(), interaction);
    }
    let failure = Failure { phase: "read".into(), timed_out: true, retryable: true };
    let interaction = Interaction { request: request(""), outcome: Outcome::Failure(failure) };
    assert_eq!(Interaction::of_line(&interaction.to_line()).unwrap(), interaction);
}

#[test]
fn a_line_can_be_read_by_people() {
    let body = "{\n  \"code\": \"0\",\r\n  \"data\": []\n}";
    let line = Interaction { request: request("page=2&limit=50"), outcome: answer(body) }.to_line();
    let start = r#"{"method":"GET","path":"/blocks","params":{"limit":"50","page":"2"},"status":200,"json":{"#;
    assert!(line.starts_with(start), "{line}");
    let Ok(Interaction { outcome: Outcome::Answer(Answer { body: read, .. }), .. }) = Interaction::of_line(&line)
    else {
        panic!("{line}");
    };
    assert_eq!(read.len(), body.len());
}

#[test]
fn requests_are_the_same_in_any_order_and_spelling_of_parameters() {
    assert_eq!(request("a=1&b=x%2Cy"), request("b=x,y&a=1"));
    assert_ne!(request("a=1"), request("a=2"));
}

#[test]
fn once_records_into_a_new_file_and_then_replays_in_order() {
    let scratch = Scratch::new("once");
    let cassette = scratch.open(Mode::Once);
    assert!(cassette.records() && !scratch.0.exists());
    for body in ["[1]", "[2]"] {
        assert_eq!(cassette.play(&request("a=1")).unwrap(), None);
        cassette.record(&request("a=1"), answer(body)).unwrap();
    }
    assert_eq!((cassette.len(), cassette.played()), (2, 0));
    let again = scratch.open(Mode::Once);
    assert!(!again.records());
    for body in ["[1]", "[2]"] {
        assert!(again.has_next(&request("a=1")));
        assert_eq!(again.play(&request("a=1")).unwrap(), Some(answer(body)));
    }
    assert!(!again.has_next(&request("a=1")));
    assert!(again.play(&request("a=1")).unwrap_err().to_string().contains("holds 2 answers"));
    assert_eq!((again.len(), again.played()), (2, 2));
}

#[test]
fn new_episodes_adds_and_all_replaces() {
    let scratch = Scratch::new("modes");
    for query in ["a=1", "a=2", "a=1"] {
        scratch.open(Mode::NewEpisodes).record(&request(query), answer("[0]")).unwrap();
    }
    let more = scratch.open(Mode::NewEpisodes);
    assert_eq!(more.play(&request("a=2")).unwrap(), Some(answer("[0]")));
    assert_eq!(more.play(&request("a=2")).unwrap(), None);
    let all = scratch.open(Mode::All);
    for body in ["[7]", "[8]"] {
        assert_eq!(all.play(&request("a=1")).unwrap(), None);
        all.record(&request("a=1"), answer(body)).unwrap();
    }
    let replay = scratch.open(Mode::None);
    let played: Vec<_> = ["a=1", "a=1", "a=2"].iter().map(|query| replay.play(&request(query)).unwrap()).collect();
    assert_eq!(played, ["[7]", "[8]", "[0]"].map(|body| Some(answer(body))));
    assert_eq!(scratch.text().lines().count(), 3);
}

#[test]
fn a_miss_names_the_nearest() {
    let scratch = Scratch::new("miss");
    let miss = |query: &str| scratch.open(Mode::None).play(&Request::get(query)).unwrap_err().to_string();
    assert!(miss("/blocks?a=1").contains("holds nothing"), "{}", miss("/blocks?a=1"));
    for query in ["height=1&page=1", "height=2&page=7"] {
        scratch.open(Mode::NewEpisodes).record(&request(query), answer("[]")).unwrap();
    }
    for (query, said) in [
        ("/blocks?height=3&page=1", "the nearest has height=1 instead of 3;"),
        ("/blocks?page=7", "the nearest has height=2 as well;"),
        ("/blocks?height=2&page=7&x=1", "the nearest has no x;"),
        ("/tokens", "nothing of that path: the nearest is GET /blocks?height=1&page=1;"),
    ] {
        assert!(miss(query).contains(said), "{}", miss(query));
    }
    assert!(miss(&format!("/blocks?height={}", "9".repeat(5_000))).len() < 1_000);
}

#[test]
fn a_broken_line_is_named_and_spoils_no_other() {
    let scratch = Scratch::new("broken");
    for page in 0..3 {
        scratch.open(Mode::All).record(&request(&format!("page={page}")), answer("[]")).unwrap();
    }
    let whole = scratch.text();
    std::fs::write(&scratch.0, &whole[..whole.len() - 5]).unwrap();
    let refused = |mode| Cassette::open(&scratch.0, mode).unwrap_err().to_string();
    for mode in Mode::ALL {
        assert!(refused(mode).contains("line 3: it breaks off"), "{}", refused(mode));
    }
    // What another process records meanwhile comes on a line of its own.
    Cassette::join(&scratch.0, Mode::Once).record(&request("page=9"), answer("[]")).unwrap();
    assert_eq!(scratch.text().lines().count(), 4);
    for (line, said) in [
        (r#"{"method":"GET","path":"/","params":{},"status":200}"#, "one of json, text"),
        (
            r#"{"method":"GET","path":"/","params":{},"text":"","status":200,"x":1}"#,
            "has \"x\", which is none of method,",
        ),
        (r#"{"method":"GET","path":"/","params":{}}"#, "either a status or an error"),
        (r#"{"method":"GET","params":{}}"#, "it has no \"path\""),
        (r#"{"method":"GET","path":5}"#, "it has integer 5 in place of a text, at column 24"),
        (r#"{"method":"GET","path":"/","params":[],"#, "it has a list in place of an object of texts"),
        (
            r#"{"method":"GET","path":"/","params":{},"text":"","status":-1}"#,
            "in place of a whole number from 0 to 65535",
        ),
        (r#"{"method":"GET","path":"/","params":{},"text":"","status":99}"#, "its status is 99, and those of HTTP go"),
        (r#"{"method" "GET"}"#, "it is not JSON: expected `:`"),
        ("[]", "it is not an object of JSON"),
        ("nonsense", "it is not an object of JSON"),
    ] {
        std::fs::write(&scratch.0, format!("\n{line}\n")).unwrap();
        let refused = refused(Mode::None);
        assert!(refused.contains("line 2: ") && refused.contains(said) && !refused.contains('\n'), "{refused}");
    }
}

#[test]
fn lines_of_several_writers_stay_whole() {
    let scratch = Scratch::new("writers");
    let body = format!("[{:?}]", "x".repeat(20_000));
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (scratch, body) = (&scratch, &body);
            scope.spawn(move || {
                let cassette = Cassette::join(&scratch.0, Mode::NewEpisodes);
                for page in 0..25 {
                    cassette.record(&request(&format!("writer={writer}&page={page}")), answer(body)).unwrap();
                }
            });
        }
    });
    assert_eq!(scratch.open(Mode::None).len(), 100);
}

#[test]
fn modes_have_names() {
    for mode in Mode::ALL {
        assert_eq!(Mode::named(mode.name(), "mode").unwrap(), mode);
    }
    assert!(Mode::named("twice", "mode").unwrap_err().to_string().contains("twice"));
}
