//! App passwords: their form, their list, and that none costs an argon2id.

use proptest::prelude::*;
use scrinium_credentials::{
    AppPasswordError, AppPasswordText, Change, Decision, MOST_APP_PASSWORDS, NewAppPassword, PasswordError,
    Proof, Protocol, ProtocolSet, Standing, StoredCredentials, USE_GRAIN_MS,
};

use crate::people::{ADA_STORED, GATE, NOW_MS, PASSWORD, ada, everywhere, question};

#[test]
fn an_app_password_is_read_as_it_is_shown_and_as_people_type_it() {
    let text = &ADA_STORED.1;
    let shown = text.show();
    assert_eq!((shown.len(), shown.split('-').count()), (43, 9));
    assert!(!shown.contains(' ') && shown.starts_with("app-"));
    let confused = shown.replace('0', "o").replace('1', "l");
    for typed in
        [shown.clone(), shown.to_uppercase(), shown.replace('-', ""), shown.replace('-', " "), confused]
    {
        // The beginning has no digits, so that it is not confused itself.
        let typed = typed.replacen("app-", "app", 1);
        assert_eq!(AppPasswordText::parse(&typed).as_ref(), Some(text), "{typed}");
    }
    let (long, short) = (format!("{shown}a"), &shown[..42]);
    for other in [PASSWORD, "", "app", "app-", short, &long, &shown.replace('-', "--u"), &"app".repeat(40)] {
        assert_eq!(AppPasswordText::parse(other), None, "{other}");
    }
    // Nobody's own password is taken for one.
    let mut stored = StoredCredentials::default();
    assert_eq!(stored.set_password(&shown, None, NOW_MS), Err(PasswordError::LooksLikeAppPassword));
}

#[test]
fn no_app_password_costs_an_argon2id() {
    let (stored, text) = &*ADA_STORED;
    let shown = text.show();
    let person = || Some(ada(stored, Standing::default()));
    for protocol in Protocol::ALL {
        for person in [person(), None] {
            assert!(!GATE.is_slow(&question(protocol, person, Proof::Password(&shown))));
            assert!(GATE.is_slow(&question(protocol, person, Proof::Password(PASSWORD))));
        }
    }
    let mut locked = question(Protocol::Imap, person(), Proof::Password(PASSWORD));
    locked.locked_until_ms = Some(NOW_MS + 1);
    assert!(!GATE.is_slow(&locked), "what is locked is not hashed");
}

#[test]
fn the_last_use_is_written_once_an_hour() {
    let mut stored = StoredCredentials::default();
    let text = stored.create_app_password(everywhere("phone"), None, NOW_MS).unwrap().show();
    let mut written = Vec::new();
    for minute in 0..180 {
        let now_ms = NOW_MS + minute * 60_000;
        let mut question = question(Protocol::Imap, None, Proof::Password(&text));
        let before = stored.clone();
        question.person = Some(ada(&before, Standing::default()));
        question.now_ms = now_ms;
        let Decision::Admitted(admission) = GATE.decide(&question) else { panic!("it is hers") };
        for change in &admission.changes {
            assert!(!change.must_be_stored_first() && matches!(change, Change::AppPassword { .. }));
            stored.apply(change).unwrap();
            written.push(minute);
        }
    }
    assert_eq!(written, [0, 60, 120]);
    assert_eq!(USE_GRAIN_MS, 3_600_000);
}

#[test]
fn the_list_is_bounded_and_what_has_ended_makes_room() {
    let mut stored = StoredCredentials::default();
    for number in 0..MOST_APP_PASSWORDS {
        stored.create_app_password(everywhere(&format!("device {number}")), None, NOW_MS).unwrap();
    }
    let full = stored.create_app_password(everywhere("one more"), None, NOW_MS);
    assert_eq!(full, Err(AppPasswordError::TooMany));
    let (first, second) = {
        let mut ids = stored.app_passwords().map(|password| password.id.clone());
        (ids.next().unwrap(), ids.next().unwrap())
    };
    stored.revoke_app_password(&second, NOW_MS + 1).unwrap();
    stored.revoke_app_password(&first, NOW_MS + 2).unwrap();
    assert_eq!(
        stored.revoke_app_password(&first, NOW_MS + 3),
        Err(AppPasswordError::Unknown),
        "once is enough"
    );
    stored.create_app_password(everywhere("one more"), None, NOW_MS + 4).unwrap();
    assert!(
        stored.app_password(&second).is_none() && stored.app_password(&first).is_some(),
        "the oldest has gone"
    );
    for (new, error) in [
        (NewAppPassword { name: " ", ..everywhere("") }, AppPasswordError::Name),
        (everywhere("a\nb"), AppPasswordError::Name),
        (NewAppPassword { scope: ProtocolSet::NONE, ..everywhere("x") }, AppPasswordError::Scope),
        (NewAppPassword { scope: ProtocolSet::all(), ..everywhere("x") }, AppPasswordError::Scope),
    ] {
        assert_eq!(stored.create_app_password(new, None, NOW_MS), Err(error));
    }
    assert!(stored.to_bytes().unwrap().len() < 64 * 1024);
}

proptest! {
    #[test]
    fn no_text_is_an_app_password_but_those_of_its_form(text in ".{0,60}") {
        if let Some(parsed) = AppPasswordText::parse(&text) {
            prop_assert_eq!(AppPasswordText::parse(&parsed.show()), Some(parsed));
        }
    }
}
