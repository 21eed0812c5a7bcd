//! The binary `scrinium`.
fn main() {}
