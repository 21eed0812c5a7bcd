//! Settings become scripts and are read back.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_sieve::{
    Absence, CalendarDay, Delivery, Forwarding, Limits, MoveRule, NoHost, RuleCondition, RuleField, Script,
    Settings, SettingsError,
};

use crate::kit::{NOW, actions, compile, delivery, outcome, shown};

/// What people write, and what could end a string or a comment.
fn line(most: usize) -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "a",
        "\"",
        "\\",
        "*/",
        "#",
        "${x}",
        ";",
        "é",
        "text:",
        "# Rule: x",
        "}",
        ".",
        "?",
        "stop;",
    ]);
    vec(words, 1..8)
        .prop_map(move |words| words.join(" ").chars().take(most).collect::<String>().trim().to_owned())
}

fn address() -> impl Strategy<Value = String> {
    "[a-z]{1,8}([.+][a-z]{1,4})?@[a-z]{1,8}\\.example"
}

fn day() -> impl Strategy<Value = CalendarDay> {
    (2_000_i16..2_100, 1_i8..13, 1_i8..29)
        .prop_map(|(year, month, day)| CalendarDay::new(year, month, day).unwrap())
}

fn absence() -> impl Strategy<Value = Absence> {
    let text = vec(line(80), 1..5).prop_map(|lines| lines.join("\n"));
    let days = (option::of(day()), option::of(day())).prop_map(|days| match days {
        (Some(first), Some(last)) => (Some(first.min(last)), Some(first.max(last))),
        days => days,
    });
    (days, option::of(line(80)), text, 1_u32..91, vec(address(), 0..4)).prop_map(
        |((first_day, last_day), subject, text, days, addresses)| Absence {
            first_day,
            last_day,
            subject,
            text,
            days,
            addresses,
        },
    )
}

fn rule() -> impl Strategy<Value = MoveRule> {
    let field = prop_oneof![
        Just(RuleField::Sender),
        Just(RuleField::Recipients),
        Just(RuleField::Subject),
        "X-[A-Za-z]{1,9}".prop_map(RuleField::Other),
    ];
    let condition = (field, any::<bool>(), line(80)).prop_map(|(field, is_whole, text)| RuleCondition {
        field,
        is_whole,
        text,
    });
    (line(80), any::<bool>(), vec(condition, 1..4), line(80))
        .prop_map(|(name, needs_all, conditions, mailbox)| MoveRule { name, needs_all, conditions, mailbox })
}

fn settings() -> impl Strategy<Value = Settings> {
    let forwarding = (vec(address(), 1..6), any::<bool>())
        .prop_map(|(addresses, keeps_copy)| Forwarding { addresses, keeps_copy });
    (option::of(absence()), option::of(forwarding), vec(rule(), 0..5))
        .prop_map(|(absence, forwarding, rules)| Settings { absence, forwarding, rules })
}

proptest! {
    #[test]
    fn settings_are_read_back(settings in settings()) {
        let script = settings.to_script().unwrap();
        prop_assert_eq!(Settings::read(&script), Some(settings.clone()), "{}", script);
        prop_assert_eq!(Settings::read(&script.replace('\n', "\r\n")), Some(settings), "{}", script);
        let compiled = Script::compile(script.as_bytes(), &Limits::default());
        prop_assert!(compiled.is_ok(), "{:?} {}", compiled.err(), script);
    }

    #[test]
    fn what_is_changed_by_hand_is_never_lost(settings in settings(), at in any::<prop::sample::Index>(), piece in prop::sample::select(vec!["", "x", "\"", ";", "keep;", "\n", " ", "\\", "# x\n"])) {
        let script = settings.to_script().unwrap();
        let places: Vec<usize> = script.char_indices().map(|(place, _)| place).collect();
        let at = places[at.index(places.len())];
        let changed = format!("{}{piece}{}", &script[..at], &script[at..]);
        // Either nobody reads settings from it, or they say all that is in it.
        if let Some(read) = Settings::read(&changed) {
            prop_assert_eq!(read.to_script().unwrap(), changed);
        }
    }
}

fn away(first: Option<CalendarDay>, last: Option<CalendarDay>) -> Settings {
    let absence = Absence {
        first_day: first,
        last_day: last,
        subject: None,
        text: "Away.".to_owned(),
        days: 3,
        addresses: vec!["bob@home.example".to_owned()],
    };
    Settings { absence: Some(absence), ..Settings::default() }
}

#[test]
fn replies_are_sent_from_the_first_day_to_the_last() {
    let message = "To: bob@home.example\nSubject: x\n\nHello\n";
    let day = |day| CalendarDay::new(2026, 11, day);
    // The message comes on the 26th.
    for (first, last, is_answered) in [
        (None, None, true),
        (day(26), day(26), true),
        (day(27), None, false),
        (None, day(25), false),
        (day(1), day(30), true),
    ] {
        let script = away(first, last).to_script().unwrap();
        let expected = if is_answered { "vacation 259200 Auto: x; implicit" } else { "implicit" };
        assert_eq!(actions(&script, message), expected, "{script}");
    }
    // Days are those of the owner's zone: it is still the 25th in the west.
    let script = away(day(26), None).to_script().unwrap();
    let west = Delivery { zone_seconds: -5 * 3_600, now_seconds: NOW, ..delivery() };
    assert_eq!(shown(&outcome(&script, message, &west, &NoHost)), "implicit");
}

#[test]
fn forwarding_and_rules_work_together() {
    let rule = |text: &str, mailbox: &str| MoveRule {
        name: "Work".to_owned(),
        needs_all: true,
        conditions: vec![RuleCondition { field: RuleField::Subject, is_whole: false, text: text.to_owned() }],
        mailbox: mailbox.to_owned(),
    };
    let mut settings = Settings {
        absence: None,
        forwarding: Some(Forwarding { addresses: vec!["a@b.example".to_owned()], keeps_copy: true }),
        rules: vec![rule("sale", "Offers"), rule("s", "Others")],
    };
    let message = "Subject: Winter SALE\n\n";
    assert_eq!(actions(&settings.to_script().unwrap(), message), "redirect a@b.example; fileinto Offers");
    settings.forwarding.as_mut().unwrap().keeps_copy = false;
    assert_eq!(actions(&settings.to_script().unwrap(), message), "redirect a@b.example");
    settings.forwarding = None;
    assert_eq!(actions(&settings.to_script().unwrap(), "Subject: this\n\n"), "fileinto Others");
    assert_eq!(Settings::read(""), None);
    assert_eq!(Settings::read(&Settings::default().to_script().unwrap()), Some(Settings::default()));
}

#[test]
fn settings_that_cannot_be_say_why() {
    let with = |change: &dyn Fn(&mut Absence)| {
        let mut settings = away(None, None);
        change(settings.absence.as_mut().unwrap());
        settings.to_script()
    };
    assert_eq!(with(&|absence| absence.days = 0), Err(SettingsError::Days));
    assert!(matches!(with(&|absence| absence.text.clear()), Err(SettingsError::Reply(_))));
    assert!(matches!(with(&|absence| absence.text = "a\0".to_owned()), Err(SettingsError::Reply(_))));
    assert!(matches!(
        with(&|absence| absence.subject = Some("a\nb".to_owned())),
        Err(SettingsError::Line(_))
    ));
    assert!(matches!(
        with(&|absence| absence.addresses = vec!["bob".to_owned()]),
        Err(SettingsError::Address(_))
    ));
    let reversed = away(CalendarDay::new(2026, 2, 2), CalendarDay::new(2026, 2, 1));
    assert_eq!(reversed.to_script(), Err(SettingsError::DaysOrder));
    let forwarding = |addresses: Vec<String>| {
        let forwarding = Some(Forwarding { addresses, keeps_copy: true });
        Settings { forwarding, ..Settings::default() }.to_script()
    };
    assert_eq!(forwarding(Vec::new()), Err(SettingsError::Forwarding(5)));
    assert_eq!(forwarding(vec!["a@b.example".to_owned(); 6]), Err(SettingsError::Forwarding(5)));
    assert!(matches!(
        forwarding(vec!["a@b.example\"; discard; #".to_owned()]),
        Err(SettingsError::Address(_))
    ));
    assert_eq!(CalendarDay::new(2026, 2, 30), None);
}

#[test]
fn addresses_that_a_script_may_redirect_to_are_listed() {
    let script = "require [\"copy\", \"variables\"]; redirect :copy \"Ada <a@b.example>\"; set \"x\" \"y\"; \
        if true { redirect \"${x}@b.example\"; } else { redirect \"a@b.example\"; }";
    assert_eq!(compile(script).redirects(), [Some("a@b.example".to_owned()), None]);
    assert!(compile("keep;").redirects().is_empty());
}
