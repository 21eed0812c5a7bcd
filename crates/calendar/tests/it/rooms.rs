//! Bookings of rooms: never two in one lane, and each rule says no by itself.

use proptest::prelude::*;
use scrinium_calendar::rooms::{
    Booking, BookingDecision, BookingRefusal, BookingRequest, OwnerRule, RoomRules, decide,
};
use scrinium_calendar::series::InstantRange;
use scrinium_calendar::zone::Instant;

use crate::support::cases;

fn range(from: i64, to: i64) -> InstantRange {
    InstantRange { from: Instant(from), to: Instant(to) }
}

fn room() -> RoomRules {
    RoomRules { lanes: 1, ..RoomRules::default() }
}

fn ask(rules: &RoomRules, organizer: &str, people: u32, occurrences: &[InstantRange]) -> BookingDecision {
    let is_series = occurrences.len() > 1;
    decide(
        rules,
        &BookingRequest { organizer, people, occurrences, is_series, now: Instant(0) },
        &[vec![range(100, 200)]],
    )
}

#[test]
fn each_rule_refuses_by_itself() {
    let one = [range(300, 400)];
    let refused =
        |rules: RoomRules, occurrences: &[InstantRange]| match ask(&rules, "ada@a.test", 5, occurrences) {
            BookingDecision::Declined(refusal) => refusal,
            other => panic!("{other:?}"),
        };
    assert_eq!(
        refused(room(), &[range(150, 250)]),
        BookingRefusal::Conflict { conflicts: vec![range(150, 250)] }
    );
    assert_eq!(
        refused(RoomRules { capacity: Some(4), ..room() }, &one),
        BookingRefusal::TooSmall { capacity: 4, people: 5 }
    );
    assert_eq!(refused(RoomRules { rule: OwnerRule::Disabled, ..room() }, &one), BookingRefusal::Disabled);
    assert_eq!(
        refused(RoomRules { rule: OwnerRule::Only(Vec::new()), ..room() }, &one),
        BookingRefusal::NotPermitted
    );
    assert_eq!(
        refused(RoomRules { ahead_s: Some(200), ..room() }, &one),
        BookingRefusal::TooFarAhead { days: 0 }
    );
    assert_eq!(
        refused(RoomRules { longest_s: Some(60), ..room() }, &one),
        BookingRefusal::TooLong { minutes: 1 }
    );
    let two = [range(300, 400), range(500, 600)];
    assert_eq!(refused(RoomRules { refuses_series: true, ..room() }, &two), BookingRefusal::NoSeries);
    assert_eq!(refused(room(), &[range(-20, -10)]), BookingRefusal::NoTime);
    assert_eq!(refused(room(), &vec![range(300, 400); 10_001]), BookingRefusal::TooMany);
}

#[test]
fn owners_decide_for_others_and_series_are_booked_as_far_as_the_horizon_goes() {
    let owned = |rule| RoomRules { owners: vec!["own@a.test".to_owned()], rule, ..room() };
    let slots = Booking { slots: vec![(range(200, 300), 0)], declined: Vec::new() };
    let touching = [range(200, 300)];
    for (rule, who, waits) in [
        (OwnerRule::OwnersApprove, "ada@a.test", true),
        (OwnerRule::OwnersApprove, "own@a.test", false),
        (OwnerRule::OnlyOthersAsk(vec!["bob@a.test".to_owned()]), "bob@a.test", false),
        (OwnerRule::OnlyOthersAsk(vec!["bob@a.test".to_owned()]), "ada@a.test", true),
        (OwnerRule::Only(Vec::new()), "own@a.test", false),
    ] {
        let expected = if waits {
            BookingDecision::AwaitsOwner(slots.clone())
        } else {
            BookingDecision::Accepted(slots.clone())
        };
        assert_eq!(ask(&owned(rule), who, 1, &touching), expected);
    }
    // One of three is taken, and the third lies beyond the horizon.
    let series = [range(150, 160), range(300, 310), range(9_000, 9_010)];
    let rules = RoomRules { ahead_s: Some(1_000), conflicts_percent: 50, ..room() };
    let booking = Booking { slots: vec![(range(300, 310), 0)], declined: vec![range(150, 160)] };
    assert_eq!(ask(&rules, "ada@a.test", 1, &series), BookingDecision::Accepted(booking));
    let strict = RoomRules { conflicts_percent: 49, ..rules };
    assert!(matches!(
        ask(&strict, "ada@a.test", 1, &series),
        BookingDecision::Declined(BookingRefusal::Conflict { .. })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(64)))]
    #[test]
    fn no_lane_is_booked_twice_and_what_could_be_booked_is(
        bookings in prop::collection::vec(prop::collection::vec((0_i64..300, 1_i64..40), 1..4), 1..20), lanes in 1_usize..4,
    ) {
        let rules = RoomRules { lanes, conflicts_percent: 100, ..RoomRules::default() };
        let mut booked: Vec<Vec<InstantRange>> = vec![Vec::new(); lanes];
        for booking in bookings {
            let occurrences: Vec<InstantRange> = booking.iter().map(|(from, length)| range(*from, from + length)).collect();
            let request = BookingRequest { organizer: "a", people: 1, occurrences: &occurrences, is_series: true, now: Instant(0) };
            let before = booked.clone();
            let refused = match decide(&rules, &request, &booked) {
                BookingDecision::Accepted(booking) => {
                    for (slot, lane) in booking.slots {
                        booked[lane].push(slot);
                        booked[lane].sort_by_key(|slot| slot.from);
                    }
                    booking.declined
                }
                BookingDecision::Declined(BookingRefusal::Conflict { conflicts }) => conflicts,
                other => panic!("{other:?}"),
            };
            for lane in &booked {
                prop_assert!(lane.windows(2).all(|pair| pair[0].to <= pair[1].from));
            }
            let is_taken = |lane: &Vec<InstantRange>, one: &InstantRange| lane.iter().any(|other| other.from < one.to && one.from < other.to);
            for one in refused {
                prop_assert!(booked.iter().all(|lane| is_taken(lane, &one)), "{:?} in {:?}", one, before);
            }
        }
    }
}
