//! Recordings that replace others, and files that are merged.

use super::*;

#[test]
fn rerecording_keeps_the_order_of_requests() {
    let scratch = Scratch::new("positions");
    for query in ["a=1", "a=2", "a=3"] {
        scratch.open(Mode::NewEpisodes).record(&request(query), response("[0]")).unwrap();
    }
    let all = scratch.open(Mode::All);
    for body in ["[1]", "[2]"] {
        all.record(&request("a=2"), response(body)).unwrap();
    }
    // Until the end the file is only appended to, and reads the same.
    assert_eq!(scratch.text().lines().count(), 5);
    let in_file = || {
        read(&scratch.0)
            .unwrap()
            .into_iter()
            .map(|interaction| (interaction.request, interaction.outcome))
            .collect::<Vec<_>>()
    };
    let expected = [("a=1", "[0]"), ("a=2", "[1]"), ("a=2", "[2]"), ("a=3", "[0]")];
    let expected = expected.map(|(query, body)| (request(query), response(body)));
    assert_eq!(in_file(), expected);
    drop(all);
    assert_eq!(scratch.text().lines().count(), 4);
    assert!(!scratch.text().contains("replaces"));
    assert_eq!(in_file(), expected);
}

fn leaving_out(name: &str) -> MatchOn {
    MatchOn { left_out: [name.to_owned()].into(), ..MatchOn::default() }
}

#[test]
fn recording_replaces_the_one_that_would_be_played_for_it() {
    let scratch = Scratch::new("left-out");
    let options = |mode| Options { match_on: leaving_out("t"), ..Options::new(&scratch.0, mode) };
    for (query, body) in [("a=1&t=1", "[1]"), ("a=1&t=2", "[2]")] {
        let cassette = Cassette::open(options(Mode::All)).unwrap();
        assert_eq!(cassette.play(&request(query)).unwrap(), None);
        cassette.record(&request(query), response(body)).unwrap();
    }
    assert_eq!(scratch.text().lines().count(), 1);
    let replayed = Cassette::open(options(Mode::None)).unwrap().play(&request("a=1&t=3")).unwrap();
    assert_eq!(replayed, Some(response("[2]")));
}

#[test]
fn rerecorded_requests_take_the_places_of_their_recordings() {
    let scratch = Scratch::new("places");
    for query in ["a=1", "a=2", "a=1", "a=3"] {
        scratch.open(Mode::NewEpisodes).record(&request(query), response("[0]")).unwrap();
    }
    let all = scratch.open(Mode::All);
    for (query, body) in [("a=1", "[1]"), ("a=2", "[2]"), ("a=1", "[3]"), ("a=3", "[4]"), ("a=1", "[5]")] {
        assert_eq!(all.play(&request(query)).unwrap(), None);
        all.record(&request(query), response(body)).unwrap();
    }
    drop(all);
    let bodies: Vec<_> = read(&scratch.0).unwrap().into_iter().map(|interaction| interaction.outcome).collect();
    assert_eq!(bodies, ["[1]", "[2]", "[3]", "[5]", "[4]"].map(response));
}

#[test]
fn merged_file_keeps_or_removes_what_the_other_does_not_have() {
    let (scratch, other) = (Scratch::new("merged"), Scratch::new("other"));
    for (file, recordings) in [(&scratch, [("a=1", "[1]"), ("a=2", "[2]")]), (&other, [("a=2", "[5]"), ("a=3", "[6]")])]
    {
        for (query, body) in recordings {
            file.open(Mode::NewEpisodes).record(&request(query), response(body)).unwrap();
        }
    }
    let merged = |mode| {
        let left = merge(&Options::new(&scratch.0, mode), &other.0, mode).unwrap();
        let bodies = read(&scratch.0).unwrap().into_iter().map(|interaction| interaction.outcome).collect::<Vec<_>>();
        (left, bodies)
    };
    let left = vec!["GET /blocks?a=1".to_owned()];
    assert_eq!(merged(Mode::NewEpisodes), (left.clone(), ["[1]", "[2]", "[6]"].map(response).to_vec()));
    assert_eq!(merged(Mode::All), (left.clone(), ["[1]", "[5]", "[6]"].map(response).to_vec()));
    assert_eq!(merged(Mode::Rewrite), (left, ["[5]", "[6]"].map(response).to_vec()));
}
