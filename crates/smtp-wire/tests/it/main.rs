//! SMTP on the wire: what is written is read back, whatever the bytes nothing breaks, and transcripts.

mod arbitrary;
mod hostile;
mod round_trip;
mod transcripts;
