//! Databases that are opened and closed all the time.

use crate::common::{Server, get, put};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use scrinium_database::DatabaseOptions;
use serde_json::json;

const DATABASES: usize = 12;
const THREADS: u64 = 4;
const ROUNDS: u64 = 400;

/// Two are kept ready, so that nearly every request opens one. A second one of the same database would give numbers of
/// changes twice, and lose documents.
#[test]
fn however_many_open_a_database_at_once_there_is_one_of_it() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let server = Server::with(DatabaseOptions { idle_databases: 2, ..DatabaseOptions::default() });
    let name = |number: usize| format!("d{number}");
    (0..DATABASES).for_each(|number| {
        drop(server.databases.create(&name(number), &scrinium_database::InitialAccess::Everybody).unwrap());
    });
    let written: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let databases = &server.databases;
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed ^ thread);
                    let (own, mut written) = (format!("own-{thread}"), Vec::new());
                    for round in 0..ROUNDS {
                        let number = random.random_range(0..DATABASES);
                        let id = format!("{thread}-{}", written.len());
                        put(&databases.get(&name(number)).unwrap(), &json!({"_id": id})).unwrap();
                        written.push(number);
                        let earlier = random.random_range(0..written.len());
                        let there = databases.get(&name(written[earlier])).unwrap();
                        assert!(get(&there, &format!("{thread}-{earlier}")).is_ok(), "seed {seed}");
                        if round % 20 == 0 {
                            drop(
                                databases.create(&own, &scrinium_database::InitialAccess::Everybody).unwrap(),
                            );
                            put(&databases.get(&own).unwrap(), &json!({"_id": "x"})).unwrap();
                            databases.delete(&own).unwrap();
                            assert!(databases.get(&own).is_err(), "seed {seed}: it is gone");
                        }
                    }
                    written
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let server = server.reopen();
    for number in 0..DATABASES {
        let of_this = written.iter().flatten().filter(|written| **written == number).count() as u64;
        let info = server.databases.get(&name(number)).unwrap().info().unwrap();
        assert_eq!((info.document_count, info.change_number), (of_this, of_this), "seed {seed}: {number}");
    }
}
