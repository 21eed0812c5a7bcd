//! Functions whose rules are wider than an example of the reference shows.

use crate::support::{Document, check, compiled, environment, environment_at, error_of, value_for, value_of};
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use proptest::prelude::*;
use scrinium_formula::{Environment, Formula, Value};
use serde_json::json;

fn text_of(source: &str, fields: serde_json::Value) -> String {
    match value_for(source, fields).to_json() {
        serde_json::Value::String(text) => text,
        other => panic!("{source} came to {other}"),
    }
}

/// Summer time as laws had it, looked up for these days.
#[test]
fn zones_turn_to_summer_time_when_their_law_says() {
    let shown = |moment: &str, zone: &str| {
        text_of(r#"@TimeToTextInZone(Moment; Zone; "T1")"#, json!({ "Moment": moment, "Zone": zone }))
    };
    let eastern = "Z=5$DO=1$DL=4 1 1 10 -1 1$ZX=25$ZN=Eastern";
    assert_eq!(shown("2006-04-02T06:59:00Z", eastern), "2006-04-02 01:59-05:00");
    assert_eq!(shown("2006-04-02T07:00:00Z", eastern), "2006-04-02 03:00-04:00");
    assert_eq!(shown("2006-10-29T05:59:00Z", eastern), "2006-10-29 01:59-04:00");
    assert_eq!(shown("2006-10-29T06:00:00Z", eastern), "2006-10-29 01:00-05:00");
    let sydney = "Z=-10$DO=1$DL=10 -1 1 3 -1 1$ZN=Sydney";
    assert_eq!(shown("2006-01-01T00:00:00Z", sydney), "2006-01-01 11:00+11:00");
    assert_eq!(shown("2006-07-01T00:00:00Z", sydney), "2006-07-01 10:00+10:00");
    assert_eq!(shown("2006-07-01T00:00:00Z", "Z=-3005$DO=0$ZN=India"), "2006-07-01 05:30+05:30");
    assert_eq!(shown("2006-07-01T00:00:00Z", "Z=3003$DO=0$ZN=Newfoundland"), "2006-06-30 20:30-03:30");
    for wrong in [
        "",
        "UTC",
        "Z=",
        "Z=x",
        "Z=99",
        "DO=0",
        "Z=5$DO=1",
        "Z=5$DO=1$DL=4 1 1",
        "Z=5$DO=1$DL=13 1 1 10 -1 1",
        "Z=5$DO=1$DL=4 0 1 10 -1 1",
        "Z=5$DO=1$DL=4 1 8 10 -1 1",
    ] {
        let fields = json!({ "Zone": wrong });
        assert!(value_for("@TimeToTextInZone([2026-11-21]; Zone)", fields.clone()).is_error(), "{wrong}");
        assert!(value_for("@TimeZoneToText(Zone)", fields).is_error(), "{wrong}");
    }
}

#[test]
fn the_zone_of_the_server_is_told_as_the_original_does() {
    let evaluated = |source: &str, zone: TimeZone| {
        let environment = Environment { time_zone: zone, ..environment() };
        compiled(source).evaluate(&Document::default(), &environment).unwrap()
    };
    let eastern = || TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
    assert_eq!(evaluated("@Zone", eastern()), Value::number(5.0));
    assert_eq!(
        evaluated("@Zone([2026-07-01 12:00]:[2026-12-01 12:00])", eastern()),
        Value::numbers(vec![5.1, 5.0])
    );
    assert_eq!(evaluated("@Zone([2026-07-01])", eastern()), Value::number(0.0));
    let fixed = |seconds| TimeZone::fixed(Offset::from_seconds(seconds).unwrap());
    assert_eq!(evaluated("@Zone", fixed(3600)), Value::number(-1.0));
    assert_eq!(evaluated("@Zone", fixed(34_200)), Value::number(-3009.0));
    assert_eq!(evaluated("@GetCurrentTimeZone", fixed(-18_000)), Value::text("Z=5$DO=0"));
    assert_eq!(evaluated("@GetCurrentTimeZone", fixed(19_800)), Value::text("Z=-3005$DO=0"));
    assert!(evaluated("@GetCurrentTimeZone", eastern()).is_error(), "its rules have no such form");
    assert_eq!(
        evaluated(r#"@TimeZoneToText(@GetCurrentTimeZone; "SA")"#, fixed(3600)),
        Value::text("Local time")
    );
    assert_eq!(evaluated(r#"@TimeZoneToText("Z=5$DO=0"; "SA")"#, fixed(3600)), Value::text("GMT-05:00"));
}

/// By a clock two hours ahead it is the last of January already, and February has no such day.
#[test]
fn adjusting_in_utc_leaves_the_clock_of_the_server_out() {
    let adjusted = |clock: &str| {
        let source = format!(r#"@Adjust("2026-01-30T23:00:00Z"; 0; 1; 0; 0; 0; 0{clock})"#);
        compiled(&source).evaluate(&Document::default(), &environment_at(2)).unwrap().to_json()
    };
    assert_eq!(adjusted(""), "2026-02-27T23:00:00Z");
    assert_eq!(adjusted("; [InLocalTime]"), "2026-02-27T23:00:00Z");
    assert_eq!(adjusted("; [InGMT]"), "2026-02-28T23:00:00Z");
}

#[test]
fn abstracts_are_shortened_step_by_step() {
    let body = "Subject: lunch\nFrom: Ann\n\nMeet at noon ,  near\nthe old  harbour !";
    let abstracted = |steps: &str, size: usize| {
        text_of(&format!(r#"@Abstract({steps}; {size}; ""; "Body")"#), json!({ "Body": body }))
    };
    assert_eq!(abstracted("\"\"", 20), "Subject: lunch From:");
    assert_eq!(abstracted("[TEXTONLY]", 60), "Meet at noon ,  near the old  harbour !");
    assert_eq!(abstracted("[TEXTONLY]:[ABBREV]", 60), "Meet at noon , near the old harbour !");
    assert_eq!(abstracted("[TEXTONLY]:[TRIMPUNCT]:[ABBREV]", 60), "Meet at noon,near the old harbour!");
    assert_eq!(
        abstracted("[TEXTONLY]:[NOTRIMWHITE]:[DROPVOWELS]:[ABBREV]", 60),
        "Mt at nn ,  nr th old  hrbr !"
    );
    assert_eq!(abstracted("[TEXTONLY]:[DROPFIRSTVOWEL]:[ABBREV]", 60), "Mt t nn , nr th ld hrbr !");
    assert_eq!(abstracted("[TEXTONLY]:[SAVE]:[DROPVOWELS]:[ABBREV]:[RESTORE]", 12), "Meet at noon");
    assert_eq!(
        abstracted("[TEXTONLY]:[TRYFIT]:[DROPVOWELS]:[ABBREV]", 39),
        "Meet at noon ,  near the old  harbour !"
    );
    assert_eq!(abstracted("[RULE1]", 39), "Meet at noon ,  near the old  harbour !");
    assert_eq!(abstracted("[RULE1]", 35), "-Meet at noon,near the old harbour!");
    assert_eq!(abstracted("[RULE1]", 34), "+Mt at nn,nr th old hrbr!");
    assert_eq!(abstracted("[RULE1]", 10), "Mt at nn,n");
    assert_eq!(abstracted("[RULE3]", 34), "Meet at noon,near the old harbour!");
    let list = json!({ "Words": ["one", "two"], "Count": 3 });
    assert_eq!(text_of(r#"@Abstract(""; 30; "W: "; "Words":"Count")"#, list.clone()), "W: one two Count");
    assert_eq!(text_of(r#"n := "Wo" + "rds"; @Abstract(""; 30; ""; n)"#, list), "one two");
    let long = json!({ "Body": format!("\n\none\ttwo\n \nthree\nfour {}", "x".repeat(200)) });
    assert_eq!(text_of(r#"@AbstractSimple("Body")"#, long), "one two three");
    let long = json!({ "Body": "ü".repeat(200) });
    assert_eq!(text_of(r#"@AbstractSimple("Body")"#, long), "ü".repeat(100));
}

#[test]
fn unique_texts_belong_to_their_document() {
    let unique = |source: &str, id: &str| text_of(source, json!({ "_id": id }));
    assert_eq!(unique("@Unique", "a"), unique("@Unique", "a"));
    assert_ne!(unique("@Unique", "a"), unique("@Unique", "b"));
    let mut all: Vec<String> =
        (0..2000).map(|number| unique("@Unique", &format!("document{number}"))).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 2000);
    assert!(all.iter().all(|text| text.len() == 13 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())));
    assert!(compiled("@Unique").fields().is_empty() && !compiled("@Unique").is_time_variant());
}

#[test]
fn checking_a_formula_runs_nothing_of_it() {
    check(&[
        (r#"@CheckFormulaSyntax({@While(1; 1)})"#, r#""1""#),
        (r#"@CheckFormulaSyntax({@Repeat("x"; 100000000)})"#, r#""1""#),
        (r#"@CheckFormulaSyntax("@CheckFormulaSyntax(\"@Foo\")")"#, r#""1""#),
        (r#"@CheckFormulaSyntax("")[2]"#, r#""1""#),
        (r#"@Subset(@CheckFormulaSyntax("x := 1;" + @NewLine + "  x + ü'"); -5)"#, r#""2":"8":"16":"1":"'""#),
        (r#"@Subset(@CheckFormulaSyntax({1 +}); -5)"#, r#""1":"4":"4":"0":"""#),
    ]);
    assert!(error_of("@CheckFormulaSyntax(1)").contains("needs text"));
    // Deep inside each other, the formula and the one that it checks.
    let deep = |inside: &str| format!("{}{inside}{}", "(".repeat(95), ")".repeat(95));
    assert_eq!(value_of(&deep(&format!("@CheckFormulaSyntax({{{}}})", deep("1")))), Value::text("1"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn checking_agrees_with_compiling(source in "[a-c@If(){}\\[\\]\":=+; 1]{0,20}") {
        let document = Document::new(json!({ "Source": source }));
        let found = compiled("@CheckFormulaSyntax(Source)").evaluate(&document, &environment()).unwrap();
        match Formula::compile(&source) {
            Ok(_) => prop_assert_eq!(found, Value::text("1")),
            Err(error) => {
                prop_assert_eq!(found.len(), 6);
                prop_assert_eq!(found.element(1), Some(Value::text(error.line.to_string())));
                prop_assert_eq!(found.element(2), Some(Value::text(error.column.to_string())));
            }
        }
    }

    #[test]
    fn texts_in_ascii_are_printable(text in "\\PC{0,40}") {
        let found = text_of("@Ascii(Text)", json!({ "Text": text }));
        prop_assert!(found.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{}", found);
        if text.is_ascii() {
            prop_assert_eq!(found, text);
        }
    }

    /// Narrow katakana with their marks, and ASCII, come back as they were.
    #[test]
    fn wide_texts_become_narrow_again(text in "([ -~]|[｡-ﾝ]|[ｶ-ﾄﾊ-ﾎｳ]ﾞ|[ﾊ-ﾎ]ﾟ){0,20}") {
        let wide = text_of("@Wide(Text)", json!({ "Text": text }));
        prop_assert!(wide.chars().all(|character| u32::from(character) >= 0x3000), "{}", wide);
        prop_assert!(wide.chars().count() <= text.chars().count());
        prop_assert_eq!(text_of("@Narrow(Text)", json!({ "Text": wide })), text);
        prop_assert_eq!(text_of("@Wide(Text)", json!({ "Text": wide })), wide);
    }

    #[test]
    fn zones_without_summer_time_are_fixed_offsets(minutes in -14 * 60_i32..=14 * 60, seconds in 0_i64..4_000_000_000) {
        let moment = Timestamp::from_second(seconds).unwrap();
        let (hours, rest) = (-minutes / 60, -minutes % 60);
        let zone = format!("Z={}$DO=0", rest * 100 + hours);
        let fields = json!({ "Moment": moment.to_string(), "Zone": zone });
        let offset = Offset::from_seconds(minutes * 60).unwrap();
        let (date, time) = (offset.to_datetime(moment).date(), offset.to_datetime(moment).time());
        let sign = if minutes < 0 { '-' } else { '+' };
        let expected = format!("{date} {time}{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60);
        prop_assert_eq!(text_of("@TimeToTextInZone(Moment; Zone)", fields.clone()), expected);
        // Taken apart and put together, it is the same moment.
        let merged = value_for("@TimeMerge(@TextToTime(@Left(@TimeToTextInZone(Moment; Zone); 10)); \
            @TextToTime(@Middle(@TimeToTextInZone(Moment; Zone); 11; 8)); Zone) = Moment", fields);
        prop_assert_eq!(merged, Value::truth(true));
    }

    #[test]
    fn addresses_lose_their_detours(domains in prop::collection::vec("[a-c]", 0..8)) {
        let address = std::iter::once("ann").chain(domains.iter().map(String::as_str)).collect::<Vec<_>>().join("@");
        let found = text_of("@OptimizeMailAddress(Address)", json!({ "Address": address }));
        let parts: Vec<&str> = found.split('@').collect();
        let mut once = parts[1..].to_vec();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), parts.len() - 1, "{}", &found);
        let last = domains.last().map_or("ann", String::as_str);
        prop_assert_eq!((parts[0], parts.last().copied()), ("ann", Some(last)));
        prop_assert_eq!(parts.get(1).copied(), domains.first().map(String::as_str));
    }
}
