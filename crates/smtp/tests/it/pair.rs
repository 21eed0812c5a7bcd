//! Our client against our server, through any pieces: what one sends is what the other has, whatever is said.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_smtp::client::{ClientOptions, ClientRequest, Outcome, Outgoing, Protocol, Reason};
use scrinium_smtp::{ClientSession, Service};
use scrinium_smtp_wire::{Command, ForwardPath, ReversePath};

use crate::world::{NOW_MS, Port, encryption, options};

const LOCALS: [&str; 6] = ["ada", "bob", "nobody", "full", "quota", "far"];

fn path(local: &str) -> ForwardPath {
    match Command::parse(format!("RCPT TO:<{local}@mx.test>").as_bytes()) {
        Ok(Command::Recipient(path, _)) => path,
        other => panic!("{other:?}"),
    }
}

#[derive(Clone, Debug)]
struct Plan {
    messages: Vec<(Vec<&'static str>, String)>,
    is_lmtp: bool,
    by_chunks: bool,
    piece: usize,
    text_piece: usize,
    window: usize,
}

fn plan() -> impl Strategy<Value = Plan> {
    let text = vec(
        prop::sample::select(vec![
            "a: b\r\n",
            "\r\n",
            ".",
            "..\r\n",
            ".\r\n",
            "é",
            "x\r\n",
            "MAIL FROM:<>\r\n",
        ]),
        0..20,
    )
    .prop_map(|pieces| format!("{}\r\n", pieces.concat()));
    let message = (vec(prop::sample::select(LOCALS.to_vec()), 1..6), text);
    (vec(message, 1..4), any::<bool>(), any::<bool>(), 1_usize..50, 1_usize..30, 1_usize..8).prop_map(
        |(messages, is_lmtp, by_chunks, piece, text_piece, window)| Plan {
            messages,
            is_lmtp,
            by_chunks,
            piece,
            text_piece,
            window,
        },
    )
}

/// Sends all messages over one connection; the outcomes of each. The connection is lost when the server has sent and the client has
/// sent as much as `cut` says, if they get there.
fn run(plan: &Plan, port: &mut Port, cut: (usize, usize)) -> Vec<Vec<Outcome>> {
    let protocol = if plan.is_lmtp { Protocol::Lmtp } else { Protocol::Smtp };
    let mut client_options = ClientOptions::new(protocol, "out.test");
    client_options.prefers_chunks = plan.by_chunks;
    client_options.limits.commands_in_flight = plan.window;
    let mut client = ClientSession::new(client_options, None, NOW_MS);
    let mut outcomes = Vec::new();
    let mut left = plan.messages.iter();
    let (mut text, mut given) = ("", 0);
    client.receive(port.sent.as_bytes(), NOW_MS);
    let (mut to_client, mut to_server) = cut;
    for _ in 0..10_000 {
        match client.next(NOW_MS) {
            Some(ClientRequest::Ready) => match left.next() {
                Some((recipients, own)) => {
                    (text, given) = (own, 0);
                    let recipients = recipients.iter().map(|local| path(local)).collect();
                    assert!(client.send(Outgoing::new(ReversePath::Null, recipients), NOW_MS));
                }
                None => client.quit(NOW_MS),
            },
            Some(ClientRequest::Text) => {
                let piece = &text.as_bytes()[given..(given + plan.text_piece).min(text.len())];
                given += piece.len();
                if piece.is_empty() { client.end_text() } else { client.give_text(piece) }
            }
            Some(ClientRequest::Done(done)) => outcomes.push(done),
            Some(ClientRequest::StartTls) => {
                client.tls_started(encryption().bindings, NOW_MS);
                continue;
            }
            Some(ClientRequest::Failed(said)) => assert_eq!(said.reason, Reason::Lost),
            None if client.is_closed() => return outcomes,
            None => {}
        }
        let output = client.take_output();
        let arrives = output.len().min(to_server);
        let said = port.give(&output[..arrives], plan.piece);
        let heard = said.len().min(to_client);
        (to_server, to_client) = (to_server - arrives, to_client - heard);
        let said = &said[..heard];
        for piece in said.as_bytes().chunks(plan.piece) {
            client.receive(piece, NOW_MS);
        }
        if to_server == 0 || to_client == 0 {
            client.disconnected();
            port.session.disconnected();
            port.turn(NOW_MS);
        }
        assert!(client.held_bytes() < 200_000 && port.held_max < 200_000);
    }
    panic!("it does not end")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn what_is_delivered_is_there_once_and_byte_for_byte(plan in plan()) {
        let service = if plan.is_lmtp { Service::Lmtp } else { Service::Relay };
        let mut port = Port::new(options(service));
        let outcomes = run(&plan, &mut port, (usize::MAX, usize::MAX));
        prop_assert_eq!(outcomes.len(), plan.messages.len());
        let mut stored = port.world.stored.iter();
        for ((recipients, text), outcomes) in plan.messages.iter().zip(&outcomes) {
            let taken: Vec<String> = recipients
                .iter()
                .filter(|local| matches!(**local, "ada" | "bob" | "quota"))
                .map(|local| format!("<{local}@mx.test>"))
                .collect();
            for (local, outcome) in recipients.iter().zip(outcomes) {
                let fits = match (*local, outcome) {
                    ("quota", outcome) if plan.is_lmtp => matches!(outcome, Outcome::Deferred(_)),
                    ("ada" | "bob" | "quota", outcome) => matches!(outcome, Outcome::Delivered { .. }),
                    ("full", outcome) => matches!(outcome, Outcome::Deferred(_)),
                    (_, outcome) => matches!(outcome, Outcome::Failed(_)),
                };
                prop_assert!(fits, "{}: {:?}", local, outcome);
            }
            if !taken.is_empty() {
                let stored = stored.next().expect("a message");
                prop_assert_eq!(stored.recipients(), taken);
                prop_assert_eq!(stored.own_text(), text);
            }
        }
        prop_assert!(stored.next().is_none() && port.world.open.is_none() && port.session.is_closed());
    }

    #[test]
    fn what_is_known_of_a_message_is_true_wherever_the_connection_is_lost(
        plan in plan(),
        to_client in prop_oneof![1_usize..900, Just(usize::MAX)],
        to_server in prop_oneof![1_usize..900, Just(usize::MAX)],
    ) {
        let service = if plan.is_lmtp { Service::Lmtp } else { Service::Relay };
        let mut port = Port::new(options(service));
        let outcomes = run(&plan, &mut port, (to_client, to_server));
        prop_assert!(port.world.open.is_none());
        let mut stored = port.world.stored.iter();
        for ((recipients, _), outcomes) in plan.messages.iter().zip(&outcomes) {
            let is_there = |outcome: &Outcome| matches!(outcome, Outcome::Delivered { .. });
            let may_be_there = |outcome: &Outcome| matches!(outcome, Outcome::Unknown(_));
            // For LMTP the world keeps a text also where a recipient's quota is full.
            let is_full = |local: &str| plan.is_lmtp && local == "quota";
            let sure = outcomes.iter().any(is_there);
            let perhaps = outcomes.iter().any(may_be_there) || recipients.iter().any(|local| is_full(local));
            if sure {
                prop_assert!(stored.next().is_some(), "{:?}", outcomes);
            } else if perhaps {
                stored.next();
            }
        }
        prop_assert!(stored.next().is_none(), "a message is there that nobody knows of: {:?}", outcomes);
    }
}
