//! What the checks of senders ask a real name server.

use scrinium_outbound::Dns;
use scrinium_sender_authentication::{Answer, DomainName, Question};

use crate::sink::{Zone, name_server};

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_question_has_its_answer() {
    let there = Zone {
        mx: vec![(10, "mx.good.example")],
        a: vec!["192.0.2.7"],
        txt: vec![vec!["v=spf1 ", "-all"], vec!["other"]],
        ..Zone::default()
    };
    let named = Zone { ptr: vec!["mx.good.example"], ..Zone::default() };
    let broken = Zone { fails: true, ..Zone::default() };
    let server = name_server(&[
        ("good.example", there),
        ("empty.example", Zone::default()),
        ("7.2.0.192.in-addr.arpa", named),
        ("broken.example", broken),
    ])
    .await;
    let dns = Dns::new(&[server]).unwrap();
    let name = |text: &str| DomainName::parse(text).unwrap();
    let texts = Answer::Texts(vec![b"v=spf1 -all".to_vec(), b"other".to_vec()]);
    for (question, answer) in [
        (Question::Texts(name("good.example")), texts),
        (Question::Addresses4(name("good.example")), Answer::Addresses(vec!["192.0.2.7".parse().unwrap()])),
        (Question::Addresses6(name("good.example")), Answer::NoRecords),
        (
            Question::MailHosts(name("good.example")),
            Answer::MailHosts(vec![(10, "mx.good.example.".to_owned())]),
        ),
        (Question::Names("192.0.2.7".parse().unwrap()), Answer::Names(vec!["mx.good.example.".to_owned()])),
        (Question::Texts(name("empty.example")), Answer::NoRecords),
        (Question::Texts(name("nowhere.example")), Answer::NoSuchName),
        (Question::Texts(name("broken.example")), Answer::Failed),
    ] {
        assert_eq!(dns.answer(&question).await, answer, "{question:?}");
    }
}
