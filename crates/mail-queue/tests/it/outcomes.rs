//! What answers and troubles mean.

use scrinium_mail_queue::outcome::{Outcome, SessionEnd, Stage, Trouble, classify, merge};
use scrinium_mail_queue::{Cause, Effect, Ending};

use crate::kit::{reply, session};

fn broken(stage: Stage, trouble: Trouble) -> SessionEnd {
    SessionEnd::Broken { stage, trouble }
}

fn refused(stage: Stage, text: &str) -> SessionEnd {
    SessionEnd::Refused { stage, reply: reply(text) }
}

#[test]
fn replies_mean_what_their_codes_say() {
    use Cause::*;
    use Ending::*;
    for (stage, text, ending, cause) in [
        (Stage::Recipient, "550 5.1.1 No such user", Failed, RecipientRefused),
        (Stage::Recipient, "450 4.2.0 Greylisted", Deferred, RecipientRefused),
        (Stage::Recipient, "450 try later", Deferred, Throttled),
        (Stage::Recipient, "452 4.2.2 Full", Deferred, MailboxFull),
        (Stage::Recipient, "552 5.2.2 Full", Failed, MailboxFull),
        (Stage::Recipient, "452 4.5.3 Too many recipients", Deferred, Throttled),
        (Stage::Recipient, "552 too many recipients", Deferred, Throttled),
        (Stage::Recipient, "556 5.1.10 Null MX", Failed, NullMx),
        (Stage::Recipient, "451 4.7.1 Rate limit", Deferred, Throttled),
        (Stage::Recipient, "550 5.6.7 No SMTPUTF8", Failed, Utf8Unsupported),
        (Stage::FinalDot, "554 5.6.0 Spam", Failed, MessageRefused),
        (Stage::FinalDot, "554 5.4.6 Too many hops", Failed, MailLoop),
        (Stage::FinalDot, "452 4.3.1 No space", Deferred, Throttled),
        (Stage::Data, "421 4.3.2 Going down", Deferred, Throttled),
        (Stage::Greeting, "554 No mail from you", Failed, GreetingRefused),
        (Stage::Greeting, "521 No mail here", Failed, GreetingRefused),
        (Stage::StartTls, "454 4.7.0 Not now", Deferred, TlsUnavailable),
        (Stage::StartTls, "554 5.7.0 Never", Deferred, TlsUnavailable),
        (Stage::Login, "535 5.7.8 Wrong", Deferred, LoginFailed),
        (Stage::Sender, "530 5.7.0 Log in first", Deferred, LoginFailed),
        (Stage::Sender, "550 5.1.8 Bad sender", Failed, SenderRefused),
        (Stage::Recipient, "354 what", Deferred, ProtocolBroken),
    ] {
        assert_eq!(classify(stage, &reply(text)), (ending, cause), "{stage:?} {text}");
    }
}

#[test]
fn each_recipient_has_an_outcome_of_his_own() {
    let report = session(
        &["250 Ok", "550 5.1.1 No such user", "450 4.2.1 Later"],
        SessionEnd::Answered(reply("250 2.0.0 Taken")),
    );
    let outcomes = report.outcomes(3);
    let endings: Vec<_> = outcomes.iter().map(|outcome| outcome.ending).collect();
    assert_eq!(endings, [Ending::Relayed, Ending::Failed, Ending::Deferred]);
    assert_eq!(outcomes[1].status.to_string(), "5.1.1");
    assert_eq!(outcomes[1].reply.as_deref(), Some("550 5.1.1 No such user"));
    assert_eq!(report.effect(), Effect::Delivered);
    assert!(!report.tries_next_host());
    // LMTP answers for each whom RCPT accepted (RFC 2033, section 4.2).
    let mut lmtp = session(
        &["250 Ok", "550 5.1.1 No", "250 Ok"],
        SessionEnd::AnsweredEach(vec![reply("250 2.0.0 Ok"), reply("452 4.2.2 Full")]),
    );
    lmtp.is_final = true;
    let endings: Vec<_> = lmtp.outcomes(3).iter().map(|outcome| outcome.ending).collect();
    assert_eq!(endings, [Ending::Delivered, Ending::Failed, Ending::Deferred]);
}

#[test]
fn an_answer_that_was_lost_is_unknown_for_those_who_were_accepted() {
    let report = session(&["250 Ok", "550 5.1.1 No"], broken(Stage::FinalDot, Trouble::TimedOut));
    let endings: Vec<_> = report.outcomes(2).iter().map(|outcome| outcome.ending).collect();
    assert_eq!(endings, [Ending::Unknown, Ending::Failed]);
    assert!(!report.tries_next_host(), "another host might deliver it twice");
    let lmtp = session(&["250 Ok", "250 Ok"], SessionEnd::AnsweredEach(vec![reply("250 Ok")]));
    assert_eq!(lmtp.outcomes(2)[1].ending, Ending::Unknown);
}

#[test]
fn a_server_that_leaves_without_a_word_is_known_by_its_last_answer() {
    let report = session(&["451 4.7.1 Too fast"], broken(Stage::Recipient, Trouble::Closed));
    let outcomes = report.outcomes(2);
    assert_eq!(outcomes[1].cause, Cause::ClosedInSession);
    assert_eq!(outcomes[1].reply.as_deref(), Some("451 4.7.1 Too fast"));
}

#[test]
fn hosts_and_destinations_learn_from_what_concerns_them() {
    for (end, effect, next) in [
        (broken(Stage::Connect, Trouble::Refused), Effect::Unreachable, true),
        (broken(Stage::Connect, Trouble::TimedOut), Effect::Unreachable, true),
        (broken(Stage::Greeting, Trouble::Closed), Effect::Unreachable, true),
        (broken(Stage::StartTls, Trouble::Tls), Effect::Unreachable, true),
        (broken(Stage::Data, Trouble::Closed), Effect::Throttled, true),
        (broken(Stage::FinalDot, Trouble::Closed), Effect::Throttled, false),
        (broken(Stage::Sender, Trouble::NoUtf8), Effect::Reached, true),
        (refused(Stage::Greeting, "554 No"), Effect::Unreachable, true),
        (refused(Stage::Sender, "421 4.7.0 Enough"), Effect::Throttled, true),
        (refused(Stage::Sender, "451 4.7.1 Slow down"), Effect::Throttled, true),
        (refused(Stage::Sender, "550 5.1.8 Bad sender"), Effect::Reached, false),
        (SessionEnd::Answered(reply("554 5.6.0 Spam")), Effect::Reached, false),
        (SessionEnd::Answered(reply("421 4.3.2 Down")), Effect::Throttled, false),
        (SessionEnd::NobodyAccepted, Effect::Reached, false),
    ] {
        let report = session(&[], end);
        assert_eq!((report.effect(), report.tries_next_host()), (effect, next), "{report:?}");
    }
}

#[test]
fn a_round_over_several_hosts_is_as_hopeful_as_the_best() {
    let failed = Outcome::new(Ending::Failed, Cause::GreetingRefused);
    let deferred = Outcome::new(Ending::Deferred, Cause::ConnectionRefused);
    let unknown = Outcome::new(Ending::Unknown, Cause::AnswerLost);
    assert_eq!(merge(failed.clone(), deferred.clone()), deferred);
    assert_eq!(merge(deferred.clone(), failed.clone()), deferred);
    assert_eq!(merge(unknown.clone(), failed.clone()), unknown);
    assert_eq!(merge(failed.clone(), failed.clone()), failed, "all say no, so it is no");
}

#[test]
fn a_code_of_another_class_than_its_reply_is_not_believed() {
    let report = session(&["550 2.1.5 Odd"], SessionEnd::NobodyAccepted);
    assert_eq!(report.outcomes(1)[0].status.to_string(), "5.1.0");
    let report = session(&["552 5.5.3 Too many recipients"], SessionEnd::NobodyAccepted);
    let outcome = report.outcomes(1).remove(0);
    assert_eq!((outcome.ending, outcome.status.class()), (Ending::Deferred, 4));
}
