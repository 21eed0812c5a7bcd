//! Transactions in etcd's form, and its answers.

use bytes::Bytes;
use scrinium_cluster::{Compare, Operation, Reply, Revision, StoredKey, Transaction};

use super::messages::{KeyValue, Question, Response, TxnResponse};
use super::protobuf::Writer;

/// What a comparison looks at, how keys are sorted.
const CREATED_AT: u64 = 1;
const CHANGED_AT: u64 = 2;
const DESCENDING: u64 = 2;

impl Question for Transaction {
    fn write(&self, writer: &mut Writer) {
        self.compares.iter().for_each(|compare| writer.message(1, |inner| write_compare(inner, compare)));
        for (field, operations) in [(2, &self.then), (3, &self.otherwise)] {
            let sent = operations.iter().filter(|operation| !is_void(operation));
            sent.for_each(|operation| writer.message(field, |inner| write_operation(inner, operation)));
        }
    }
}

/// The result that is wanted, equality, is 0.
fn write_compare(writer: &mut Writer, compare: &Compare) {
    let (target, key, field, revision) = match compare {
        Compare::Unchanged { key, since } => (CHANGED_AT, key, 6, since.0),
        // A key that is not there was created at revision 0.
        Compare::Absent { key } => (CREATED_AT, key, 5, 0),
    };
    writer.number(2, target);
    writer.bytes(3, key);
    writer.chosen_number(field, revision);
}

fn write_operation(writer: &mut Writer, operation: &Operation) {
    match operation {
        Operation::Get { key } => writer.message(1, |range| range.bytes(1, key)),
        Operation::Range { from, to, limit, descending } => writer.message(1, |range| {
            range.bytes(1, from);
            range.bytes(2, to);
            range.number(3, u64::try_from(*limit).unwrap_or(u64::MAX >> 1));
            range.number(5, if *descending { DESCENDING } else { 0 });
        }),
        Operation::Put { key, value } => writer.message(2, |put| {
            put.bytes(1, key);
            put.bytes(2, value);
        }),
        Operation::Delete { from, to } => writer.message(3, |delete| {
            delete.bytes(1, from);
            delete.bytes(2, to);
        }),
    }
}

/// Known to find and change nothing, and not sent: an empty end of a range, and no limit, have meanings of their own in etcd.
fn is_void(operation: &Operation) -> bool {
    match operation {
        Operation::Range { from, to, limit, .. } => from >= to || *limit == 0,
        Operation::Delete { from, to } => from >= to,
        Operation::Put { .. } | Operation::Get { .. } => false,
    }
}

/// The answer to a transaction, or what is wrong with it.
pub(super) fn reply_of(transaction: &Transaction, response: TxnResponse) -> Result<Reply, &'static str> {
    let revision = Revision(response.header.ok_or("an answer has no header")?.revision);
    let operations = if response.succeeded { &transaction.then } else { &transaction.otherwise };
    let mut responses = response.responses.into_iter();
    let mut found = Vec::new();
    for operation in operations {
        if is_void(operation) {
            if matches!(operation, Operation::Range { .. }) {
                found.push(Vec::new());
            }
            continue;
        }
        match (operation, responses.next()) {
            (Operation::Put { .. }, Some(Response::Put))
            | (Operation::Delete { .. }, Some(Response::Delete)) => {}
            (Operation::Get { key }, Some(Response::Range(range))) => {
                found.push(stored(range, 1, |other| other == key)?);
            }
            (Operation::Range { from, to, limit, .. }, Some(Response::Range(range))) => {
                found.push(stored(range, *limit, |other| (from..to).contains(&other))?);
            }
            _ => return Err("an answer lacks a part, or has another one"),
        }
    }
    if responses.next().is_some() {
        return Err("an answer has more parts than were asked for");
    }
    Ok(Reply { revision, succeeded: response.succeeded, found })
}

fn stored(
    found: Vec<KeyValue>,
    limit: usize,
    fits: impl Fn(&Bytes) -> bool,
) -> Result<Vec<StoredKey>, &'static str> {
    if found.len() > limit || !found.iter().all(|found| fits(&found.key)) {
        return Err("an answer has keys that were not asked for");
    }
    let stored = found.into_iter().map(|KeyValue { key, mod_revision, value }| StoredKey {
        key,
        value,
        revision: Revision(mod_revision),
    });
    Ok(stored.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::messages::{Answer, Header};
    use super::*;

    fn look() -> Transaction {
        let (from, to) = (Bytes::from_static(b"a"), Bytes::from_static(b"b"));
        Transaction {
            compares: vec![Compare::Absent { key: from.clone() }],
            then: vec![
                Operation::Get { key: from.clone() },
                Operation::Put { key: to.clone(), value: to.clone() },
            ],
            otherwise: vec![Operation::Range { from, to, limit: 2, descending: true }],
        }
    }

    /// As etcd writes it.
    fn answer(keys: &[&str]) -> Bytes {
        let mut writer = Writer::default();
        writer.message(1, |header| header.number(3, 9));
        writer.message(3, |response| {
            response.message(1, |range| {
                for key in keys {
                    range.message(2, |found| {
                        found.bytes(1, key.as_bytes());
                        found.number(3, 7);
                        found.bytes(5, b"v");
                    });
                }
            });
        });
        writer.finish()
    }

    fn read(bytes: Bytes) -> Result<Reply, &'static str> {
        reply_of(&look(), TxnResponse::decode(bytes)?)
    }

    #[test]
    fn an_answer_is_what_was_asked_for() {
        let reply = read(answer(&["a1", "a2"])).unwrap();
        assert_eq!((reply.revision, reply.succeeded, reply.found[0].len()), (Revision(9), false, 2));
        for strange in [&["a1", "a2", "a3"][..], &["b"]] {
            assert!(read(answer(strange)).is_err());
        }
    }

    proptest! {
        /// Whatever comes is an answer with what was asked for, or none.
        #[test]
        fn bytes_of_anybody_make_no_answer_that_was_not_asked_for(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), at in any::<usize>(), bit in 0_u8..8,
        ) {
            let mut changed = answer(&["a1", "a2"]).to_vec();
            let at = at % changed.len();
            changed[at] ^= 1 << bit;
            for bytes in [bytes, changed] {
                let Ok(reply) = read(bytes.into()) else { continue };
                if !reply.succeeded {
                    prop_assert_eq!(reply.found.len(), 1);
                    prop_assert!(reply.found[0].len() <= 2);
                    prop_assert!(reply.found[0].iter().all(|stored| stored.key >= "a" && stored.key < "b"));
                }
            }
        }
    }

    #[test]
    fn what_finds_nothing_is_not_sent() {
        let key = Bytes::from_static(b"k");
        let void = Operation::Range { from: key.clone(), to: key.clone(), limit: 1, descending: false };
        let then =
            vec![void, Operation::Delete { from: key.clone(), to: Bytes::new() }, Operation::Get { key }];
        let transaction = Transaction { then, ..Transaction::default() };
        // One operation: field 2, a range (1) of the key (1) "k".
        assert_eq!(transaction.encode(), &b"\x12\x05\x0a\x03\x0a\x01k"[..]);
        let responses = vec![Response::Range(Vec::new())];
        let response = TxnResponse { header: Some(Header::default()), succeeded: true, responses };
        assert_eq!(reply_of(&transaction, response).unwrap().found, vec![vec![], vec![]]);
    }
}
