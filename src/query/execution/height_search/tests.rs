use super::*;
use crate::query::execution::kept_search::KeptSearch;

/// Searches a chain given by the times of its blocks (`None` is empty), of which the list has the last `window`.
/// Returns the number of requests as well.
fn search(times: &[Option<i64>], time: i64, window: usize) -> (TimePosition, usize) {
    search_from(times, time, window, 51)
}

/// Searches as `search` does, in a list whose first page has the blocks of `listed` heights.
fn search_from(times: &[Option<i64>], time: i64, window: usize, listed: usize) -> (TimePosition, usize) {
    let head = times.iter().rposition(Option::is_some).unwrap();
    let newest = TimedBlock { height: head as i64, time: times[head].unwrap() };
    if newest.time <= time {
        return (TimePosition::At(newest.height), 1);
    }
    let known = |height: usize| Some((height as i64, times[height]?));
    let mut search = Search::new(((head + 1).saturating_sub(listed)..=head).filter_map(known).collect(), newest);
    search.retarget(time);
    let mut requests = 1;
    while let Some(step) = search.next_step() {
        requests += 1;
        assert!(requests <= times.len() + 2, "a height is fetched once");
        respond(&mut search, step, times, window);
    }
    (search.found(), requests)
}

fn respond(search: &mut Search, step: SearchStep, times: &[Option<i64>], window: usize) {
    let block = |height: usize| Some(TimedBlock { height: height as i64, time: times[height]? });
    match step {
        SearchStep::Oldest => {
            let listed = times.len().saturating_sub(window);
            search.on_oldest((listed..times.len()).find_map(block), listed == 0);
        }
        SearchStep::Block(height) => match block(height as usize) {
            Some(block) => search.on_block(block),
            None => search.on_empty(height),
        },
    }
}

fn expected(times: &[Option<i64>], time: i64) -> TimePosition {
    let first = times.iter().position(Option::is_some).unwrap() as i64;
    let last = times.iter().rposition(|block| block.is_some_and(|block| block <= time));
    last.map_or(TimePosition::Before(first), |height| TimePosition::At(height as i64))
}

/// Times of the heights of a chain, a quarter of which have no block, and the last one of them.
fn short_chain(random: &mut fastrand::Rng, max_heights: usize) -> (Vec<Option<i64>>, i64) {
    let mut now = random.i64(0..5);
    let mut times: Vec<Option<i64>> = (0..random.usize(1..max_heights))
        .map(|_| {
            now += random.i64(0..4);
            (random.u8(0..4) > 0).then_some(now)
        })
        .collect();
    times.push(Some(now));
    (times, now)
}

#[test]
fn every_time_of_small_chains_is_found() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..2_000 {
        let (times, now) = short_chain(&mut random, 12);
        for time in -1..now + 2 {
            assert_eq!(search(&times, time, usize::MAX).0, expected(&times, time), "{times:?} at {time}");
        }
    }
}

#[test]
fn later_searches_of_small_chains_use_what_is_known() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..2_000 {
        let (times, now) = short_chain(&mut random, 30);
        let newest = TimedBlock { height: times.len() as i64 - 1, time: now };
        let mut search = Search::new(BTreeMap::from([(newest.height, newest.time)]), newest);
        let mut fetched = BTreeSet::new();
        for time in (0..6).map(|_| random.i64(-1..now.max(0))) {
            search.retarget(time);
            while let Some(step) = search.next_step() {
                assert!(fetched.insert(format!("{step:?}")), "a height is fetched once");
                respond(&mut search, step, &times, usize::MAX);
            }
            assert_eq!(search.found(), expected(&times, time), "{times:?} at {time}");
        }
    }
}

/// Searches in runs of a few requests, each of which continues with what the one before has kept. Returns the position and the
/// number of runs.
fn search_in_runs(times: &[Option<i64>], time: i64, steps: usize, window: usize) -> (TimePosition, usize) {
    let newest = TimedBlock { height: times.len() as i64 - 1, time: times.last().unwrap().unwrap() };
    let mut search = Search::new(BTreeMap::from([(newest.height, newest.time)]), newest);
    let mut kept = KeptSearch::default();
    for run in 1..400 {
        search.retarget(time);
        for _ in 0..steps {
            let Some(step) = search.next_step() else { return (search.found(), run) };
            respond(&mut search, step, times, window);
        }
        let before = search.before_step();
        if search.next_step().is_none() {
            return (search.found(), run);
        }
        search.step_back(before);
        let state = kept.state(&search, None, false);
        assert!(state.is_plausible(), "{state:?}");
        let json = serde_json::to_string(&state).unwrap();
        let state: SearchState = serde_json::from_str(&json).unwrap();
        search = Search::restored(&state).unwrap();
        kept = KeptSearch::restored(&state);
    }
    panic!("{times:?} at {time} is not found by {steps} requests a run");
}

#[test]
fn runs_of_a_few_requests_find_every_time() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..500 {
        let mut now = 0;
        let times: Vec<Option<i64>> = (0..random.usize(2..5_000))
            .map(|_| {
                now += if random.u8(0..100) == 0 { 10_000 } else { random.i64(0..4) };
                Some(now)
            })
            .collect();
        let time = random.i64(0..now.max(1)).min(now - 1).max(0);
        let steps = random.usize(1..4);
        let (found, runs) = search_in_runs(&times, time, steps, usize::MAX);
        assert_eq!(found, expected(&times, time), "{times:?} at {time}");
        // At least one request in three halves the range, which has 5,000 heights at most.
        assert!(runs <= 45, "{runs} runs of {steps} requests");
    }
}

#[test]
fn search_in_runs_finds_what_one_run_finds() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..3_000 {
        let (times, now) = short_chain(&mut random, 60);
        let window = if random.bool() { usize::MAX } else { random.usize(1..30) };
        let time = random.i64(-1..now.max(0));
        if time < now {
            let steps = random.usize(1..4);
            let (found, _) = search_in_runs(&times, time, steps, window);
            let is_uncertain = matches!(found, TimePosition::BeforeSampled(_));
            assert!(is_uncertain || found == expected(&times, time), "{found:?} in {times:?} at {time}");
            assert!(window < times.len() || !is_uncertain, "{found:?} in {times:?} at {time}");
        }
    }
}

#[test]
fn gaps_in_a_chain_are_not_its_beginning() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..300 {
        let (first, mut now) = (random.usize(0..5_000), 0);
        let mut times = vec![None; first];
        times.extend((0..1_000).map(|height| {
            now += 10;
            (height == 0 || height == 999 || random.u8(0..100) < 15).then_some(now)
        }));
        let time = random.i64(0..now);
        assert_eq!(search(&times, time, usize::MAX).0, expected(&times, time), "begins at {first}, at {time}");
        let (found, _) = search(&times, time, 300);
        let is_uncertain = matches!(found, TimePosition::BeforeSampled(_));
        assert!(is_uncertain || found == expected(&times, time), "{found:?}, begins at {first}, at {time}");
    }
}

#[test]
fn chains_that_begin_high_are_found() {
    let mut times = vec![None; 100_000];
    times.extend((0..800).map(|block| Some(1_000 + block * 10)));
    for (time, found) in [
        (1_000, TimePosition::At(100_000)),
        (5_555, TimePosition::At(100_455)),
        (8_990, TimePosition::At(100_799)),
        (999, TimePosition::Before(100_000)),
    ] {
        let (result, requests) = search(&times, time, usize::MAX);
        assert_eq!(result, found, "at {time}");
        assert!(requests <= 20, "{requests} requests");
        let (result, requests) = search(&times, time, 100);
        assert!(result == found || result == TimePosition::BeforeSampled(100_000), "{result:?} at {time}");
        assert!(requests <= 80, "{requests} requests");
    }
}

/// Mean number of requests for times of a chain of a million blocks, whose first page has `listed` of them.
fn mean_requests(interval: impl Fn(&mut fastrand::Rng, usize) -> i64, listed: usize) -> f64 {
    let mut random = fastrand::Rng::with_seed(7);
    let mut now = 1_500_000_000_000;
    let mut times = Vec::new();
    for height in 0..1_000_000 {
        now += interval(&mut random, height);
        times.push(Some(now));
    }
    let mut total = 0;
    for _ in 0..300 {
        let time = random.i64(times[0].unwrap()..now);
        let (found, requests) = search_from(&times, time, usize::MAX, listed);
        assert_eq!(found, TimePosition::At(times.partition_point(|block| block.unwrap() <= time) as i64 - 1));
        assert!(requests <= 20, "{requests} requests");
        total += requests;
    }
    total as f64 / 300.0
}

#[test]
fn long_chains_take_about_six_requests() {
    for listed in [1, 50] {
        // Slots of 12 seconds, of which one in a hundred is missed.
        let requests = mean_requests(|random, _| 12_000 * if random.u8(0..100) == 0 { 2 } else { 1 }, listed);
        assert!(requests <= 5.5, "{requests} requests of a list that shows {listed} blocks");
        // Times that vary, with a mean that changes at half of the chain.
        let max_distance = |height| if height < 500_000 { 28_000 } else { 24_000 };
        let requests = mean_requests(|random, height| random.i64(1..max_distance(height)), listed);
        assert!(requests <= 7.0, "{requests} requests of a list that shows {listed} blocks");
    }
}
