//! Any bytes as a message, and what stands behind NULs as the records that DNS has for all its questions: a verdict after a bounded number
//! of questions, and no aligned signature, as nobody can sign by chance.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_sender_authentication::dkim::{BodyDigests, verify};
use scrinium_sender_authentication::dmarc::{DmarcEvidence, evaluate};
use scrinium_sender_authentication::spf::{SpfRequest, check_sender};
use scrinium_sender_authentication::{Answer, Answers, Authors, Head, Missing, QUESTIONS_MAX, Question, split_message};

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(4, |byte| *byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let (message, sender, records, rest) = (part(), part(), part(), part());
    let sender = String::from_utf8_lossy(sender).into_owned();
    let answer = |question: &Question, asked: usize| match question {
        Question::Texts(_) => {
            let record = records.split(|byte| *byte == b'\n').nth(asked % 8).unwrap_or_default();
            if record.is_empty() { Answer::NoRecords } else { Answer::Texts(vec![record.to_vec()]) }
        }
        Question::MailHosts(_) => Answer::MailHosts(vec![(1, String::from_utf8_lossy(rest).into_owned())]),
        Question::Addresses4(_) => Answer::Addresses(vec![[192, 0, 2, 1].into()]),
        Question::Addresses6(_) => Answer::NoRecords,
        Question::Names(_) => Answer::Names(vec![String::from_utf8_lossy(rest).into_owned()]),
    };
    let (head, body) = split_message(message);
    let (head, digests) = (Head::parse(head), BodyDigests::of(body));
    let authors = Authors::of(&head);
    let request = SpfRequest { address: [192, 0, 2, 7].into(), mail_from: &sender, helo: &sender, receiver: "mx", now_seconds: 5 };
    let mut answers = Answers::default();
    let check = |answers: &Answers| -> Result<_, Missing> {
        let spf = check_sender(&request, answers)?;
        let dkim = verify(&head, &digests, 5, answers)?;
        evaluate(&DmarcEvidence { authors: &authors, spf: Some(&spf), dkim: &dkim }, answers)
    };
    for asked in 0..=QUESTIONS_MAX {
        match check(&answers) {
            Ok(found) => return assert!(!found.is_dkim_aligned),
            Err(Missing(question)) => {
                let answer = answer(&question, asked);
                answers.insert(question, answer);
            }
        }
    }
    panic!("more questions than there may be");
});
