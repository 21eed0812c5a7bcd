//! The examples of RFC 5545, section 3.8.5.3, and RFC 7529, section 4.1, as data of our own.

use crate::support::{EVER, series, starts};

/// Start, rule, and what it gives: `1997 9 2-11` are ten days at nine. `...` says that there are others.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("19970902", "FREQ=DAILY;COUNT=10", "1997 9 2-11"),
    ("19970902", "FREQ=DAILY;UNTIL=19971224T000000Z", "1997 9 2-30; 10 1-31; 11 1-30; 12 1-23"),
    ("19970902", "FREQ=DAILY;INTERVAL=2", "1997 9 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30; 10 2 4 6 ..."),
    ("19970902", "FREQ=DAILY;INTERVAL=10;COUNT=5", "1997 9 2 12 22; 10 2 12"),
    (
        "19980101",
        "FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA",
        "1998 1 1-31; 1999 1 1-31; 2000 1 1-31",
    ),
    ("19980101", "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1", "1998 1 1-31; 1999 1 1-31; 2000 1 1-31"),
    ("19970902", "FREQ=WEEKLY;COUNT=10", "1997 9 2 9 16 23 30; 10 7 14 21 28; 11 4"),
    (
        "19970902",
        "FREQ=WEEKLY;UNTIL=19971224T000000Z",
        "1997 9 2 9 16 23 30; 10 7 14 21 28; 11 4 11 18 25; 12 2 9 16 23",
    ),
    (
        "19970902",
        "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
        "1997 9 2 16 30; 10 14 28; 11 11 25; 12 9 23; 1998 1 6 20; 2 3 17 ...",
    ),
    (
        "19970902",
        "FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH",
        "1997 9 2 4 9 11 16 18 23 25 30; 10 2",
    ),
    ("19970902", "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH", "1997 9 2 4 9 11 16 18 23 25 30; 10 2"),
    (
        "19970901",
        "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
        "1997 9 1 3 5 15 17 19 29; 10 1 3 13 15 17 27 29 31; 11 10 12 14 24 26 28; 12 8 10 12 22",
    ),
    ("19970902", "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH", "1997 9 2 4 16 18 30; 10 2 14 16"),
    (
        "19970905",
        "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
        "1997 9 5; 10 3; 11 7; 12 5; 1998 1 2; 2 6; 3 6; 4 3; 5 1; 6 5",
    ),
    ("19970905", "FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR", "1997 9 5; 10 3; 11 7; 12 5"),
    (
        "19970907",
        "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
        "1997 9 7 28; 11 2 30; 1998 1 4 25; 3 1 29; 5 3 31",
    ),
    ("19970922", "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO", "1997 9 22; 10 20; 11 17; 12 22; 1998 1 19; 2 16"),
    ("19970928", "FREQ=MONTHLY;BYMONTHDAY=-3", "1997 9 28; 10 29; 11 28; 12 29; 1998 1 29; 2 26 ..."),
    (
        "19970902",
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15",
        "1997 9 2 15; 10 2 15; 11 2 15; 12 2 15; 1998 1 2 15",
    ),
    (
        "19970930",
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
        "1997 9 30; 10 1 31; 11 1 30; 12 1 31; 1998 1 1 31; 2 1",
    ),
    (
        "19970910",
        "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
        "1997 9 10-15; 1999 3 10-13",
    ),
    (
        "19970902",
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        "1997 9 2 9 16 23 30; 11 4 11 18 25; 1998 1 6 13 20 27; 3 3 10 17 24 31 ...",
    ),
    (
        "19970610",
        "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
        "1997 6 10; 7 10; 1998 6 10; 7 10; 1999 6 10; 7 10; 2000 6 10; 7 10; 2001 6 10; 7 10",
    ),
    (
        "19970310",
        "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
        "1997 3 10; 1999 1 10; 2 10; 3 10; 2001 1 10; 2 10; 3 10; 2003 1 10; 2 10; 3 10",
    ),
    (
        "19970101",
        "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
        "1997 1 1; 4 10; 7 19; 2000 1 1; 4 9; 7 18; 2003 1 1; 4 10; 7 19; 2006 1 1",
    ),
    ("19970519", "FREQ=YEARLY;BYDAY=20MO", "1997 5 19; 1998 5 18; 1999 5 17 ..."),
    ("19970512", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "1997 5 12; 1998 5 11; 1999 5 17 ..."),
    (
        "19970313",
        "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
        "1997 3 13 20 27; 1998 3 5 12 19 26; 1999 3 4 11 18 25 ...",
    ),
    (
        "19970605",
        "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
        "1997 6 5 12 19 26; 7 3 10 17 24 31; 8 7 14 21 28; 1998 6 4 11 18 25; 7 2 9 16 23 30; 8 6 13 20 27 ...",
    ),
    (
        "19970902",
        "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13\nEXDATE;TZID=America/New_York:19970902T090000",
        "1998 2 13; 3 13; 11 13; 1999 8 13; 2000 10 13 ...",
    ),
    (
        "19970913",
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "1997 9 13; 10 11; 11 8; 12 13; 1998 1 10; 2 7; 3 7; 4 11; 5 9; 6 13 ...",
    ),
    (
        "19961105",
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        "1996 11 5; 2000 11 7; 2004 11 2 ...",
    ),
    ("19970904", "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "1997 9 4; 10 7; 11 6"),
    (
        "19970929",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "1997 9 29; 10 30; 11 27; 12 30; 1998 1 29; 2 26; 3 30 ...",
    ),
    ("19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "1997 8 5 10 19 24"),
    ("19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "1997 8 5 17 19 31"),
    ("20070115", "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "2007 1 15 30; 2 15; 3 15 30"),
    // RFC 7529.
    ("20140131", "RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=OMIT;COUNT=4", "2014 1 31; 3 31; 5 31; 7 31"),
    ("20140131", "RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=BACKWARD;COUNT=4", "2014 1 31; 2 28; 3 31; 4 30"),
    ("20140131", "RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=FORWARD;COUNT=4", "2014 1 31; 3 1 31; 5 1"),
    (
        "20160229",
        "RSCALE=GREGORIAN;FREQ=YEARLY;SKIP=BACKWARD",
        "2016 2 29; 2017 2 28; 2018 2 28; 2019 2 28; 2020 2 29 ...",
    ),
    (
        "20160229",
        "RSCALE=GREGORIAN;FREQ=YEARLY;SKIP=FORWARD",
        "2016 2 29; 2017 3 1; 2018 3 1; 2019 3 1; 2020 2 29 ...",
    ),
];

/// Rules that give several times a day, and the times, without their seconds.
const TIMES: &[(&str, &str)] = &[
    // With the end that the RFC's erratum 3883 gives.
    ("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z", "2T09 2T12 2T15"),
    ("FREQ=MINUTELY;INTERVAL=15;COUNT=6", "2T0900 2T0915 2T0930 2T0945 2T1000 2T1015"),
    ("FREQ=MINUTELY;INTERVAL=90;COUNT=4", "2T0900 2T1030 2T1200 2T1330"),
];

fn expected(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut year, mut month) = (0, 0);
    for part in text.trim_end_matches("...").split(';') {
        let mut words = part.split_whitespace().peekable();
        if let Some(word) = words.next_if(|word| word.len() == 4) {
            year = word.parse().unwrap();
        }
        month = words.next().map_or(month, |word| word.parse().unwrap());
        for word in words {
            let (from, to) = word.split_once('-').unwrap_or((word, word));
            let days = from.parse::<u8>().unwrap()..=to.parse().unwrap();
            found.extend(days.map(|day| format!("{year:04}{month:02}{day:02}T090000")));
        }
    }
    found
}

#[test]
fn the_examples_of_the_standards() {
    for (start, rule, days) in EXAMPLES {
        let expected = expected(days);
        let series = series(&format!("DTSTART;TZID=America/New_York:{start}T090000\nRRULE:{rule}"));
        assert_eq!(series.notes(), []);
        let most = if days.ends_with("...") { expected.len() } else { 1_000 };
        let mut found = starts(&series, EVER, most);
        found.truncate(most);
        assert_eq!(found, expected, "{rule}");
        // The same as days, which have no clock.
        if !rule.contains("Z") && !rule.contains("EXDATE") {
            let series = crate::support::series(&format!("DTSTART;VALUE=DATE:{start}\nRRULE:{rule}"));
            let days: Vec<String> = expected.iter().map(|time| time[..8].to_owned()).collect();
            assert_eq!(starts(&series, EVER, most)[..days.len()], days, "{rule}");
        }
    }
}

#[test]
fn the_examples_with_several_times_a_day() {
    for (rule, times) in TIMES {
        let series = series(&format!("DTSTART;TZID=America/New_York:19970902T090000\nRRULE:{rule}"));
        let expected: Vec<String> = times
            .split(' ')
            .map(|time| format!("1997090{time}").chars().chain("0000".chars()).take(15).collect())
            .collect();
        assert_eq!(starts(&series, EVER, 1_000), expected, "{rule}");
    }
    let every_20_minutes = [
        "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
        "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16",
    ];
    for rule in every_20_minutes {
        let series = series(&format!("DTSTART;TZID=America/New_York:19970902T090000\nRRULE:{rule}"));
        let times = |day: u8| {
            let clock = (9..=16).flat_map(move |hour| [0, 20, 40].map(move |minute| (hour, minute)));
            clock.map(move |(hour, minute)| format!("199709{day:02}T{hour:02}{minute:02}00"))
        };
        let expected: Vec<String> = (2..=4).flat_map(times).collect();
        assert_eq!(starts(&series, EVER, expected.len()), expected, "{rule}");
    }
}
