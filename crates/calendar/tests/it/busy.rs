//! Free and busy time against a model that asks each minute.

use proptest::prelude::*;
use scrinium_calendar::busy::{
    Availability, BusyKind, BusyPeriod, BusyTime, CommonTimes, FreeBusyHead, Participant, SlotQuestion,
    add_availability, read, write,
};
use scrinium_calendar::series::InstantRange;
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav_wire::content::{Component, ContentLimits};

use crate::support::{calendar, cases, days, zone};

const HOUR_S: i64 = 3_600;

fn span(from_minute: i64, to_minute: i64) -> InstantRange {
    InstantRange { from: Instant(from_minute * 60), to: Instant(to_minute * 60) }
}

/// What holds in each minute.
fn minutes(periods: &[(InstantRange, BusyKind)], count: i64) -> Vec<BusyKind> {
    let at = |minute: i64| {
        let here =
            periods.iter().filter(|(range, _)| range.from.0 <= minute * 60 && minute * 60 < range.to.0);
        here.map(|(_, kind)| *kind).max().unwrap_or_default()
    };
    (0..count).map(at).collect()
}

fn model_of(periods: &[BusyPeriod], count: i64) -> Vec<BusyKind> {
    minutes(&periods.iter().map(|period| (period.range, period.kind)).collect::<Vec<_>>(), count)
}

fn kind() -> impl Strategy<Value = BusyKind> {
    prop::sample::select(vec![BusyKind::Free, BusyKind::Tentative, BusyKind::Unavailable, BusyKind::Busy])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(128)))]
    #[test]
    fn merged_periods_say_what_each_minute_says(
        parts in prop::collection::vec((-20_i64..120, 0_i64..60, kind()), 0..12),
    ) {
        let parts: Vec<_> = parts.iter().map(|(from, length, kind)| (span(*from, from + length), *kind)).collect();
        let mut busy = BusyTime::new(span(0, 100));
        parts.iter().for_each(|(range, kind)| busy.add(range.from, range.to, *kind));
        let merged = busy.periods();
        prop_assert_eq!(model_of(&merged, 100), minutes(&parts, 100));
        for pair in merged.windows(2) {
            prop_assert!(pair[0].range.to < pair[1].range.from
                || (pair[0].range.to == pair[1].range.from && pair[0].kind != pair[1].kind));
        }
        // What is written is read back.
        let head = FreeBusyHead { method: Some("REPLY"), uid: Some("q".to_owned()), ..FreeBusyHead::default() };
        let bytes = write(&busy, head).unwrap().to_bytes();
        let again = read(&Component::parse(&bytes, ContentLimits::default()).unwrap(), busy.range());
        prop_assert_eq!(again.periods(), merged);
    }

    #[test]
    fn common_times_are_those_that_each_minute_allows(
        people in prop::collection::vec(
            (prop::collection::vec((0_i64..180, 1_i64..40, kind()), 0..5), any::<bool>(), prop::option::of(1_u32..9)), 1..6,
        ),
        length in 1_i64..40, room in prop::option::of(1_u32..9), most in 1_usize..30,
    ) {
        let participants: Vec<Participant> = people.iter().map(|(parts, is_required, room_seats)| {
            let mut busy = BusyTime::new(span(0, 240));
            for (from, length, kind) in parts {
                busy.add(Instant(from * 60), Instant((from + length) * 60), *kind);
            }
            Participant { busy: busy.periods(), is_required: *is_required, room_seats: *room_seats }
        }).collect();
        let question = SlotQuestion { range: span(3, 200), length_s: length * 60, step_s: 300, room_for: room, most };
        let found = CommonTimes::find(&question, &participants).slots;
        let clocks: Vec<Vec<BusyKind>> = participants.iter().map(|one| model_of(&one.busy, 240)).collect();
        let mut expected = Vec::new();
        for start in (5..=200 - length).step_by(5) {
            let worst = |one: usize| (start..start + length).map(|at| clocks[one][usize::try_from(at).unwrap()]).max().unwrap();
            let count = |wanted: &dyn Fn(&Participant, BusyKind) -> bool| {
                participants.iter().enumerate().filter(|(place, one)| wanted(one, worst(*place))).count()
            };
            let taken = |kind| matches!(kind, BusyKind::Busy | BusyKind::Unavailable);
            let is_blocked = count(&|one, kind| one.room_seats.is_none() && one.is_required && taken(kind)) > 0;
            let rooms = count(&|one, kind| kind == BusyKind::Free && one.room_seats.zip(room).is_some_and(|(seats, needed)| seats >= needed));
            if !is_blocked && (room.is_none() || rooms > 0) {
                expected.push((
                    count(&|one, kind| one.room_seats.is_none() && taken(kind)),
                    count(&|one, kind| one.room_seats.is_none() && kind == BusyKind::Tentative),
                    start * 60,
                ));
            }
        }
        expected.sort_unstable();
        expected.truncate(most);
        let found: Vec<_> = found.iter().map(|slot| (slot.missing.len(), slot.tentative.len(), slot.range.from.0)).collect();
        prop_assert_eq!(found, expected);
    }
}

fn kind_of(lines: &str) -> BusyKind {
    let text = format!("DTSTART:20260105T090000Z\nDURATION:PT1H\n{lines}");
    let mut busy = BusyTime::new(days((2026, 1, 5), (2026, 1, 6)));
    busy.add_calendar(&calendar(&text), &["ada@a.test".to_owned()], &Zone::utc());
    let periods = busy.periods();
    assert!(periods.len() < 2);
    periods.first().map_or(BusyKind::Free, |period| period.kind)
}

#[test]
fn what_an_event_takes_of_its_owners_time() {
    let cases = [
        ("", BusyKind::Busy),
        ("STATUS:CONFIRMED", BusyKind::Busy),
        ("STATUS:TENTATIVE", BusyKind::Tentative),
        ("STATUS:CANCELLED", BusyKind::Free),
        ("TRANSP:TRANSPARENT", BusyKind::Free),
        ("X-MICROSOFT-CDO-BUSYSTATUS:OOF", BusyKind::Unavailable),
        ("ATTENDEE;PARTSTAT=DECLINED:MAILTO:Ada@A.test", BusyKind::Free),
        ("ATTENDEE;PARTSTAT=DELEGATED:mailto:ada@a.test", BusyKind::Free),
        ("ATTENDEE;PARTSTAT=TENTATIVE:mailto:ada@a.test", BusyKind::Tentative),
        ("ATTENDEE:mailto:ada@a.test", BusyKind::Tentative),
        ("ATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@a.test", BusyKind::Busy),
        ("ATTENDEE;PARTSTAT=DECLINED:mailto:bob@a.test", BusyKind::Busy),
        ("ORGANIZER:mailto:ada@a.test\nATTENDEE:mailto:ada@a.test", BusyKind::Busy),
    ];
    for (lines, expected) in cases {
        assert_eq!(kind_of(lines), expected, "{lines}");
    }
}

#[test]
fn days_are_busy_on_the_clocks_of_whose_time_it_is_and_stored_answers_count() {
    let mut busy = BusyTime::new(days((2026, 1, 4), (2026, 1, 8)));
    busy.add_calendar(&calendar("DTSTART;VALUE=DATE:20260105"), &[], &zone("Asia/Tokyo"));
    let first = busy.periods()[0].range;
    assert_eq!((first.from.0 % (24 * HOUR_S) / HOUR_S, first.to.0 - first.from.0), (15, 24 * HOUR_S));
    let text = "BEGIN:VCALENDAR\nBEGIN:VFREEBUSY\nFREEBUSY;FBTYPE=BUSY-UNAVAILABLE:20260106T090000Z/PT2H,20260106T120000Z/20260106T130000Z,x\nFREEBUSY;FBTYPE=X-OTHER:20260106T140000Z/PT1H\nFREEBUSY;FBTYPE=FREE:20260106T160000Z/PT1H\nEND:VFREEBUSY\nEND:VCALENDAR\n";
    let stored = Component::parse(text.as_bytes(), ContentLimits::default()).unwrap();
    let mut busy = BusyTime::new(days((2026, 1, 6), (2026, 1, 7)));
    busy.add_calendar(&stored, &[], &Zone::utc());
    let kinds: Vec<(i64, BusyKind)> = busy
        .periods()
        .iter()
        .map(|period| ((period.range.to.0 - period.range.from.0) / HOUR_S, period.kind))
        .collect();
    assert_eq!(kinds, [(2, BusyKind::Unavailable), (1, BusyKind::Unavailable), (1, BusyKind::Busy)]);
}

#[test]
fn beyond_working_hours_somebody_is_unavailable_within_the_question() {
    // Weekdays from nine to five; and a higher one that leaves a day free.
    let text = "BEGIN:VCALENDAR\nBEGIN:VAVAILABILITY\nUID:1\nDTSTART;TZID=Europe/Berlin:20250101T000000\nBEGIN:AVAILABLE\nUID:2\nDTSTART;TZID=Europe/Berlin:20250106T090000\nDTEND;TZID=Europe/Berlin:20250106T170000\nRRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR\nEND:AVAILABLE\nEND:VAVAILABILITY\nBEGIN:VAVAILABILITY\nUID:3\nPRIORITY:1\nBUSYTYPE:BUSY\nDTSTART:20260706T230000Z\nDTEND:20260707T230000Z\nEND:VAVAILABILITY\nEND:VCALENDAR\n";
    let hours = Component::parse(text.as_bytes(), ContentLimits::default()).unwrap();
    let range = days((2026, 7, 6), (2026, 7, 9));
    let mut busy = BusyTime::new(range);
    add_availability(&mut busy, &Availability::read_all(&hours, range, &Zone::utc()));
    let found: Vec<(i64, i64, BusyKind)> = busy
        .periods()
        .iter()
        .map(|period| {
            (
                (period.range.from.0 - range.from.0) / HOUR_S,
                (period.range.to.0 - range.from.0) / HOUR_S,
                period.kind,
            )
        })
        .collect();
    let away = BusyKind::Unavailable;
    // In July nine in Berlin is seven in UTC.
    assert_eq!(
        found,
        [(0, 7, away), (15, 23, away), (23, 47, BusyKind::Busy), (47, 55, away), (63, 72, away)]
    );
}

#[test]
fn a_question_about_all_of_time_is_bounded() {
    let question = SlotQuestion {
        range: InstantRange { from: Instant(0), to: Instant(i64::MAX) },
        length_s: i64::MAX / 4,
        step_s: 0,
        room_for: None,
        most: usize::MAX,
    };
    let found = CommonTimes::find(&question, &[]);
    assert_eq!((found.slots.len(), found.looked_until), (200, Some(Instant(20_000 * 60))));
    let mut busy = BusyTime::new(days((2000, 1, 1), (2100, 1, 1)));
    busy.add_calendar(
        &calendar("DTSTART:20000101T000000Z\nDURATION:PT1S\nRRULE:FREQ=SECONDLY"),
        &[],
        &Zone::utc(),
    );
    assert!(busy.is_cut);
    assert_eq!(busy.periods().len(), 1);
}
