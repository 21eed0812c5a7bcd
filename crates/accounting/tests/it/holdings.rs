//! What holders hold, and that all of it is given back.

use proptest::prelude::*;
use scrinium_accounting::{AccountOptions, Accounts, Claim, Holder, HolderLimits, Resource};

fn person(name: &str) -> Holder {
    Holder::Person(name.into())
}

fn accounts() -> Accounts {
    let person = HolderLimits { requests: 3, feeds: 1, bytes: 1000, threads: 2, ..HolderLimits::NONE };
    Accounts::new(AccountOptions { person, ..AccountOptions::default() })
}

#[test]
fn one_holder_gets_no_more_than_its_limit_and_others_notice_nothing() {
    let accounts = accounts();
    let ada = accounts.account(&person("ada"));
    let claims: Vec<Claim> = (0..3).map(|_| ada.claim(Resource::Requests, 1).unwrap()).collect();
    // The same account, no matter who asks for it.
    let refused = accounts.account(&person("ada")).claim(Resource::Requests, 1).unwrap_err();
    assert_eq!((refused.resource, refused.limit), (Resource::Requests, 3));
    accounts.account(&person("bob")).claim(Resource::Requests, 3).unwrap();
    let administrator = accounts.account(&Holder::Administrator("ada".into()));
    administrator.claim(Resource::Requests, 100_000).unwrap();
    drop(claims);
    let mut bytes = ada.claim(Resource::Bytes, 600).unwrap();
    bytes.grow(400).unwrap();
    assert!(bytes.grow(1).is_err() && ada.claim(Resource::Bytes, usize::MAX).is_err());
    assert_eq!((bytes.amount(), ada.held(Resource::Bytes)), (1000, 1000));
    drop(bytes);
    assert_eq!(ada.held(Resource::Bytes), 0);
}

#[test]
fn accounts_take_memory_only_while_something_is_held() {
    let accounts = accounts();
    for number in 0..10_000 {
        let account = accounts.account(&person(&number.to_string()));
        drop(account.claim(Resource::Requests, 1));
    }
    assert_eq!(accounts.holders(), 0);
    let claim = accounts.account(&person("ada")).claim(Resource::Feeds, 1);
    assert_eq!(accounts.holders(), 1, "a claim outlives the account that it was made with");
    assert!(accounts.account(&person("ada")).claim(Resource::Feeds, 1).is_err());
    drop(claim);
    assert_eq!(accounts.holders(), 0);
}

#[test]
fn more_threads_than_a_holder_may_have_are_waited_for() {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    let accounts = accounts();
    let ada = accounts.account(&person("ada"));
    let mut context = Context::from_waker(Waker::noop());
    let mut threads: Vec<_> = (0..2)
        .map(|_| match pin!(ada.thread()).poll(&mut context) {
            Poll::Ready(thread) => thread,
            Poll::Pending => panic!("there are two"),
        })
        .collect();
    let mut third = pin!(ada.thread());
    assert!(third.as_mut().poll(&mut context).is_pending());
    assert!(pin!(accounts.account(&person("bob")).thread()).poll(&mut context).is_ready());
    threads.pop();
    assert!(third.poll(&mut context).is_ready());
}

proptest! {
    /// Whatever is claimed, grown and dropped in whatever order, the sum is that of a simple model.
    #[test]
    fn counts_are_those_of_a_model(steps in prop::collection::vec((0..3_usize, 0..7_u8, 1..600_usize), 0..200)) {
        let accounts = accounts();
        let names = ["ada", "bob", "eve"];
        let mut claims: Vec<Vec<Claim>> = vec![Vec::new(), Vec::new(), Vec::new()];
        for (holder, step, amount) in steps {
            let account = accounts.account(&person(names[holder]));
            let held: usize = claims[holder].iter().map(Claim::amount).sum();
            match step {
                0 | 1 => {
                    let claimed = account.claim(Resource::Bytes, amount);
                    prop_assert_eq!(claimed.is_ok(), held + amount <= 1000);
                    claims[holder].extend(claimed);
                }
                2 => {
                    if let Some(last) = claims[holder].last_mut() {
                        prop_assert_eq!(last.grow(amount).is_ok(), held + amount <= 1000);
                    }
                }
                // What is there already is counted whatever the limit is.
                3 => claims[holder].push(account.claim_made(Resource::Bytes, amount)),
                4 => {
                    if let Some(last) = claims[holder].last_mut() {
                        last.grow_made(amount);
                        prop_assert_eq!(last.is_all(), last.amount() == held + amount);
                    }
                }
                5 => {
                    if let Some(last) = claims[holder].last_mut() {
                        let before = last.amount();
                        last.shrink(amount);
                        prop_assert_eq!(last.amount(), before.saturating_sub(amount));
                    }
                }
                _ => drop(claims[holder].pop()),
            }
            let held: usize = claims[holder].iter().map(Claim::amount).sum();
            prop_assert_eq!(account.held(Resource::Bytes), held);
        }
        claims.clear();
        prop_assert_eq!(accounts.holders(), 0);
    }
}
