//! What is in a week of a calendar, asked by CalDAV, of calendars of several sizes that have the same in that week; also right after the
//! server has started.
//!
//! `cargo bench -p scrinium-server --bench caldav_range`; `SCRINIUM_SIZES` are the sizes, ascending (1000,50000), `SCRINIUM_ROUNDS` how many
//! rounds there are, and `SCRINIUM_REQUESTS` how many questions a round has.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod calendar;

use std::time::Instant;

use calendar::{Client, Ours, person, ten_years, week_query};
use scrinium_bench::{Against, Line, median, report, setting, sizes};

/// Occurrences in the week.
const FOUND: usize = 20;

/// Asked for, of the largest.
const ASKED_MS: f64 = 1.0;

fn main() {
    let (rounds, requests): (usize, usize) =
        (setting("SCRINIUM_ROUNDS", 7), setting("SCRINIUM_REQUESTS", 200));
    let sizes = sizes(&[1_000, 50_000]);
    let mut ours = Ours::start(1);
    let folder = scrinium_bench::folder();
    for size in &sizes {
        let file = folder.path().join(format!("{size}.ics"));
        std::fs::write(&file, ten_years(*size, &size.to_string())).unwrap();
        let began = Instant::now();
        ours.import(&file, &person(0), &format!("of-{size}"));
        eprintln!("{size} events are there, after {:.1?}", began.elapsed());
    }
    let password = ours.password(&person(0));
    let ask = |client: &mut Client, size: u64| {
        let path = format!("/_dav/calendars/{}/of-{size}/", person(0));
        let began = Instant::now();
        let answer = client.expect(("REPORT", &path), "Depth: 1\r\n", &week_query());
        let took = began.elapsed().as_secs_f64() * 1_000.0;
        assert_eq!(answer.matches("<D:response>").count(), FOUND, "{answer}");
        took
    };
    let mut client = Client::new(ours.server.address(), &person(0), &password);
    for size in &sizes {
        eprintln!("{size} events: the first question takes {:.1} ms", ask(&mut client, *size));
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); sizes.len()];
    for _ in 0..rounds {
        for (size, times) in sizes.iter().zip(&mut times) {
            let took: Vec<f64> = (0..requests).map(|_| ask(&mut client, *size)).collect();
            times.push(median(&took));
        }
    }
    drop(client);
    let ours = ours.restart();
    let mut client = Client::new(ours.server.address(), &person(0), &password);
    let firsts: Vec<f64> = sizes.iter().map(|size| ask(&mut client, *size)).collect();
    tell(&sizes, &times, &firsts);
}

fn tell(sizes: &[u64], times: &[Vec<f64>], firsts: &[f64]) {
    let (Some(smallest), Some(largest)) = (sizes.first(), sizes.last()) else { return };
    let line = |case: &str, values: &[f64], against| {
        report(&Line { name: "caldav-range", case, values, unit: "ms", against });
    };
    let [small, .., large] = times else { return };
    let against = format!("{smallest} events (asked for: 1.5 at most)");
    let case = format!("a week, {largest} against {smallest} events");
    line(&case, large, Against::Measured(&against, small));
    line(&format!("a week, {largest} events"), large, Against::Given("asked for", ASKED_MS));
    let case = format!("the first week after a start, {largest} against {smallest} events");
    let against = format!("{smallest} events, asked for before");
    line(&case, &firsts[firsts.len() - 1..], Against::Measured(&against, &firsts[..1]));
}
