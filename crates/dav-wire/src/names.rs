//! Namespaces.

/// WebDAV.
pub const DAV: &str = "DAV:";
/// CalDAV.
pub const CALDAV: &str = "urn:ietf:params:xml:ns:caldav";
/// CardDAV.
pub const CARDDAV: &str = "urn:ietf:params:xml:ns:carddav";
/// Extensions of the calendar server.
pub const CALENDAR_SERVER: &str = "http://calendarserver.org/ns/";
/// Extensions of iCal.
pub const APPLE: &str = "http://apple.com/ns/ical/";

/// Prefixes of what is written.
pub(crate) const PREFIXES: [(&str, &str); 5] =
    [(DAV, "D"), (CALDAV, "C"), (CARDDAV, "CR"), (CALENDAR_SERVER, "CS"), (APPLE, "A")];
