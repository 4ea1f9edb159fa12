//! Lists that move under every kind of schedule, against an oracle: the list as it was when its first page was answered.

use super::{Ask, List, Purpose, Seam, Terms};
use crate::columns::ColumnsBuilder;
use crate::decode::Page;
use crate::interface::record;
use crate::message::Hint;

/// Of each kind that is tried.
const SCHEDULES: u64 = 1_000;

/// A service with one list, newest first. A record is its number; identical records have the same.
#[derive(Clone)]
struct World {
    list: Vec<u64>,
    fresh: u64,
    answers: u64,
    random: fastrand::Rng,
    play: Play,
}

/// How the list behaves.
#[derive(Clone, Copy, Debug)]
struct Play {
    seed: u64,
    length: u64,
    size: u64,
    concurrency: usize,
    counted: bool,
    pages_told: bool,
    heights: bool,
    /// Records that come with each answer, or up to so many at random.
    growth: u64,
    steady: bool,
    /// One record in so many is identical to the one before it.
    twins: u64,
    /// Records come in rows of so many identical ones.
    rows: u64,
    /// One answer in so many is followed by the loss of a record.
    loss: u64,
    /// Whether the list can be cut off above a height.
    top: bool,
    /// Whether it keeps to its own page size whatever is asked.
    stubborn: bool,
    /// Whether its heights follow each other without a gap.
    blocks: bool,
    /// After so many answers the reader dies, and another goes on from what it had given out.
    deaths: usize,
}

impl Default for Play {
    fn default() -> Self {
        Self {
            seed: 0,
            length: 95,
            size: 10,
            concurrency: 1,
            counted: false,
            pages_told: true,
            heights: true,
            growth: 0,
            steady: true,
            twins: 0,
            rows: 0,
            loss: 0,
            top: false,
            stubborn: false,
            blocks: false,
            deaths: 0,
        }
    }
}

impl World {
    fn new(play: Play) -> Self {
        let mut world =
            Self { list: Vec::new(), fresh: 0, answers: 0, random: fastrand::Rng::with_seed(play.seed), play };
        world.grow(play.length);
        if play.rows > 0 {
            // A head of its own: among identical records alone nothing tells how many there were.
            world.list[0] = play.length;
        }
        world
    }

    fn grow(&mut self, count: u64) {
        for _ in 0..count {
            let twin = self.play.twins > 0 && self.random.u64(..self.play.twins) == 0 && !self.list.is_empty();
            self.fresh += u64::from(!twin);
            let record = if twin { self.list[0] } else { self.fresh / self.play.rows.max(1) };
            self.list.insert(0, record);
        }
    }

    fn height(record: u64) -> u64 {
        record / 3
    }

    fn page(&self, ask: &Ask) -> Page {
        let shown: Vec<u64> =
            self.list.iter().copied().filter(|id| ask.top.is_none_or(|top| Self::height(*id) as i64 <= top)).collect();
        let size = if self.play.stubborn { self.play.size } else { ask.limit } as usize;
        let from = ((ask.page as usize - 1) * size).min(shown.len());
        let rows = &shown[from..(from + size).min(shown.len())];
        let kind = record(if self.play.blocks { "Block" } else { "ChainTransaction" }).unwrap();
        let (id, height) = (kind.position(kind.identity[0]).unwrap(), kind.position("height").unwrap());
        let mut columns = ColumnsBuilder::new(kind, rows.len());
        for row in rows {
            columns.append_str(id, &format!("0x{row:x}")).unwrap();
            if self.play.heights {
                let of_row = if self.play.blocks { *row } else { Self::height(*row) };
                columns.append_str(height, &of_row.to_string()).unwrap();
            }
            columns.finish_row();
        }
        Page {
            number: Some(ask.page),
            limit: Some(size as u64),
            total_pages: self.play.pages_told.then(|| shown.len().div_ceil(size) as u64),
            total: self.play.counted.then_some(shown.len() as u64),
            chain_full_name: None,
            chain_short_name: None,
            columns: columns.finish(),
        }
    }

    /// Answers, and moves on.
    fn answer(&mut self, ask: &Ask) -> Page {
        let page = self.page(ask);
        let growth = if self.play.steady { self.play.growth } else { self.random.u64(0..=self.play.growth) };
        self.grow(growth);
        self.answers += 1;
        // What vanishes before a list's length is known was never known of.
        if self.play.loss > 0 && self.answers > 2 && self.random.u64(..self.play.loss) == 0 && !self.list.is_empty() {
            let lost = self.random.usize(..self.list.len());
            self.list.remove(lost);
        }
        page
    }
}

struct Outcome {
    exact: bool,
    error: Option<String>,
    requests: u64,
}

fn ids(page: &Page, from: usize, to: usize) -> Vec<u64> {
    let column = page.columns.record().position(page.columns.record().identity[0]).unwrap();
    let id = |row| u64::from_str_radix(&page.columns.text(column, row).unwrap()[2..], 16).unwrap();
    (from..to).map(id).collect()
}

fn read(play: Play) -> Outcome {
    let mut world = World::new(play);
    let mut order = fastrand::Rng::with_seed(play.seed ^ 0x5eed);
    let terms = Terms {
        endpoint: "list",
        size: play.size,
        size_max: 50.max(play.size),
        paged: true,
        moves: true,
        top: play.top.then_some(i64::MAX),
        cap: None,
        way_on: vec![Hint::RetryLater],
    };
    let mut list = List::new(terms.clone());
    let mut open: Vec<(Ask, Option<Page>)> = Vec::new();
    let (mut snapshot, mut got, mut requests) = (Vec::new(), Vec::new(), 0);
    loop {
        while open.len() < play.concurrency
            && let Some(ask) = list.ask(open.len())
        {
            requests += 1;
            open.push((ask, None));
        }
        if open.is_empty() {
            let error = list.broken.as_ref().map(ToString::to_string);
            return Outcome { exact: got == snapshot, error, requests };
        }
        assert!(requests < 40 + 40 * play.length, "it goes on for ever: {play:?}");
        // The service answers in any order; the reader looks at answers in its own.
        while open[0].1.is_none() {
            let waiting: Vec<usize> = (0..open.len()).filter(|index| open[*index].1.is_none()).collect();
            let next = waiting[order.usize(..waiting.len())];
            if requests == 1 {
                snapshot = world.list.clone();
            }
            open[next].1 = Some(world.answer(&open[next].0));
        }
        let (ask, page) = open.remove(0);
        let page = page.unwrap();
        let taken = list.take(&ask, &page);
        if taken.as_ref().map_or(true, |taken| taken.void) {
            for (ask, _) in open.drain(..).rev() {
                list.give_up(&ask);
            }
        }
        let died = play.deaths > 0 && order.usize(..play.deaths) == 0 && taken.is_ok() && !list.is_ended();
        if let Ok(taken) = taken
            && ask.purpose == Purpose::Records
        {
            got.extend(ids(&page, taken.from, taken.to));
            assert!(
                snapshot.starts_with(&got) || play.loss > 0 || play.twins > 0 || play.rows > 0,
                "wrong records were given out: {play:?}"
            );
        }
        if died {
            let seam: Seam = serde_json::from_str(&serde_json::to_string(&list.seam().told()).unwrap()).unwrap();
            list = List::resumed(terms.clone(), list.next(), &seam);
            open.clear();
        }
    }
}

fn schedules(of: impl Fn(&mut fastrand::Rng) -> Play) -> impl Iterator<Item = (Play, Outcome)> {
    (0..SCHEDULES).map(move |seed| {
        let play = Play { seed, ..of(&mut fastrand::Rng::with_seed(seed)) };
        (play, read(play))
    })
}

fn any(random: &mut fastrand::Rng) -> Play {
    let size = [5, 10, 20, 50][random.usize(..4)];
    Play {
        length: random.u64(1..400),
        size,
        concurrency: [1, 4, 8][random.usize(..3)],
        counted: random.bool(),
        heights: random.bool(),
        growth: random.u64(0..=size),
        steady: random.bool(),
        top: random.bool(),
        ..Play::default()
    }
}

/// Runs every schedule; what is given out is right or an error. Gives the share of errors and the worst number of
/// requests as a multiple of the least.
fn try_all(of: impl Fn(&mut fastrand::Rng) -> Play) -> (f64, f64) {
    let (mut worst, mut failed, mut count) = (0.0_f64, 0, 0);
    for (play, outcome) in schedules(of) {
        count += 1;
        // The page that tells how fast it grows, and the one that tells its length, come on top.
        let ratio = outcome.requests as f64 / (play.length.div_ceil(play.size) + 2) as f64;
        if outcome.error.is_some() {
            failed += 1;
            continue;
        }
        assert!(outcome.exact, "{play:?}");
        worst = worst.max(ratio);
    }
    let failed = f64::from(failed) / f64::from(count);
    (failed, worst)
}

#[test]
fn a_list_that_grows_up_to_a_page_a_request_is_read_in_three_times_the_least() {
    let (failed, worst) = try_all(any);
    assert!(failed == 0.0 && worst <= 3.0, "{failed} {worst}");
}

#[test]
fn a_list_that_grows_faster_is_read_or_refused() {
    let (failed, _) = try_all(|random| Play { growth: random.u64(0..=60), ..any(random) });
    assert!(failed < 0.05, "{failed}");
}

#[test]
fn a_list_that_holds_still_costs_one_request_more_at_most() {
    for (play, outcome) in schedules(|random| Play { growth: 0, pages_told: random.bool(), ..any(random) }) {
        let least = play.length.div_ceil(play.size);
        let least = if !play.pages_told && !play.counted { play.length / play.size + 1 } else { least };
        assert!(outcome.exact && outcome.error.is_none(), "{play:?}");
        let most = least + u64::from(!play.counted && least > 1);
        assert!(outcome.requests <= most, "{} {play:?}", outcome.requests);
    }
}

#[test]
fn blocks_have_their_heights_for_places() {
    let (failed, worst) = try_all(|random| Play { blocks: true, heights: true, top: false, ..any(random) });
    assert!(failed == 0.0 && worst <= 3.0, "{failed} {worst}");
}

#[test]
fn a_reader_that_dies_is_followed_by_one_that_has_exactly_the_rest() {
    let (failed, _) = try_all(|random| Play { deaths: random.usize(2..8), ..any(random) });
    assert!(failed < 0.05, "{failed}");
}

#[test]
fn a_reader_that_dies_among_identical_records_is_followed_while_the_list_holds_still() {
    let (failed, _) = try_all(|random| {
        let play = any(random);
        let (rows, deaths) = (random.u64(5..=2 * play.size), random.usize(2..8));
        Play { growth: 0, rows, deaths, length: play.length + rows, ..play }
    });
    assert!(failed == 0.0, "{failed}");
}

#[test]
fn a_reader_that_dies_among_identical_records_of_a_list_that_grows() {
    let (failed, _) = try_all(|random| {
        let rows = random.u64(8..=20);
        Play { size: 50, rows, deaths: random.usize(2..8), growth: random.u64(0..=30), ..any(random) }
    });
    assert!(failed < 0.05, "{failed}");
}

#[test]
fn more_identical_records_than_a_page_has_are_read_right_or_not_at_all() {
    let (failed, _) = try_all(|random| {
        let (play, pages_told, rare) = (any(random), random.bool(), random.u64(0..=3));
        Play { rows: random.u64(5..=3 * play.size), growth: rare.saturating_sub(1), steady: false, pages_told, ..play }
    });
    assert!(failed < 0.5, "{failed}");
}

#[test]
fn identical_records_are_all_kept() {
    let (failed, _) = try_all(|random| Play { twins: [2, 5, 30][random.usize(..3)], ..any(random) });
    assert!(failed < 0.2, "{failed}");
}

#[test]
fn records_that_vanish_are_noticed() {
    let (mut right, mut refused, mut unseen) = (0, 0, 0);
    for (play, outcome) in schedules(|random| Play { loss: random.u64(3..30), ..any(random) }) {
        match outcome {
            Outcome { error: Some(_), .. } => refused += 1,
            Outcome { exact: true, .. } => right += 1,
            // Nothing tells how long an uncounted list was that moved before it could be asked.
            _ if !play.counted && play.growth > 0 => unseen += 1,
            _ => panic!("{play:?}"),
        }
    }
    assert!(right > 50 && refused > 50 && unseen < (right + refused) / 10, "{right} {refused} {unseen}");
}

#[test]
fn a_service_that_keeps_to_its_own_pages() {
    let (failed, _) = try_all(|random| {
        let play = any(random);
        Play { stubborn: true, growth: play.growth.min(play.size / 3), ..play }
    });
    assert!(failed < 0.1, "{failed}");
}

#[test]
fn a_service_that_does_not_say_how_many_pages_there_are() {
    let (failed, _) = try_all(|random| Play { pages_told: false, ..any(random) });
    assert!(failed < 0.1, "{failed}");
}
