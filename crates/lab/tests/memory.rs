//! What a simulated user takes of the driver's memory while it waits, which nearly all do at any moment: counted byte by
//! byte, whatever else the machine does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fall over")]

mod crowd;

use std::path::PathBuf;
use std::time::Duration;

use crowd::{Kind, Server};
use peak_alloc::PeakAlloc;
use scrinium_lab::Progress;
use scrinium_lab::load::load;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Nobody comes back from a pause while this test runs.
const PAUSE_MS: (u64, u64) = (3_000_000, 3_500_000);

/// Bytes that are in use while this many users wait.
async fn waiting(kind: Kind, users: usize) -> usize {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_scrinium-lab"));
    let program = program.with_file_name("examples").join("driver_memory");
    assert!(program.exists(), "{} is not built", program.display());
    let mut server = Server::start(&program, kind);
    let plan = server.plan(kind, users, PAUSE_MS, Duration::from_secs(1));
    let targets = server.targets(users);
    let looking = async {
        while tokio::task::block_in_place(|| server.users_that_began()) < users as u64 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // What is on its way is answered soon, and only adds to what is held.
        let mut least = usize::MAX;
        for _ in 0..40 {
            tokio::time::sleep(Duration::from_millis(25)).await;
            least = least.min(MEMORY.current_usage());
        }
        least
    };
    let progress = Progress::silent();
    tokio::select! {
        ended = load(targets, &plan, &progress) => panic!("the run ended: {:?}", ended.map(|run| run.run.cut)),
        looked = looking => looked,
    }
}

/// The difference between two crowds, so that what all users share is left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_waits_takes_little_memory() {
    const FEW: usize = 100;
    const MANY: usize = 500;
    for (kind, most_bytes) in
        [(Kind::Http, 35_000), (Kind::Imap, 5_500), (Kind::Imaps, 13_000), (Kind::Smtp, 2_600)]
    {
        let few = waiting(kind, FEW).await;
        let many = waiting(kind, MANY).await;
        let bytes = many.saturating_sub(few) / (MANY - FEW);
        println!("a user of {} takes {bytes} bytes", kind.name());
        assert!(
            bytes <= most_bytes,
            "a user of {} takes {bytes} bytes; {most_bytes} are allowed",
            kind.name()
        );
    }
}
