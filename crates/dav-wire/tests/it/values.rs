//! Values of lines.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_dav_wire::recurrence::{Frequency, RecurrenceRule, RuleEnd, Weekday};
use scrinium_dav_wire::value::{
    Date, DateTime, Day, Duration, Period, escape_text, parse_utc_offset, split_values, unescape_text,
};

fn date_time() -> impl Strategy<Value = DateTime> {
    let date = (0_u16..=9999, 1_u8..=12, 1_u8..=28)
        .prop_map(|(year, month, day)| Date(Day::new(year, month, day).unwrap()));
    (date, option::of((0_u8..24, 0_u8..60, 0_u8..60)), any::<bool>()).prop_map(|(date, clock, utc)| {
        match clock {
            None => DateTime::day(date),
            Some(clock) => DateTime::new(date, clock, utc).unwrap(),
        }
    })
}

fn duration() -> impl Strategy<Value = Duration> {
    (any::<bool>(), any::<u32>(), any::<u32>(), any::<(bool, bool)>()).prop_map(
        |(negative, days, seconds, (no_days, no_seconds))| Duration {
            negative,
            days: if no_days { 0 } else { days },
            seconds: if no_seconds { 0 } else { seconds },
        },
    )
}

fn rule() -> impl Strategy<Value = RecurrenceRule> {
    let frequencies =
        vec![Frequency::Secondly, Frequency::Hourly, Frequency::Daily, Frequency::Weekly, Frequency::Yearly];
    let end = prop_oneof![
        Just(RuleEnd::Never),
        (1..u32::MAX).prop_map(RuleEnd::Count),
        date_time().prop_map(RuleEnd::Until),
    ];
    let days = vec((-53_i16..=53, prop::sample::select(vec![Weekday::Monday, Weekday::Sunday])), 0..4);
    (
        prop::sample::select(frequencies),
        end,
        1..u32::MAX,
        days,
        vec(1_i16..=31, 0..4),
        vec(-366_i16..0, 0..3),
        any::<bool>(),
    )
        .prop_map(|(frequency, end, interval, by_day, by_month_day, by_position, more)| RecurrenceRule {
            end,
            interval,
            by_day,
            by_month_day,
            by_position,
            week_start: more.then_some(Weekday::Sunday),
            other: if more { vec![("RSCALE".to_owned(), "GREGORIAN".to_owned())] } else { vec![] },
            ..RecurrenceRule::every(frequency)
        })
}

proptest! {
    #[test]
    fn values_are_read_back(time in date_time(), other in date_time(), duration in duration(), rule in rule(), text in "[ -~é\n\t]{0,30}") {
        prop_assert_eq!(DateTime::parse(&time.to_string()), Ok(time));
        prop_assert_eq!(Duration::parse(&duration.to_string()), Ok(duration));
        for period in [Period::Until(time, other), Period::For(time, duration)] {
            prop_assert_eq!(Period::parse(&period.to_string()), Ok(period));
        }
        prop_assert_eq!(RecurrenceRule::parse(&rule.to_string()), Ok(rule));
        prop_assert_eq!(unescape_text(&escape_text(&text)), text);
    }

    #[test]
    fn lists_of_texts_are_split_where_they_were_joined(texts in vec("[ -~]{0,9}", 1..5)) {
        let joined: Vec<String> = texts.iter().map(|text| escape_text(text)).collect();
        let split: Vec<String> = split_values(&joined.join(","), ',').map(unescape_text).collect();
        prop_assert_eq!(split, texts);
    }

    #[test]
    fn any_text_is_a_value_or_an_error(text in "[0-9TZPWDHMS+/,;=A-Zé-]{0,24}") {
        let _ = (DateTime::parse(&text), Duration::parse(&text), Period::parse(&text), parse_utc_offset(&text));
        if let Ok(rule) = RecurrenceRule::parse(&format!("FREQ=DAILY;{text}")) {
            prop_assert_eq!(RecurrenceRule::parse(&rule.to_string()), Ok(rule));
        }
        let _ = unescape_text(&text);
    }
}

#[test]
fn values_mean_what_they_say() {
    let duration = |negative, days, seconds| Ok(Duration { negative, days, seconds });
    assert_eq!(Duration::parse("P15DT5H0M20S"), duration(false, 15, 18_020));
    assert_eq!(Duration::parse("-PT15M"), duration(true, 0, 900));
    assert_eq!(
        (Duration::parse("P7W"), Duration::parse("+P0D")),
        (duration(false, 49, 0), duration(false, 0, 0))
    );
    for wrong in ["", "P", "PT", "P1", "P1H", "PT1D", "PT1S1H", "1D", "P99999999999W", "P-1D", "P1D2"] {
        assert!(Duration::parse(wrong).is_err(), "{wrong}");
    }
    for wrong in
        ["20260229", "2026011", "20260101T", "20260101T2400", "20260101T246000", "20261301", "+2026010"]
    {
        assert!(DateTime::parse(wrong).is_err(), "{wrong}");
    }
    assert_eq!(
        DateTime::parse("20241231T235960Z").map(|time| time.to_string()).as_deref(),
        Ok("20241231T235959Z")
    );
    assert_eq!((parse_utc_offset("-0530"), parse_utc_offset("+013015")), (Ok(-19_800), Ok(5415)));
    assert!(
        parse_utc_offset("0100").is_err()
            && parse_utc_offset("+2460").is_err()
            && parse_utc_offset("+é1").is_err()
    );
    let rule = RecurrenceRule::parse("freq=monthly;byday=-1fr,+2MO,SU;UNTIL=20261231;bymonth=1,12;").unwrap();
    assert_eq!(rule.by_day, [(-1, Weekday::Friday), (2, Weekday::Monday), (0, Weekday::Sunday)]);
    assert!(matches!(rule.end, RuleEnd::Until(time) if time.second_of_day().is_none()));
    assert_eq!(
        RecurrenceRule::parse("FREQ=WEEKLY; BYDAY=MO, TU").map(|rule| rule.to_string()).as_deref(),
        Ok("FREQ=WEEKLY;BYDAY=MO,TU")
    );
    for wrong in [
        "",
        "FREQ=OFTEN",
        "COUNT=1",
        "FREQ=DAILY;COUNT=0",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;COUNT=1;UNTIL=20260101",
        "FREQ=DAILY;FREQ=DAILY",
        "FREQ=DAILY;BYMONTH=13",
        "FREQ=DAILY;BYMONTHDAY=0",
        "FREQ=DAILY;BYDAY=XX",
        "FREQ=DAILY;BYDAY=é",
        "FREQ=DAILY;BYHOUR=24",
        "FREQ=DAILY;X=a b",
    ] {
        assert!(RecurrenceRule::parse(wrong).is_err(), "{wrong}");
    }
    assert!(RecurrenceRule::parse(&format!("FREQ=DAILY;BYHOUR={}", vec!["1"; 401].join(","))).is_err());
}
