//! A small server in memory, to try the laboratory on: `cargo run -p scrinium-lab --example
//! in_memory_server -- 127.0.0.1:5999 [stall after s] [for s]`, then
//! `scrinium-lab load R5Mail --target http://127.0.0.1:5999 --admin admin --password secret --speedup 60`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "it is part of the tests")]

use std::time::Duration;

#[path = "../tests/it/fake/mod.rs"]
mod fake;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let address = arguments.get(1).map_or("127.0.0.1:5999", String::as_str);
    let seconds =
        |index: usize| arguments.get(index).and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let server = fake::FakeServer::start_at(address, fake::Faults::default()).await;
    eprintln!("listening at {}", server.url());
    if let Some((after, time)) = seconds(2).zip(seconds(3)) {
        tokio::time::sleep(after).await;
        server.stall_for(time);
    }
    std::future::pending::<()>().await;
}
