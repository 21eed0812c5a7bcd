//! What is won by using contexts of the compression again: contents of several sizes, one after the other and side by
//! side, in five rounds of which the medians are shown.
//!
//! `cargo run --release -p scrinium-objects --example compression_speed`

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures and prints")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use scrinium_objects::{compress, decompress};

const ROUNDS: usize = 5;
const A_ROUND: Duration = Duration::from_millis(200);

/// English enough to be compressed to a third.
fn text(bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "meeting", "the", "of", "budget", "quarter", "please", "see", "attached", "and", "report", "to",
        "in", "regards", "on", "Monday", "draft",
    ];
    let mut state = 7_u64;
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = WORDS.get((state >> 60) as usize).copied().unwrap_or_default();
        text.extend_from_slice(format!("{word}{} ", (state >> 50) % 7).as_bytes());
    }
    text.truncate(bytes);
    text
}

/// Microseconds of one call.
fn time(mut call: impl FnMut()) -> f64 {
    let (began, mut calls) = (Instant::now(), 0_u32);
    while began.elapsed() < A_ROUND {
        for _ in 0..16 {
            call();
        }
        calls += 16;
    }
    began.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
}

/// Medians of both, measured by turns.
fn both(mut fresh: impl FnMut(), mut again: impl FnMut()) -> (f64, f64) {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        one.push(time(&mut fresh));
        other.push(time(&mut again));
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(ROUNDS / 2).copied().unwrap_or(f64::NAN)
    };
    (median(one), median(other))
}

fn main() {
    println!("bytes     way            new context   used again   ratio");
    for bytes in [2_000, 10_000, 50_000, 256 << 10] {
        let text = text(bytes);
        let compressed = compress(&text).unwrap();
        let show = |way: &str, (fresh, again): (f64, f64)| {
            println!("{bytes:>7}   {way:<12} {fresh:>9.1} us {again:>9.1} us   {:>5.2}", fresh / again);
        };
        let level = 3;
        let mut context = zstd::bulk::Compressor::new(level).unwrap();
        context.compress(&text).unwrap();
        println!("{bytes:>7}   a context for compressing holds {} KB", context.context_mut().sizeof() / 1000);
        show(
            "compress",
            both(|| drop(black_box(zstd::bulk::compress(&text, level))), || drop(black_box(compress(&text)))),
        );
        show(
            "decompress",
            both(
                || drop(black_box(zstd::bulk::decompress(&compressed, bytes))),
                || drop(black_box(decompress(&compressed, bytes))),
            ),
        );
    }
}
