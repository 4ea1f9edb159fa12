//! Every schedule within small bounds, on the reader itself. `make enumerate` has larger bounds.

use super::super::FirstPage;
use super::adversary::Defect;
use super::bounds::{Bounds, COUNTED};
use super::tally::check;

const UNCOUNTED: Bounds = Bounds { counted: false, ..COUNTED };
/// Pages of one record contain no overlap, by which duplicates are distinguished.
const DUPLICATES: Bounds = Bounds { symbols: 2, max_length: 4, page_sizes: (2, 3), ..UNCOUNTED };

#[test]
fn every_schedule_of_distinct_records_with_a_count_is_right_or_raises() {
    let c = COUNTED;
    check(&[
        ("counted, stable", c, c, 21),
        (
            "counted, growth, death",
            Bounds { growth: (2, 2), deaths: 1, ..c },
            Bounds { growth: (4, 2), deaths: 1, ..c },
            3_364,
        ),
        (
            "counted, growth, deletion, death",
            Bounds { growth: (2, 2), losses: 1, deaths: 1, max_length: 4, ..c },
            Bounds { growth: (3, 2), losses: 1, deaths: 1, ..c },
            100_144,
        ),
        (
            "counted, growth, deletion, two in flight",
            Bounds { growth: (2, 2), losses: 1, concurrency: 2, max_length: 5, ..c },
            Bounds { growth: (3, 2), losses: 1, concurrency: 2, ..c },
            27_072,
        ),
        (
            "counted, growth, deletion, missing counts",
            Bounds { growth: (1, 1), losses: 1, omissions: 2, max_length: 4, ..c },
            Bounds { growth: (2, 2), losses: 1, omissions: 2, max_length: 5, ..c },
            30_651,
        ),
        (
            "counted, growth, reorganization, death",
            Bounds { growth: (1, 1), reorganizations: 1, deaths: 1, max_length: 4, ..c },
            Bounds { growth: (2, 2), reorganizations: 1, deaths: 1, max_length: 5, ..c },
            35_881,
        ),
        (
            "counted, growth, deletion, reorganization",
            Bounds { growth: (1, 1), losses: 1, reorganizations: 1, max_length: 4, ..c },
            Bounds { growth: (1, 1), losses: 1, reorganizations: 1, max_length: 5, ..c },
            84_871,
        ),
    ]);
}

#[test]
fn every_schedule_of_distinct_records_without_a_count_is_right_or_raises() {
    let u = UNCOUNTED;
    check(&[
        ("uncounted, stable", u, u, 21),
        (
            "uncounted, growth, death",
            Bounds { growth: (2, 2), deaths: 1, ..u },
            Bounds { growth: (4, 2), deaths: 1, ..u },
            12_860,
        ),
        (
            "uncounted, growth by more than the list, death",
            Bounds { growth: (6, 3), deaths: 1, max_length: 2, page_sizes: (1, 1), ..u },
            Bounds { growth: (8, 4), deaths: 1, max_length: 2, ..u },
            36_985,
        ),
        (
            "uncounted, growth, deletion, death",
            Bounds { growth: (2, 2), losses: 1, deaths: 1, max_length: 4, ..u },
            Bounds { growth: (3, 2), losses: 1, deaths: 1, max_length: 5, ..u },
            718_620,
        ),
        (
            "uncounted, growth, deletion, two in flight",
            Bounds { growth: (2, 2), losses: 1, concurrency: 2, max_length: 4, ..u },
            Bounds { growth: (3, 2), losses: 1, concurrency: 2, max_length: 5, ..u },
            35_553,
        ),
        (
            "uncounted, larger pages, growth, deletion",
            Bounds { growth: (2, 2), losses: 1, max_page: 6, ..u },
            Bounds { growth: (3, 2), losses: 1, deaths: 1, max_page: 6, max_length: 5, ..u },
            40_657,
        ),
        (
            "uncounted, smaller pages than documented",
            Bounds { growth: (2, 1), losses: 1, max_page: 6, served: 2, ..u },
            Bounds { growth: (3, 1), losses: 1, max_page: 6, served: 2, ..u },
            213_480,
        ),
        (
            "uncounted, smaller pages than documented, growth",
            Bounds { growth: (2, 1), deaths: 1, max_page: 6, served: 2, ..u },
            Bounds { growth: (4, 1), deaths: 1, max_page: 6, served: 2, ..u },
            21_989,
        ),
        (
            "uncounted, growth, reorganization, death",
            Bounds { growth: (1, 1), reorganizations: 1, shallow: true, deaths: 1, max_length: 4, ..u },
            Bounds { growth: (2, 2), reorganizations: 1, shallow: true, deaths: 1, max_length: 5, ..u },
            45_509,
        ),
        (
            "uncounted, growth, deletion, reorganization",
            Bounds { growth: (1, 1), losses: 1, reorganizations: 1, shallow: true, max_length: 4, ..u },
            Bounds { growth: (1, 1), losses: 1, reorganizations: 1, shallow: true, max_length: 5, ..u },
            93_596,
        ),
    ]);
}

#[test]
fn every_schedule_of_duplicate_records_is_right_or_raises() {
    let (c, d) = (Bounds { symbols: 2, max_length: 4, ..COUNTED }, DUPLICATES);
    let rows = Bounds { symbols: 1, rows: true, max_length: 5, ..d };
    check(&[
        ("counted, duplicates, stable", Bounds { max_length: 6, ..c }, Bounds { max_length: 10, ..c }, 381),
        (
            "uncounted, duplicates, stable",
            Bounds { symbols: 3, max_length: 8, ..d },
            Bounds { symbols: 3, max_length: 10, ..d },
            19_682,
        ),
        (
            "counted, duplicates, growth, death",
            Bounds { growth: (2, 2), deaths: 1, ..c },
            Bounds { growth: (3, 2), deaths: 1, ..c },
            49_211,
        ),
        (
            "counted, duplicates, growth, deletion",
            Bounds { growth: (1, 1), losses: 1, ..c },
            Bounds { growth: (2, 2), losses: 1, max_length: 5, ..c },
            32_733,
        ),
        (
            "counted, duplicates, deletion, two in flight",
            Bounds { symbols: 3, losses: 1, concurrency: 2, ..c },
            Bounds { symbols: 3, losses: 1, concurrency: 2, max_length: 5, ..c },
            6_390,
        ),
        (
            "uncounted, duplicates, growth",
            Bounds { growth: (2, 2), ..d },
            Bounds { growth: (3, 2), max_length: 5, ..d },
            18_954,
        ),
        (
            "uncounted, duplicates, deletion, death",
            Bounds { losses: 1, deaths: 1, ..d },
            Bounds { symbols: 3, losses: 1, deaths: 1, max_length: 5, ..d },
            41_948,
        ),
        (
            "uncounted, runs, growth, death",
            Bounds { growth: (2, 2), deaths: 1, ..rows },
            Bounds { growth: (3, 2), deaths: 1, ..rows },
            665_042,
        ),
        (
            "uncounted, runs, growth, deletion",
            Bounds { growth: (1, 1), losses: 1, ..rows },
            Bounds { growth: (2, 2), losses: 1, ..rows },
            185_589,
        ),
        (
            "uncounted, runs, larger pages, growth, death",
            Bounds { growth: (2, 2), deaths: 1, max_page: 6, max_length: 4, ..rows },
            Bounds { growth: (3, 2), deaths: 1, max_page: 6, ..rows },
            105_714,
        ),
        (
            "uncounted, runs, larger pages, deletion",
            Bounds { growth: (1, 1), losses: 1, max_page: 6, ..rows },
            Bounds { growth: (2, 2), losses: 1, max_page: 6, ..rows },
            115_411,
        ),
        (
            "uncounted, duplicates, growth, deletion",
            Bounds { growth: (1, 1), losses: 1, ..d },
            Bounds { symbols: 3, growth: (1, 1), losses: 1, max_length: 5, ..d },
            123_108,
        ),
        (
            "uncounted, duplicates, larger pages",
            Bounds { growth: (1, 1), losses: 1, max_page: 6, ..d },
            Bounds { symbols: 3, growth: (1, 1), losses: 1, max_page: 6, max_length: 5, ..d },
            75_236,
        ),
    ]);
}

/// A service that breaks an assumption is noticed by what contradicts it, while the records are distinct.
#[test]
fn every_schedule_of_a_service_that_breaks_an_assumption_is_right_or_raises() {
    let broken = |defect, bounds: Bounds| Bounds { defect: Some(defect), max_length: 5, page_sizes: (2, 2), ..bounds };
    let (c, u) = (COUNTED, UNCOUNTED);
    let growth = |bounds: Bounds| Bounds { growth: (1, 1), max_length: 4, ..bounds };
    let two = |bounds: Bounds| Bounds { concurrency: 2, ..bounds };
    let death = |bounds: Bounds| Bounds { deaths: 1, max_length: 4, ..bounds };
    let mut cases = Vec::new();
    for (name, defect, expected) in [
        ("ties reordered", Defect::TiesReordered, [27, 74, 36, 110, 60, 534, 90, 566]),
        ("replica with a gap", Defect::ReplicaWithGap, [108, 270, 151, 534, 382, 3_530, 512, 4_187]),
        ("page ignored", Defect::PageIgnored, [6, 12, 7, 11, 6, 28, 7, 30]),
        ("count one more", Defect::CountOneMore, [82, 529, 107, 938, 155, 2_009, 254, 2_572]),
        ("count one less", Defect::CountOneLess, [12, 34, 13, 56, 32, 378, 39, 514]),
        ("count cached", Defect::CountCached, [6, 27, 7, 16, 6, 238, 7, 15]),
        ("record listed late", Defect::LateRecord, [38, 105, 55, 142, 47, 359, 86, 333]),
    ] {
        for (kind, bounds) in [("counted", c), ("uncounted", u)] {
            let bounds = broken(defect, bounds);
            for (how, bounds) in [
                ("stable", bounds),
                ("growth", growth(bounds)),
                ("two in flight", two(bounds)),
                ("death", death(bounds)),
            ] {
                let schedules = expected[cases.len() % expected.len()];
                cases.push((format!("{name}, {kind}, {how}"), bounds, schedules));
            }
        }
    }
    let cases: Vec<_> =
        cases.iter().map(|(name, bounds, schedules)| (name.as_str(), *bounds, *bounds, *schedules)).collect();
    check(&cases);
}

/// Records that a response shows between two returned ones are returned, or the beginning has a reason.
#[test]
fn every_beginning_of_a_list_of_which_a_replica_lacks_a_record_is_right_or_raises() {
    let bounds = |bounds: Bounds| Bounds { defect: Some(Defect::ReplicaWithGap), wanted: 5, max_length: 6, ..bounds };
    let (c, u) = (bounds(COUNTED), bounds(UNCOUNTED));
    let growth = |bounds: Bounds| Bounds { growth: (1, 1), max_length: 5, ..bounds };
    let two = |bounds: Bounds| Bounds { concurrency: 2, ..bounds };
    check(&[
        ("replica with a gap, beginning, counted", c, c, 3_589),
        ("replica with a gap, beginning, uncounted", u, u, 6_894),
        ("replica with a gap, beginning, counted, growth", growth(c), growth(c), 13_320),
        ("replica with a gap, beginning, counted, two in flight", two(c), two(c), 6_818),
    ]);
}

/// Such a list is incomplete: no response shows its length. Even so, no record of it is returned twice.
#[test]
fn no_list_beyond_its_result_window_is_called_complete() {
    let window = |bounds: Bounds| Bounds { window: Some(4), max_length: 7, page_sizes: (1, 3), ..bounds };
    let (c, u) = (window(COUNTED), window(UNCOUNTED));
    let growth = |bounds: Bounds| Bounds { growth: (2, 2), ..bounds };
    let loss = |bounds: Bounds| Bounds { losses: 1, deaths: 1, ..bounds };
    let both = |bounds: Bounds| Bounds { growth: (1, 1), losses: 1, max_length: 6, ..bounds };
    let large = |bounds: Bounds| Bounds { deaths: 1, ..bounds };
    check(&[
        ("counted, window, stable", c, c, 24),
        ("uncounted, window, stable", u, u, 24),
        ("counted, window, growth", growth(c), large(growth(c)), 387),
        ("uncounted, window, growth", growth(u), large(growth(u)), 445),
        ("counted, window, deletion, death", loss(c), loss(c), 4_141),
        ("uncounted, window, deletion, death", loss(u), loss(u), 4_775),
        ("counted, window, growth, deletion", both(c), large(both(c)), 3_781),
        ("uncounted, window, growth, deletion", both(u), large(both(u)), 3_736),
    ]);
}

/// The caller stops after some records. Their number is no evidence that none before them was skipped.
#[test]
fn every_beginning_of_a_list_is_right_or_raises() {
    let (c, u) = (Bounds { wanted: 5, ..COUNTED }, Bounds { wanted: 5, ..UNCOUNTED });
    let window = |bounds: Bounds| Bounds { window: Some(4), max_length: 6, ..bounds };
    let growth = |bounds: Bounds| Bounds { growth: (2, 2), deaths: 1, max_length: 5, ..bounds };
    let loss = |bounds: Bounds| Bounds { growth: (1, 1), losses: 1, max_length: 5, ..bounds };
    let in_flight = |bounds: Bounds| Bounds { losses: 1, concurrency: 2, ..bounds };
    let reorganization = Bounds { growth: (1, 1), reorganizations: 1, shallow: true, max_length: 5, ..u };
    let death = |bounds: Bounds| Bounds { deaths: 1, ..bounds };
    let duplicates = Bounds { wanted: 4, ..DUPLICATES };
    let lossy = Bounds { losses: 1, ..duplicates };
    // Pages after the mark, in any order.
    let marked = Bounds { page_sizes: (2, 2), wanted: 6, concurrency: 2, growth: (1, 1), ..u };
    let moved = Bounds { reorganizations: 1, shallow: true, ..marked };
    let lost = Bounds { losses: 1, ..marked };
    let runs = Bounds { losses: 1, max_length: 4, symbols: 1, rows: true, ..marked };
    check(&[
        ("counted, beginning, stable", c, c, 105),
        ("uncounted, beginning, stable", u, u, 210),
        ("counted, beginning, growth, death", growth(c), growth(c), 6_418),
        ("uncounted, beginning, growth, death", growth(u), growth(u), 13_060),
        ("counted, beginning, growth, deletion", loss(c), death(loss(c)), 6_719),
        ("uncounted, beginning, growth, deletion", loss(u), death(loss(u)), 13_546),
        ("counted, beginning, deletion, two in flight", in_flight(c), in_flight(c), 1_504),
        ("uncounted, beginning, deletion, two in flight", in_flight(u), in_flight(u), 2_604),
        ("uncounted, beginning, reorganization", reorganization, death(reorganization), 12_850),
        ("uncounted, beginning, reorganization, two in flight", moved, death(moved), 10_329),
        ("uncounted, beginning, growth, deletion, two in flight", lost, death(lost), 11_742),
        ("uncounted, beginning, runs, deletion, two in flight", runs, death(runs), 166_582),
        ("uncounted, beginning, window, growth", window(growth(u)), window(growth(u)), 19_110),
        ("uncounted, beginning, window, growth, deletion", window(loss(u)), death(window(loss(u))), 16_154),
        ("uncounted, beginning, window, two in flight", window(in_flight(u)), window(in_flight(u)), 2_043),
        ("uncounted, beginning, window, reorganization", window(reorganization), death(window(reorganization)), 15_069),
        ("uncounted, beginning, duplicates", duplicates, duplicates, 496),
        ("uncounted, beginning, duplicates, deletion", lossy, death(lossy), 5_964),
    ]);
}

/// Records of the first page may have been replaced before the others are read.
#[test]
fn every_schedule_of_a_first_page_that_is_returned_at_once_is_right_or_raises() {
    let at_once = |bounds: Bounds| Bounds { first_page: FirstPage::AtOnce, max_length: 4, ..bounds };
    let (u, d) = (at_once(UNCOUNTED), at_once(DUPLICATES));
    let window = Bounds { window: Some(4), max_length: 6, growth: (1, 1), losses: 1, ..u };
    let growth = Bounds { growth: (2, 2), deaths: 1, ..u };
    let deletion = Bounds { growth: (1, 1), losses: 1, deaths: 1, ..u };
    let reorganization = Bounds { growth: (1, 1), reorganizations: 1, shallow: true, ..u };
    let death = |bounds: Bounds| Bounds { deaths: 1, ..bounds };
    check(&[
        ("at once, growth, death", growth, Bounds { growth: (4, 2), max_length: 6, ..growth }, 3_196),
        ("at once, growth, deletion, death", deletion, Bounds { growth: (2, 2), ..deletion }, 34_195),
        ("at once, growth, reorganization", reorganization, death(reorganization), 2_842),
        ("at once, duplicates, growth", Bounds { growth: (2, 2), ..d }, Bounds { growth: (3, 2), ..d }, 17_970),
        ("at once, duplicates, deletion", Bounds { losses: 1, ..d }, death(Bounds { losses: 1, ..d }), 1_860),
        ("at once, window, growth, deletion", window, death(window), 3_711),
    ]);
}

/// Pages that are compared begin with returned records. The caller stops after some records, or reads all of them.
#[test]
fn every_schedule_of_pages_that_are_compared_is_right_or_raises() {
    let compared = |bounds: Bounds| Bounds { first_page: FirstPage::Compared, max_length: 5, ..bounds };
    let beginning = |bounds: Bounds| Bounds { wanted: 5, ..bounds };
    let (u, d) = (compared(UNCOUNTED), compared(DUPLICATES));
    let growth = Bounds { growth: (2, 2), deaths: 1, ..u };
    let deletion = Bounds { growth: (1, 1), losses: 1, deaths: 1, max_length: 4, ..u };
    let reorganization = Bounds { growth: (1, 1), reorganizations: 1, shallow: true, ..u };
    let duplicates = Bounds { growth: (2, 2), max_length: 4, ..d };
    let window = Bounds { window: Some(4), max_length: 6, growth: (1, 1), losses: 1, ..u };
    check(&[
        ("compared, growth, death", growth, growth, 11_319),
        ("compared, growth, deletion, death", deletion, deletion, 68_421),
        ("compared, growth, reorganization", reorganization, reorganization, 9_196),
        ("compared, duplicates, growth", duplicates, duplicates, 22_954),
        ("compared, window, growth, deletion", window, window, 2_406),
        ("compared, beginning, growth, death", beginning(growth), beginning(growth), 12_631),
        ("compared, beginning, growth, deletion, death", beginning(deletion), beginning(deletion), 75_220),
        ("compared, beginning, growth, reorganization", beginning(reorganization), beginning(reorganization), 4_458),
        ("compared, beginning, duplicates, growth", beginning(duplicates), beginning(duplicates), 66_540),
    ]);
}

/// Without the final look, a deleted record makes up for one that is returned twice. The audit misses the look.
#[cfg(feature = "planted-bugs")]
#[test]
fn wrong_results_are_found_without_the_final_look() {
    use super::tally::{Size, enumerate};

    if Size::of_environment() == Size::Audit {
        return;
    }
    crate::planted::plant(Some(crate::planted::Bug::FinalLookSkipped));
    let bounds = Bounds { growth: (1, 1), losses: 1, max_length: 4, ..COUNTED };
    let (alone, audited) = (enumerate(Bounds { is_audited: false, ..bounds }), enumerate(bounds));
    let resumed = enumerate(Bounds { losses: 1, deaths: 1, max_length: 4, is_audited: false, ..COUNTED });
    crate::planted::plant(None);
    assert!(alone.wrong > 0 && resumed.wrong > 0, "{alone:?} {resumed:?}");
    assert_eq!(audited.wrong, 0, "{audited:?}");
}
