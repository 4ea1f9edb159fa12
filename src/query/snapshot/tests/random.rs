//! Long lists under random changes: cost, and how often reading is given up.

use super::world::{Bounds, Choices as _, Rates, Verdict, World};

const SEEDS: u64 = 400;

#[derive(Debug, Default)]
struct Outcome {
    drift: u64,
    /// Greatest number of requests, as a multiple of the pages and four.
    worst: f64,
}

/// Reads one list for each seed; no result is wrong.
fn read_all(bounds_of: impl Fn(&mut fastrand::Rng) -> Bounds) -> Outcome {
    let mut outcome = Outcome::default();
    for seed in 0..SEEDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let bounds = bounds_of(&mut random);
        let mut world = World::new(bounds, &mut random);
        let pages = world.length().div_ceil(bounds.page_sizes.0).max(1);
        match world.read() {
            Verdict::Right => outcome.worst = outcome.worst.max(world.requests as f64 / (pages + 4) as f64),
            Verdict::Drift(_) => outcome.drift += 1,
            Verdict::Wrong(_) | Verdict::Incomplete => panic!("seed {seed}: wrong and called complete: {bounds:?}"),
        }
    }
    outcome
}

fn any(random: &mut fastrand::Rng) -> Bounds {
    let size = [5, 10, 20, 50][random.choose(4)];
    Bounds {
        counted: random.bool(),
        max_length: 400,
        page_sizes: (size, size),
        symbols: 0,
        rows: false,
        growth: (0, 0),
        losses: 0,
        reorganisations: 0,
        shallow: false,
        deaths: 0,
        concurrency: [1, 4, 8][random.choose(3)],
        window: None,
        wanted: 0,
        rates: Some(Rates { growth: random.choose(size + 1), is_steady: random.bool(), reorganisation: 0 }),
    }
}

#[test]
fn list_growing_by_up_to_a_page_per_response_takes_three_times_its_pages_at_most() {
    let outcome = read_all(any);
    assert!(outcome.drift == 0 && outcome.worst <= 3.0, "{outcome:?}");
}

#[test]
fn growth_duplicates_reorganizations_and_deaths_raise_in_one_run_of_two_hundred_at_most() {
    let outcome = read_all(|random| {
        let bounds = any(random);
        let rates = bounds.rates.map(|rates| Rates { reorganisation: [0, 200][random.choose(2)], ..rates });
        let (rows, deaths) = (random.bool(), random.choose(4));
        Bounds { rates, rows, symbols: usize::from(rows), deaths, ..bounds }
    });
    assert!(outcome.drift <= SEEDS / 200, "{outcome:?}");
}

#[test]
fn beginning_of_a_growing_list_takes_three_times_its_pages_at_most() {
    let outcome = read_all(|random| Bounds { wanted: 400, ..any(random) });
    assert!(outcome.drift == 0 && outcome.worst <= 3.0, "{outcome:?}");
}
