//! MTA-STS: records, policies, hosts, and when which is asked for.

use proptest::prelude::*;
use scrinium_mail_discovery::sts::{
    HostPattern, KeptPolicy, StsError, StsMode, StsPlan, StsPolicy, StsRecord, StsVerdict, plan, policy_url,
};
use scrinium_sender_authentication::{Answer, DomainName};

fn name(text: &str) -> DomainName {
    DomainName::parse(text).unwrap()
}

const POLICY: &str = "version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.example.net\r\nmx: backupmx.example.com\r\nmax_age: 604800\r\n";

#[test]
fn policies_are_read_as_the_rfc_says() {
    let policy = StsPolicy::parse(POLICY.as_bytes()).unwrap();
    assert_eq!((policy.mode, policy.hosts.len(), policy.max_age_seconds), (StsMode::Enforce, 3, 604_800));
    assert_eq!(
        StsPolicy::parse(policy.text().as_bytes()),
        Ok(policy.clone()),
        "what is written is read back"
    );
    let with = |old: &str, new: &str| StsPolicy::parse(POLICY.replace(old, new).as_bytes());
    assert_eq!(with("\r\n", "\n").unwrap(), policy);
    assert_eq!(
        with("mode: enforce", "mode: enforce\r\nmode: none\r\nfuture: x: y\r\n\r\nnonsense").unwrap(),
        policy
    );
    assert_eq!(with("version: STSv1", "version: STSv2"), Err(StsError::Version));
    assert_eq!(with("mode: enforce", "mode: strict"), Err(StsError::Mode));
    assert_eq!(with("604800", "31557601"), Err(StsError::Age));
    assert_eq!(with("604800", "-1"), Err(StsError::Age));
    assert_eq!(with("mx: mail.example.com", "mx: mail..example.com"), Err(StsError::Hosts));
    assert_eq!(with("mx: mail.example.com", "mx: a.*.example.com"), Err(StsError::Hosts));
    assert_eq!(StsPolicy::parse(b"version: STSv1\nmode: testing\nmax_age: 1\n"), Err(StsError::Hosts));
    assert!(StsPolicy::parse(b"version: STSv1\nmode: none\nmax_age: 1\n").is_ok());
    assert_eq!(StsPolicy::parse(&vec![b'x'; 70_000]), Err(StsError::Text));
    assert_eq!(StsPolicy::parse("mx: a.example\n".repeat(1_000).as_bytes()), Err(StsError::Hosts));
    assert_eq!(policy_url(&name("example.com")), "https://mta-sts.example.com/.well-known/mta-sts.txt");
}

/// RFC 8461 §4.1
#[test]
fn a_wildcard_stands_for_one_label() {
    for (pattern, host, expected) in [
        ("mail.example.com", "MAIL.example.com", true),
        ("mail.example.com", "mail.example.com.", true),
        ("*.example.com", "mail.example.com", true),
        ("*.example.com", "a.mail.example.com", false),
        ("*.example.com", "example.com", false),
        ("example.com", "mail.example.com", false),
    ] {
        assert_eq!(HostPattern::parse(pattern).unwrap().permits(&name(host)), expected, "{pattern} {host}");
    }
}

#[test]
fn only_enforced_policies_stop_mail() {
    let mut policy = StsPolicy::parse(POLICY.as_bytes()).unwrap();
    let (good, other) = (name("mail.example.com"), name("mail.thief.example"));
    for (mode, unkept) in [
        (StsMode::Enforce, StsVerdict::TryAnother),
        (StsMode::Testing, StsVerdict::DeliverAndReport),
        (StsMode::None, StsVerdict::Deliver),
    ] {
        policy.mode = mode;
        assert_eq!(policy.judge(&good, true), StsVerdict::Deliver);
        // Both have to be right: the name is one of the policy, and the certificate is that of the name.
        assert_eq!((policy.judge(&good, false), policy.judge(&other, true)), (unkept, unkept), "{mode:?}");
    }
}

#[test]
fn records_are_read_as_the_rfc_says() {
    let of = |texts: &[&str]| {
        StsRecord::of(&Answer::Texts(texts.iter().map(|text| text.as_bytes().to_vec()).collect()))
    };
    let id = |id: &str| StsRecord::Id(id.to_owned());
    assert_eq!(of(&["v=STSv1; id=20160831085700Z;"]), id("20160831085700Z"));
    assert_eq!(of(&["v=spf1 -all", "v=STSv1;id=1"]), id("1"));
    assert_eq!(of(&["v=STSv1; id=1", "v=STSv1; id=2"]), StsRecord::Absent);
    for record in [
        "v=STSv1; id=",
        "v=STSv1; id=a-b",
        "v=STSv1",
        "v=STSv2; id=1",
        &format!("v=STSv1; id={}", "1".repeat(33)),
    ] {
        assert_eq!(of(&[record]), StsRecord::Absent, "{record}");
    }
    assert_eq!(StsRecord::of(&Answer::Failed), StsRecord::Unknown);
}

#[test]
fn a_policy_is_fetched_when_it_changes_and_kept_while_it_holds() {
    let policy = StsPolicy::parse(POLICY.as_bytes()).unwrap();
    let kept = KeptPolicy { id: "1".to_owned(), policy, fetched_seconds: 1_000_000 };
    let id = |id: &str| StsRecord::Id(id.to_owned());
    let fetch = |id: &str| StsPlan::Fetch(id.to_owned());
    let at = |record: &StsRecord, failed, now| plan(Some(&kept), record, failed, now);
    assert_eq!(at(&id("1"), None, 1_000_100), StsPlan::Use);
    assert_eq!(at(&id("2"), None, 1_000_100), fetch("2"));
    assert_eq!(at(&id("1"), None, 1_000_000 + 86_400), fetch("1"), "once a day in any case");
    assert_eq!(at(&id("2"), Some(1_000_050), 1_000_100), StsPlan::Use, "not again at once");
    assert_eq!(at(&id("2"), Some(1_000_050), 1_000_350), fetch("2"));
    // Taking the record away does not take the policy away.
    assert_eq!(at(&StsRecord::Absent, None, 1_000_100), StsPlan::Use);
    assert_eq!(at(&StsRecord::Unknown, None, 1_000_000 + 604_800), StsPlan::Use);
    assert_eq!(at(&StsRecord::Unknown, None, 1_000_001 + 604_800), StsPlan::None);
    assert_eq!(plan(None, &id("1"), None, 5), fetch("1"));
    assert_eq!(plan(None, &StsRecord::Absent, None, 5), StsPlan::None);
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_none(text in "(version: STSv1\n|mode: (enforce|none|x)\n|mx: [ -~]{0,12}\n|max_age: [0-9]{0,12}\n|[ -~\r]{0,9}\n){0,12}") {
        if let Ok(policy) = StsPolicy::parse(text.as_bytes()) {
            prop_assert_eq!(StsPolicy::parse(policy.text().as_bytes()), Ok(policy.clone()));
            let record = policy.record();
            prop_assert!(matches!(StsRecord::of(&Answer::Texts(vec![record.into_bytes()])), StsRecord::Id(_)));
        }
    }
}
