//! Which connection goes when one too many comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use scrinium_accounting::{
    AccountOptions, Accounts, Busy, Connection, ConnectionRefusal, Holder, HolderLimits, NetworkPrefixes,
};

fn accounts(all: usize, each: usize) -> Accounts {
    let limits = HolderLimits { connections: each, ..HolderLimits::NONE };
    Accounts::new(AccountOptions {
        connections: all,
        network: limits,
        person: limits,
        ..AccountOptions::default()
    })
}

fn network(last: u8) -> Holder {
    let address = std::net::Ipv4Addr::new(192, 0, 2, last).into();
    Holder::Network(scrinium_accounting::Network::of(address, NetworkPrefixes::default()))
}

/// A connection, and whether it was told to go.
struct Open {
    connection: Arc<Connection>,
    shed: Arc<AtomicBool>,
    busy: Option<Busy>,
}

impl Open {
    fn is_shed(&self) -> bool {
        self.shed.load(Ordering::SeqCst)
    }
}

fn open(accounts: &Accounts, holder: Option<Holder>) -> Result<Open, ConnectionRefusal> {
    let shed = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&shed);
    let connection = accounts.connect(holder, Arc::new(move || told.store(true, Ordering::SeqCst)))?;
    Ok(Open { connection, shed, busy: None })
}

#[test]
fn over_its_limit_a_networks_oldest_idle_connection_goes_and_the_new_one_is_taken() {
    let accounts = accounts(100, 3);
    let other = open(&accounts, Some(network(2))).unwrap();
    let mut first = open(&accounts, Some(network(1))).unwrap();
    let second = open(&accounts, Some(network(1))).unwrap();
    let third = open(&accounts, Some(network(1))).unwrap();
    // The first is at work, and then idle for less long than the others.
    first.busy = Some(first.connection.begin());
    let fourth = open(&accounts, Some(network(1))).unwrap();
    assert!(second.is_shed() && !first.is_shed() && !third.is_shed() && !other.is_shed());
    first.busy = None;
    let fifth = open(&accounts, Some(network(1))).unwrap();
    assert!(third.is_shed() && !first.is_shed());
    drop((second, third));
    let mut busy: Vec<Busy> = [&first, &fourth, &fifth].iter().map(|open| open.connection.begin()).collect();
    let refused = open(&accounts, Some(network(1))).err();
    assert_eq!(refused, Some(ConnectionRefusal::HolderFull { limit: 3 }));
    assert_eq!(accounts.connections_of(&network(1)), 3);
    busy.pop();
    open(&accounts, Some(network(1))).unwrap();
    assert!(fifth.is_shed() && !other.is_shed());
    assert_eq!(accounts.connections_shed(), 3);
}

#[test]
fn when_the_server_is_full_the_oldest_idle_connection_of_all_goes() {
    let accounts = accounts(3, 100);
    let mut one = open(&accounts, Some(network(1))).unwrap();
    let two = open(&accounts, Some(network(2))).unwrap();
    let proxy = open(&accounts, None).unwrap();
    one.busy = Some(one.connection.begin());
    let three = open(&accounts, Some(network(3))).unwrap();
    assert!(two.is_shed() && !one.is_shed());
    let busy = [&proxy, &three].map(|open| open.connection.begin());
    assert_eq!(open(&accounts, Some(network(4))).err(), Some(ConnectionRefusal::ServerFull { limit: 3 }));
    drop(busy);
    assert!(accounts.shed_oldest() && proxy.is_shed());
}

#[test]
fn a_connection_counts_for_the_person_once_somebody_has_logged_in() {
    let accounts = accounts(100, 2);
    let ada = Holder::Person("ada".into());
    let connections: Vec<Open> = (0..2).map(|_| open(&accounts, Some(network(1))).unwrap()).collect();
    for connection in &connections {
        connection.connection.belongs_to(&ada).unwrap();
    }
    assert_eq!((accounts.connections_of(&network(1)), accounts.connections_of(&ada)), (0, 2));
    let third = open(&accounts, Some(network(1))).unwrap();
    assert!(!connections[0].is_shed(), "a network's crowd does not take a person's connections");
    third.connection.belongs_to(&ada).unwrap();
    assert!(connections[0].is_shed() && !connections[1].is_shed() && !third.is_shed());
    drop((connections, third));
    assert_eq!((accounts.connections(), accounts.connections_of(&ada)), (0, 0));
}

proptest! {
    /// Random connections of three networks against a list that is searched.
    #[test]
    fn who_goes_is_who_a_simple_model_says(steps in prop::collection::vec((0..4_u8, 0..3_u8, 0..8_usize), 0..200)) {
        const ALL: usize = 6;
        const EACH: usize = 3;
        let accounts = accounts(ALL, EACH);
        // In the order in which they became idle, or busy; the shed ones are dropped at once.
        let mut opened: Vec<(u8, Open)> = Vec::new();
        for (step, holder, which) in steps {
            match step {
                0 | 1 => {
                    let of = |opened: &[(u8, Open)], holder: u8| opened.iter().filter(|(of, _)| *of == holder).count();
                    let idle = |opened: &[(u8, Open)], holder: Option<u8>| {
                        opened.iter().position(|(of, open)| open.busy.is_none() && holder.is_none_or(|holder| holder == *of))
                    };
                    let mut expected = Vec::new();
                    let mut fails = false;
                    if of(&opened, holder) >= EACH {
                        match idle(&opened, Some(holder)) {
                            Some(index) => expected.push(index),
                            None => fails = true,
                        }
                    }
                    if !fails && opened.len() - expected.len() >= ALL {
                        match idle(&opened, None) {
                            Some(index) => expected.push(index),
                            None => fails = true,
                        }
                    }
                    let new = open(&accounts, Some(network(holder)));
                    prop_assert_eq!(new.is_err(), fails);
                    let shed: Vec<usize> = (0..opened.len()).filter(|index| opened[*index].1.is_shed()).collect();
                    prop_assert_eq!(&shed, &expected);
                    opened.retain(|(_, open)| !open.is_shed());
                    opened.extend(new.ok().map(|new| (holder, new)));
                }
                2 if !opened.is_empty() => {
                    // Becomes busy, or idle: then it is the one that has been idle for least long.
                    let (of, mut open) = opened.remove(which % opened.len());
                    open.busy = if open.busy.is_some() { None } else { Some(open.connection.begin()) };
                    opened.push((of, open));
                }
                3 if !opened.is_empty() => drop(opened.remove(which % opened.len())),
                _ => {}
            }
            prop_assert_eq!(accounts.connections(), opened.len());
        }
    }
}
