//! Calendar time: which occurrences a calendar has, when they are, and in which zone.
//!
//! [`series::Series`] reads a calendar (a tree of `dav-wire`) and answers which occurrences lie in a span, from wherever it
//! begins. [`rule`] expands rules of recurrence by division, [`zone`] knows IANA's zones, what other programs call them, and the
//! definitions that calendars bring. [`civil`] and [`time`] are what clocks show. [`fields`] are those of appointment documents, both
//! ways. [`busy`] merges free and busy time, [`index`] says what an index of occurrences holds, [`itip`] what invitations and answers do,
//! [`imip`] how they are mailed, [`rooms`] whether a room may be booked.
//!
//! ```
//! use scrinium_calendar::civil::CivilTime;
//! use scrinium_calendar::series::{InstantRange, Series};
//! use scrinium_calendar::zone::{Instant, Zone};
//! use scrinium_dav_wire::content::{Component, ContentLimits};
//!
//! let text = b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;TZID=Europe/Berlin:20260105T090000\r\n\
//!     RRULE:FREQ=WEEKLY;BYDAY=MO\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
//! let calendar = Component::parse(text, ContentLimits::default())?;
//! let series = Series::read_all(&calendar, &Zone::utc());
//! let second = |year, month, day| Instant(CivilTime::new(year, month, day, 0).0);
//! let july = InstantRange { from: second(2031, 7, 1), to: second(2031, 8, 1) };
//! let found = series[0].occurrences(july, &Zone::utc(), 100);
//! assert_eq!(found.occurrences.len(), 4);
//! # Ok::<(), scrinium_dav_wire::content::ContentError>(())
//! ```
//!
//! *Invariant*: pure: no clock, no disk, no sockets. Whatever a calendar says, work and memory are bounded by its size and by
//! constants: a question costs the same wherever in ten thousand years it lies, and a rule that never fits is found.

#![forbid(unsafe_code)]

pub mod address;
pub mod busy;
pub mod civil;
pub mod event;
pub mod fields;
pub mod imip;
pub mod index;
pub mod itip;
pub mod rooms;
pub mod rule;
pub mod series;
pub mod time;
pub mod zone;

/// PRODID of what is written here.
pub(crate) const PRODUCT: &str = "-//Scrinium//Calendar//EN";
