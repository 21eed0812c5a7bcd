//! The checkers of histories, against orders that are found by trying all.

use proptest::prelude::*;
use scrinium_cluster::history::{
    AppendList, ListAnswer, ListOperation, Model, Recorded, Register, RegisterAnswer, RegisterOperation,
    Verdict, Witnessed, check_linearizable, check_order,
};
use scrinium_log::Sequence;

/// Whether some order explains the rest, by trying all.
fn explains<M: Model>(history: &[Recorded<M>], done: &mut Vec<usize>, state: &M::State) -> bool {
    if (0..history.len()).all(|place| done.contains(&place) || history[place].answer.is_none()) {
        return true;
    }
    let end = |place: &usize| history[*place].answer.as_ref().map_or(u64::MAX, |(ended, _)| *ended);
    let left: Vec<usize> = (0..history.len()).filter(|place| !done.contains(place)).collect();
    let first_end = left.iter().map(end).min().unwrap();
    left.iter().filter(|place| history[**place].begun <= first_end).any(|place| {
        let Recorded { operation, answer, .. } = &history[*place];
        let Some(next) = M::step(state, operation, answer.as_ref().map(|(_, answer)| answer)) else {
            return false;
        };
        done.push(*place);
        let found = explains(history, done, &next);
        done.pop();
        found
    })
}

fn register() -> impl Strategy<Value = Recorded<Register>> {
    let value = || prop_oneof![Just(None), (1_u64..3).prop_map(Some)];
    let done = || prop_oneof![4 => Just(RegisterAnswer::Done), 1 => Just(RegisterAnswer::Conflict)];
    let asked = prop_oneof![
        value().prop_map(|value| (RegisterOperation::Read, RegisterAnswer::Value(value))),
        (1_u64..3).prop_map(|value| (RegisterOperation::Write(value), RegisterAnswer::Done)),
        (value(), 1_u64..3, done())
            .prop_map(|(expected, new, done)| (RegisterOperation::CompareAndSet { expected, new }, done)),
    ];
    (0_u64..12, 0_u64..6, asked, 0_u8..6).prop_map(|(begun, took, (operation, answer), known)| {
        let answer = (known > 0).then_some((begun + took, answer));
        Recorded { begun, operation, answer }
    })
}

proptest! {
    #[test]
    fn the_search_finds_an_order_where_there_is_one(history in prop::collection::vec(register(), 0..7)) {
        let found = explains(&history, &mut Vec::new(), &Register::initial());
        let verdict = check_linearizable(&history, 1_000_000);
        prop_assert_eq!(verdict == Verdict::Linearizable, found, "{:?}", verdict);
        prop_assert!(verdict != Verdict::TooLong);
    }

    #[test]
    fn numbers_follow_time(times in prop::collection::vec((0_u64..30, 0_u64..8, 0_u64..8, any::<bool>()), 0..12)) {
        let history: Vec<Witnessed> = times
            .into_iter()
            .map(|(begun, took, number, wrote)| {
                Witnessed { begun, ended: begun + took, number: Sequence(number), wrote }
            })
            .collect();
        let wrong = |earlier: &Witnessed, later: &Witnessed| {
            earlier.ended < later.begun
                && (later.number < earlier.number || later.wrote && later.number == earlier.number)
        };
        let expected = history.iter().enumerate().any(|(at, one)| {
            history.iter().enumerate().any(|(other_at, other)| {
                wrong(one, other) || at != other_at && one.wrote && other.wrote && one.number == other.number
            })
        });
        prop_assert_eq!(check_order(&history).is_err(), expected);
    }
}

#[test]
fn a_read_that_misses_an_answered_append_is_found() {
    let append = |begun, value, ended| Recorded::<AppendList> {
        begun,
        operation: ListOperation::Append { value, place: None },
        answer: Some((ended, ListAnswer::Done)),
    };
    let read = |begun, values: &[u64]| Recorded::<AppendList> {
        begun,
        operation: ListOperation::Read,
        answer: Some((begun + 1, ListAnswer::Values(values.to_vec()))),
    };
    let fresh = [append(0, 1, 2), append(3, 2, 4), read(5, &[1, 2])];
    assert_eq!(check_linearizable(&fresh, 100), Verdict::Linearizable);
    let old = [append(0, 1, 2), append(3, 2, 4), read(5, &[1])];
    assert_eq!(check_linearizable(&old, 100), Verdict::Violated { explained: 2 });
    let unknown = Recorded { answer: None, ..append(0, 7, 0) };
    let late = [unknown.clone(), append(1, 1, 2), read(3, &[1]), read(5, &[1, 7])];
    assert_eq!(
        check_linearizable(&late, 100),
        Verdict::Linearizable,
        "it took effect long after it was asked for"
    );
    let twice = [unknown, append(1, 1, 2), read(3, &[1, 7]), read(5, &[1])];
    assert!(matches!(check_linearizable(&twice, 100), Verdict::Violated { .. }), "what was seen stays");
    for (history, expected) in [(&late[..], true), (&old, false), (&twice, false), (&fresh, true)] {
        let placed = AppendList::with_places(history.to_vec());
        assert_eq!(check_linearizable(&placed, 100) == Verdict::Linearizable, expected);
    }
}

#[test]
fn long_histories_of_few_clients_are_checked_in_time() {
    let mut history = Vec::new();
    for at in 0..5_000_u64 {
        let answer = Some((at * 10 + 25, RegisterAnswer::Done));
        history.push(Recorded::<Register> {
            begun: at * 10,
            operation: RegisterOperation::Write(at),
            answer,
        });
    }
    assert_eq!(check_linearizable(&history, 100_000), Verdict::Linearizable);
    assert_eq!(check_linearizable(&history, 100), Verdict::TooLong);
}
