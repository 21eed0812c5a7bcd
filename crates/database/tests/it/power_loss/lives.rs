//! The process that is recorded: clients that take their steps, and what continues at the same time.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_database::DatabaseError;

use super::model::{CLIENTS, Client};
use super::world::{World, is_refusal, rows};

/// Where the recorded process says what it was promised.
struct Marks(File);

impl Marks {
    fn open(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        Self(File::create(dir.join("marks")).unwrap())
    }

    fn say(&self, text: &str) {
        (&self.0).write_all(format!("{text}\n").as_bytes()).unwrap();
    }
}

/// How many steps a client has taken, if it was told of `promised` of them.
pub(crate) fn steps_taken(world: &World, seed: u64, client: usize, promised: u64) -> u64 {
    let seen = world.seen(client);
    let taken = (promised..=promised + 1).find(|steps| Client::after(seed, client, *steps) == seen);
    taken.unwrap_or_else(|| {
        panic!("client {client} was promised {:#?}\nand has {seen:#?}", Client::after(seed, client, promised))
    })
}

/// What the marks of earlier lives promise each client.
pub(crate) fn promised<'a>(marks: impl Iterator<Item = &'a str>) -> [u64; CLIENTS] {
    let mut promised = [0; CLIENTS];
    for mark in marks {
        let words: Vec<&str> = mark.split(' ').collect();
        if words[0] == "ack" {
            promised[words[1].parse::<usize>().unwrap()] = words[2].parse().unwrap();
        }
    }
    promised
}

struct Life<'a> {
    world: &'a World,
    marks: &'a Marks,
    seed: u64,
    may_fail: bool,
    over: AtomicBool,
    /// Steps that each client was told of.
    told: [AtomicU64; CLIENTS],
}

impl Life<'_> {
    fn done<T>(&self, result: Result<T, DatabaseError>) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            Err(error) if self.may_fail && is_refusal(&error) => {
                self.marks.say(&format!("refused {error}").replace('\n', " "));
                None
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    fn step(&self, client: usize, taken: u64, steps: u64) -> Option<()> {
        let mut state = Client::after(self.seed, client, taken);
        for number in taken..taken + steps {
            let step = state.next(self.seed, client, number);
            self.done(self.world.run(client, &step))?;
            self.marks.say(&format!("ack {client} {}", number + 1));
            self.told[client].store(number + 1, Ordering::SeqCst);
            state.take(step);
        }
        Some(())
    }

    /// Until the clients are done, or something was refused.
    fn beside(&self, mut work: impl FnMut() -> Result<(), DatabaseError>, pause_ms: u64) {
        while !self.over.load(Ordering::SeqCst) && self.done(work()).is_some() {
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
    }
}

/// Every client takes some steps, after those that it has taken before. Returns what each was told of by the end.
fn live(
    world: &World,
    marks: &Marks,
    seed: u64,
    promised: [u64; CLIENTS],
    (steps, may_fail): (u64, bool),
) -> [u64; CLIENTS] {
    let mut taken = promised;
    for (client, taken) in taken.iter_mut().enumerate() {
        // Folders cannot be read to the end while what is derived of them cannot be written.
        if !may_fail {
            *taken = steps_taken(world, seed, client, *taken);
        }
        // What an opening has shown stays.
        marks.say(&format!("ack {client} {taken}"));
    }
    let told = taken.map(AtomicU64::new);
    let life = Life { world, marks, seed, may_fail, over: AtomicBool::new(false), told };
    std::thread::scope(|scope| {
        let life = &life;
        let clients: Vec<_> = taken
            .into_iter()
            .enumerate()
            .map(|(client, taken)| scope.spawn(move || life.step(client, taken, steps)))
            .collect();
        scope.spawn(move || life.beside(|| world.redesign(), 15));
        scope.spawn(move || {
            let main = world.main();
            life.beside(|| rows(&main, "numbers").and_then(|_| rows(&main, "texts")).map(drop), 3);
        });
        scope.spawn(move || {
            let clean = || {
                world.databases.purge_dropped()?;
                world.databases.collect_contents().map(drop)
            };
            life.beside(clean, 10);
        });
        scope.spawn(move || life.beside(|| Ok(world.store.admin().checkpoint()?), 20));
        for client in clients {
            let _ = client.join().unwrap();
        }
        life.over.store(true, Ordering::SeqCst);
    });
    life.told.map(AtomicU64::into_inner)
}

/// A life in which no call fails.
pub(crate) fn live_well(dir: &Path, seed: u64, promised: [u64; CLIENTS], (life, steps): (u64, u64)) {
    let mut random = StdRng::seed_from_u64(seed ^ life);
    let marks = Marks::open(dir);
    let world = World::open(dir).unwrap();
    world.prepare();
    marks.say("prepared");
    let _ = live(&world, &marks, seed, promised, (steps, false));
    marks.say("over");
    let World { store, databases } = world;
    drop(databases);
    match random.random_range(0..3) {
        0 => store.close().unwrap(),
        1 => drop(store),
        // What is not written by now is not written in order.
        _ => std::process::abort(),
    }
}

/// A life in which calls fail after some steps, for a while. Afterwards everything opens, is whole and continues.
pub(crate) fn live_badly(dir: &Path, seed: u64, steps: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let marks = &Marks::open(dir);
    let world = World::open(dir).unwrap();
    world.prepare();
    marks.say("prepared");
    let told = live(&world, marks, seed, [0; CLIENTS], (steps / 4, false));
    marks.say("@fail");
    let told = std::thread::scope(|scope| {
        // Else commits would wait for space for half a minute.
        let mends_after = Duration::from_millis(random.random_range(50..500));
        scope.spawn(move || {
            std::thread::sleep(mends_after);
            marks.say("@mend");
        });
        live(&world, marks, seed, told, (steps, true))
    });
    drop(world);
    let world = World::open(dir).unwrap();
    live(&world, marks, seed, told, (3, false));
    world.check_derived();
    marks.say("over");
    drop(world.databases);
    world.store.close().unwrap();
}
