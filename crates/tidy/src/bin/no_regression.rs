//! Compares two files of results; `scripts/no-regression` calls it: `no-regression BASE.jsonl PRESENT.jsonl`.

use std::io;
use std::process::ExitCode;

use scrinium_tidy::regression::Comparison;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let compared = match words.as_slice() {
        ["--help"] => {
            println!("usage: no-regression BASE.jsonl PRESENT.jsonl");
            return ExitCode::SUCCESS;
        }
        [base, present] => std::fs::read_to_string(base)
            .and_then(|base| Comparison::of(&base, &std::fs::read_to_string(present)?)),
        _ => Err(io::Error::other("usage: no-regression BASE.jsonl PRESENT.jsonl")),
    };
    match compared {
        Ok(comparison) => {
            println!("{comparison}");
            if comparison.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("no-regression: {error}");
            ExitCode::FAILURE
        }
    }
}
