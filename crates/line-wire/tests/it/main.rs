//! Lines and texts, whatever the pieces that they come in.

mod dots;
mod line;
