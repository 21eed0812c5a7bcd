//! DNS lists (RFC 5782).

use scrinium_mail_filters::{DnsList, MAX_LISTS, Subject, judge};
use scrinium_sender_authentication::{Answer, Answers, DomainName, Missing, Question};

fn list(zone: &str, weight: i32) -> DnsList {
    let range = ([127, 0, 0, 2].into(), [127, 0, 0, 11].into());
    DnsList { zone: DomainName::parse(zone).unwrap(), weights: vec![(range, weight)] }
}

/// What the lists say where DNS says this; everything else is not there.
fn judged(
    subject: impl Into<Subject>,
    lists: &[DnsList],
    known: &[(&str, Answer)],
) -> (i32, Vec<String>, usize, usize) {
    let subject = subject.into();
    let mut answers = Answers::default();
    loop {
        match judge(subject.clone(), lists, &answers) {
            Ok(found) => {
                let reasons =
                    found.listings.iter().map(|one| one.reason.clone().unwrap_or_default()).collect();
                return (found.weight, reasons, found.silent.len(), answers.asked());
            }
            Err(Missing(question)) => {
                let (name, is_text) = match &question {
                    Question::Texts(name) => (name, true),
                    Question::Addresses4(name) => (name, false),
                    other => panic!("{other:?}"),
                };
                let answer = known.iter().find(|(known, answer)| {
                    *known == name.as_str() && matches!(answer, Answer::Texts(_)) == is_text
                });
                let answer = answer.map_or(Answer::NoSuchName, |(_, answer)| answer.clone());
                answers.insert(question, answer);
            }
        }
    }
}

fn address(octets: [u8; 4]) -> Answer {
    Answer::Addresses(vec![octets.into()])
}

#[test]
fn addresses_and_domains_are_looked_for_as_the_rfc_says() {
    let lists = [list("bad.example", 5), list("good.example", -3)];
    let four = "192.0.2.99".parse::<std::net::IpAddr>().unwrap();
    let reason = Answer::Texts(vec![b"see\r\nhttps://bad.example \xff".to_vec()]);
    let known = [("99.2.0.192.bad.example", address([127, 0, 0, 2])), ("99.2.0.192.bad.example", reason)];
    assert_eq!(judged(four, &lists, &known), (5, vec!["seehttps://bad.example ".to_owned()], 0, 3));
    let known = [known.as_slice(), &[("99.2.0.192.good.example", address([127, 0, 0, 10]))]].concat();
    assert_eq!(judged(four, &lists, &known).0, 2);
    let six = "2001:db8:1:2:3:4:567:89ab".parse::<std::net::IpAddr>().unwrap();
    let name = "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.bad.example";
    assert_eq!(judged(six, &lists, &[(name, address([127, 0, 0, 3]))]).0, 5, "RFC 5782 §2.4");
    let domain = DomainName::parse("spam.example").unwrap();
    assert_eq!(judged(domain, &lists, &[("spam.example.bad.example", address([127, 0, 0, 2]))]).0, 5);
}

#[test]
fn what_is_no_answer_of_a_list_weighs_nothing() {
    let lists = [list("bad.example", 5)];
    let four = "192.0.2.99".parse::<std::net::IpAddr>().unwrap();
    for (answer, silent) in [
        (address([192, 0, 2, 1]), 1),
        (address([127, 255, 255, 254]), 1),
        (address([127, 0, 0, 1]), 0),
        (address([127, 0, 1, 2]), 0),
        (Answer::Failed, 1),
        (Answer::NoRecords, 0),
    ] {
        let found = judged(four, &lists, &[("99.2.0.192.bad.example", answer.clone())]);
        assert_eq!((found.0, found.1.len(), found.2), (0, 0, silent), "{answer:?}");
    }
    let many: Vec<DnsList> = (0..50).map(|number| list(&format!("l{number}.example"), 1)).collect();
    assert_eq!(judged(four, &many, &[]).3, MAX_LISTS);
}
