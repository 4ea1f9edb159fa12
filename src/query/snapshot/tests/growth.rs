//! Expected growth.

use super::super::growth::GrowthRate;

/// Growth at each of the latest responses.
fn growth(observed: &[i64]) -> GrowthRate {
    let mut growth = GrowthRate::default();
    for grown in observed {
        growth.on_response();
        growth.observe(*grown);
    }
    growth
}

#[test]
fn list_is_stable_after_responses_without_growth() {
    for (observed, is_growing, is_stable) in
        [(&[0][..], false, false), (&[0, 0], false, true), (&[0, 0, 1], true, false), (&[1, 0, 0], false, true)]
    {
        let growth = growth(observed);
        assert_eq!((!growth.is_stable(1), growth.is_stable(2)), (is_growing, is_stable), "{observed:?}");
    }
}

#[test]
fn growth_is_expected_for_each_response_since_the_latest_observation() {
    let mut growth = growth(&[2, 4, 3]);
    assert_eq!(growth.expected(), 2);
    growth.on_response();
    assert_eq!(growth.expected(), 4);
    // Two responses later.
    growth.on_response();
    growth.observe(3);
    assert_eq!(growth.expected(), 1);
    growth.observe(0);
    assert_eq!(growth.expected(), 0);
}
