//! Greylisting against time.

use std::cell::RefCell;
use std::collections::HashMap;

use proptest::prelude::*;
use scrinium_mail_filters::greylist::{GreyDecision, GreyKey, GreyPolicy, GreyRecord, GreyStore, decide};

#[derive(Default)]
struct Memory(RefCell<HashMap<GreyKey, (GreyRecord, u64)>>);

impl GreyStore for Memory {
    fn get(&self, key: &GreyKey) -> Option<GreyRecord> {
        self.0.borrow().get(key).map(|(record, _)| *record)
    }

    fn keep(&self, key: &GreyKey, record: GreyRecord, until_seconds: u64) {
        self.0.borrow_mut().insert(key.clone(), (record, until_seconds));
    }
}

fn key(address: &str, sender: &str) -> GreyKey {
    GreyKey::new(address.parse().unwrap(), sender, "Eve@example.org")
}

#[test]
fn who_comes_again_in_time_passes_and_stays_known() {
    let (store, policy) = (Memory::default(), GreyPolicy::default());
    let ada = key("192.0.2.1", "ada@example.com");
    let at = |key: &GreyKey, now| decide(&store, key, &policy, now);
    assert_eq!(at(&ada, 1_000), GreyDecision::Defer(300));
    assert_eq!(at(&ada, 1_100), GreyDecision::Defer(200), "coming early does not begin it from the start");
    assert_eq!(at(&ada, 1_300), GreyDecision::Pass);
    assert_eq!(at(&ada, 1_301), GreyDecision::Pass);
    assert_eq!(
        at(&key("192.0.2.200", "ADA@example.com"), 1_302),
        GreyDecision::Pass,
        "another host of the network"
    );
    assert_eq!(at(&key("192.0.3.1", "ada@example.com"), 1_302), GreyDecision::Defer(300));
    let month = 30 * 24 * 60 * 60;
    assert_eq!(at(&ada, 1_302 + month), GreyDecision::Pass, "once a month is often enough");
    assert_eq!(at(&ada, 1_302 + 3 * month), GreyDecision::Defer(300));
    assert_eq!(
        at(&ada, 1_302 + 3 * month + 25 * 60 * 60),
        GreyDecision::Defer(300),
        "a day later is too late"
    );
}

#[test]
fn senders_that_change_with_each_message_are_one() {
    assert_eq!(
        key("192.0.2.1", "bounce-123-eve@list.example"),
        key("192.0.2.9", "bounce-98765-eve@list.example")
    );
    assert_ne!(key("192.0.2.1", "a1@list1.example"), key("192.0.2.1", "a1@list2.example"));
    assert_eq!(key("2001:db8::1", "a@b.example"), key("2001:db8::ffff", "a@b.example"));
    assert_eq!(key("::ffff:192.0.2.1", "a@b.example"), key("192.0.2.7", "a@b.example"));
}

proptest! {
    /// Whatever the clock does, an attempt that waits as it is asked to passes the second time.
    #[test]
    fn nobody_waits_for_ever(times in prop::collection::vec(0_u64..10_000_000, 0..20)) {
        let (store, policy) = (Memory::default(), GreyPolicy::default());
        let ada = key("192.0.2.1", "ada@example.com");
        for now in times {
            if let GreyDecision::Defer(seconds) = decide(&store, &ada, &policy, now) {
                prop_assert!(seconds <= policy.delay_seconds);
                prop_assert_eq!(decide(&store, &ada, &policy, now + seconds), GreyDecision::Pass);
            }
        }
    }
}
