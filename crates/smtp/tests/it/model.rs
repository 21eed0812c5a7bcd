//! A random client against a model of what a server knows.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_smtp::Service;

use crate::world::{Port, codes, options};

#[derive(Clone, Copy, Debug)]
enum Act {
    Hello,
    Reset,
    Noop,
    Unknown,
    Mail,
    WrongMail,
    Recipient,
    NoRecipient,
    /// DATA, and a text with a bare LF or without, if the server asks for it.
    Data {
        is_bare: bool,
    },
    Chunk {
        is_last: bool,
        is_bare: bool,
    },
    StartTls,
}

/// What a server knows of a client.
#[derive(Default)]
struct Model {
    is_greeted: bool,
    is_encrypted: bool,
    has_sender: bool,
    recipients: usize,
    /// A chunk arrived.
    has_text: bool,
    stored: usize,
    is_closed: bool,
}

impl Model {
    fn forget(&mut self) {
        (self.has_sender, self.recipients, self.has_text) = (false, 0, false);
    }

    /// The codes of the replies.
    fn act(&mut self, act: Act) -> Vec<u16> {
        if self.is_closed {
            return Vec::new();
        }
        let code = match act {
            Act::Hello => {
                self.forget();
                self.is_greeted = true;
                250
            }
            Act::Reset => {
                self.forget();
                250
            }
            Act::Noop => 250,
            Act::Unknown => 500,
            Act::WrongMail => 501,
            Act::Mail if !self.is_greeted || self.has_sender => 503,
            Act::Mail => {
                self.has_sender = true;
                250
            }
            Act::Recipient | Act::NoRecipient if !self.has_sender || self.has_text => 503,
            Act::NoRecipient => 550,
            Act::Recipient => {
                self.recipients += 1;
                250
            }
            Act::Data { .. } | Act::Chunk { .. } if !self.has_sender => 503,
            Act::Data { .. } | Act::Chunk { .. } if self.recipients == 0 => 554,
            Act::Data { .. } if self.has_text => 503,
            Act::Data { is_bare } => {
                self.forget();
                self.stored += usize::from(!is_bare);
                self.is_closed = is_bare;
                return if is_bare { vec![354, 550, 421] } else { vec![354, 250] };
            }
            Act::Chunk { is_bare: true, .. } => {
                self.forget();
                550
            }
            Act::Chunk { is_last, .. } => {
                self.has_text = true;
                if is_last {
                    self.forget();
                    self.stored += 1;
                }
                250
            }
            Act::StartTls if self.is_encrypted => 503,
            Act::StartTls => {
                self.forget();
                (self.is_greeted, self.is_encrypted) = (false, true);
                220
            }
        };
        vec![code]
    }
}

fn play(port: &mut Port, act: Act, piece: usize) -> Vec<u16> {
    let input: &[u8] = match act {
        Act::Hello => b"EHLO x\r\n",
        Act::Reset => b"RSET\r\n",
        Act::Noop => b"NOOP\r\n",
        Act::Unknown => b"XYZ\r\n",
        Act::Mail => b"MAIL FROM:<a@b.test>\r\n",
        Act::WrongMail => b"MAIL FROM:<a@b.test> SIZE=x\r\n",
        Act::Recipient => b"RCPT TO:<ada@mx.test>\r\n",
        Act::NoRecipient => b"RCPT TO:<nobody@mx.test>\r\n",
        Act::Data { .. } => b"DATA\r\n",
        Act::Chunk { is_last: false, is_bare: false } => b"BDAT 6\r\nx: y\r\n",
        Act::Chunk { is_last: true, is_bare: false } => b"BDAT 6 LAST\r\nx: y\r\n",
        Act::Chunk { is_last: false, is_bare: true } => b"BDAT 6\r\nx:\n\r\nz",
        Act::Chunk { is_last: true, is_bare: true } => b"BDAT 6 LAST\r\nx: \ny\n",
        Act::StartTls => b"STARTTLS\r\n",
    };
    let mut said = codes(&port.give(input, piece));
    if let (Act::Data { is_bare }, Some(354)) = (act, said.first()) {
        let text: &[u8] = if is_bare { b"x\n.\r\n\r\n.\r\n" } else { b"x: y\r\n\r\n..\r\n.\r\n" };
        said.extend(codes(&port.give(text, piece)));
    }
    said
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => Just(Act::Hello),
        1 => Just(Act::Reset),
        1 => Just(Act::Noop),
        1 => Just(Act::Unknown),
        5 => Just(Act::Mail),
        1 => Just(Act::WrongMail),
        5 => Just(Act::Recipient),
        1 => Just(Act::NoRecipient),
        2 => any::<bool>().prop_map(|is_bare| Act::Data { is_bare }),
        4 => any::<(bool, bool)>().prop_map(|(is_last, is_bare)| Act::Chunk { is_last, is_bare }),
        1 => Just(Act::StartTls),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_server_knows_what_the_model_knows(acts in vec(act(), 0..40), piece in 1_usize..30) {
        let mut options = options(Service::Relay);
        options.limits.errors = 1000;
        let (mut port, mut model) = (Port::new(options), Model::default());
        for (at, act) in acts.into_iter().enumerate() {
            prop_assert_eq!(play(&mut port, act, piece), model.act(act), "act {}: {:?}", at, act);
            prop_assert_eq!(port.world.stored.len(), model.stored);
            prop_assert_eq!(port.world.open.is_some(), model.has_text);
        }
    }
}
