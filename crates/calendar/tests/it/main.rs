//! Calendar time against the standards' examples, slow models, and other programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod busy;
mod examples;
mod fields;
mod generator;
mod hostile;
mod index;
mod itip;
mod itip_model;
mod model;
mod oracles;
mod rooms;
mod rules;
mod series;
mod support;
