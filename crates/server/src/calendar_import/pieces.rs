//! Files of calendars and cards, read piece by piece: what has one UID may lie anywhere in a calendar of any length.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// A component is no longer.
const PIECE_BYTES_MAX: u64 = 10 << 20;

/// A line is read no further; what it begins with is enough to know it.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Of a folded UID no more is read than this and a line.
const UID_BYTES_MAX: usize = 4_000;

/// Components in components that are told apart.
const DEPTH_MAX: usize = 64;

/// Components of one file.
const PIECES_MAX: usize = 2_000_000;

/// Definitions of zones of one file, and their bytes together.
const ZONES_MAX: usize = 1_000;
const ZONES_BYTES_MAX: u64 = 4 << 20;

/// What is written above the components of each calendar that a file is taken apart into.
const HEAD: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Scrinium//Import//EN\r\n";

/// Where something lies in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: u64,
    bytes: u64,
}

/// A file, and where what is in it lies.
pub(super) struct Pieces<F> {
    file: F,
    /// Spans of one UID each, or of one component without one, in the order of the file.
    objects: Vec<Vec<Span>>,
    /// By their TZID.
    zones: Vec<(String, Span)>,
    /// Why something is left out.
    pub(super) left_out: Vec<String>,
    is_calendar: bool,
}

/// What is being read.
#[derive(Default)]
struct Open {
    /// In capitals, outermost first.
    names: Vec<String>,
    from: u64,
    uid: Option<String>,
    /// The line that a folded one goes on with.
    is_in_uid: bool,
    zone: Option<String>,
}

impl<F: Read + Seek> Pieces<F> {
    /// Looks through a file of calendars or of cards.
    ///
    /// # Errors
    /// The file cannot be read, or has too many components.
    pub(super) fn of(file: F, is_calendar: bool) -> io::Result<Self> {
        let mut pieces =
            Self { file, objects: Vec::new(), zones: Vec::new(), left_out: Vec::new(), is_calendar };
        let mut by_uid: HashMap<[u8; 32], usize> = HashMap::new();
        let mut open = Open::default();
        let (mut at, mut line) = (0, Vec::new());
        pieces.file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::with_capacity(256 << 10, &mut pieces.file);
        let mut found = Vec::new();
        loop {
            let bytes = read_line(&mut reader, &mut line)?;
            if bytes == 0 {
                break;
            }
            found.extend(open.line(&line, (at, bytes), is_calendar));
            at += bytes;
            if found.len() > PIECES_MAX {
                return Err(io::Error::other(format!("it has more than {PIECES_MAX} entries")));
            }
        }
        drop(reader);
        for piece in found {
            pieces.note(piece, &mut by_uid);
        }
        Ok(pieces)
    }

    fn note(&mut self, piece: Found, by_uid: &mut HashMap<[u8; 32], usize>) {
        let Found { span, uid, zone } = piece;
        if let Some(zone) = zone {
            let together: u64 = self.zones.iter().map(|(_, span)| span.bytes).sum();
            let is_known = self.zones.iter().any(|(known, _)| *known == zone);
            if !is_known && self.zones.len() < ZONES_MAX && together + span.bytes <= ZONES_BYTES_MAX {
                self.zones.push((zone, span));
            }
            return;
        }
        if span.bytes > PIECE_BYTES_MAX {
            self.left_out.push(format!("an entry of {} bytes is too long", span.bytes));
            return;
        }
        let place = uid.map(|uid| *by_uid.entry(uid).or_insert(self.objects.len()));
        match place.and_then(|place| self.objects.get_mut(place)) {
            Some(spans) => spans.push(span),
            None => self.objects.push(vec![span]),
        }
    }

    /// How many calendars or cards there are.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// One of them, as a file of its own. `Err`: why it is left out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn object(&mut self, number: usize) -> io::Result<Result<Vec<u8>, String>> {
        let spans = self.objects.get(number).cloned().unwrap_or_default();
        if spans.iter().map(|span| span.bytes).sum::<u64>() > PIECE_BYTES_MAX {
            return Ok(Err("an entry with its exceptions is too long".to_owned()));
        }
        let mut parts = Vec::new();
        for span in spans {
            self.read(span, &mut parts)?;
        }
        if !self.is_calendar {
            return Ok(Ok(parts));
        }
        let mut whole = HEAD.as_bytes().to_vec();
        let text = String::from_utf8_lossy(&parts).into_owned();
        let used: Vec<Span> =
            self.zones.iter().filter(|(zone, _)| text.contains(zone)).map(|(_, span)| *span).collect();
        for span in used {
            self.read(span, &mut whole)?;
        }
        whole.extend_from_slice(&parts);
        whole.extend_from_slice(b"END:VCALENDAR\r\n");
        Ok(Ok(whole))
    }

    fn read(&mut self, span: Span, into: &mut Vec<u8>) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(span.from))?;
        (&mut self.file).take(span.bytes).read_to_end(into)?;
        if !into.ends_with(b"\n") {
            into.extend_from_slice(b"\r\n");
        }
        Ok(())
    }
}

/// A component that has ended.
struct Found {
    span: Span,
    /// The digest of its UID.
    uid: Option<[u8; 32]>,
    zone: Option<String>,
}

impl Open {
    /// Takes in a line; gives the component that it ends.
    fn line(&mut self, line: &[u8], (at, bytes): (u64, u64), is_calendar: bool) -> Option<Found> {
        // Files of several programs begin with a mark of their character set.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let text = String::from_utf8_lossy(line);
        let is_folded = text.starts_with([' ', '\t']);
        let text = text.trim_end();
        if is_folded {
            if let (true, Some(uid)) =
                (self.is_in_uid, self.uid.as_mut().filter(|uid| uid.len() < UID_BYTES_MAX))
            {
                uid.push_str(text.get(1..).unwrap_or_default());
            }
            return None;
        }
        self.is_in_uid = false;
        let own_depth = usize::from(is_calendar);
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        match name.to_ascii_uppercase().as_str() {
            "BEGIN" => {
                if self.names.len() == own_depth {
                    (self.from, self.uid, self.zone) = (at, None, None);
                }
                if self.names.len() < DEPTH_MAX {
                    self.names.push(value.trim().to_ascii_uppercase());
                }
                None
            }
            "END" => {
                let ended = value.trim().to_ascii_uppercase();
                // One that was not ended ends with what it is in.
                let depth = self.names.iter().rposition(|name| *name == ended)?;
                self.names.truncate(depth);
                (depth == own_depth).then(|| self.found(&ended, at + bytes, is_calendar)).flatten()
            }
            name if self.names.len() == own_depth + 1 => {
                let name = name.split(';').next().unwrap_or_default();
                if name == "UID" && self.uid.is_none() {
                    (self.uid, self.is_in_uid) = (Some(value.trim().to_owned()), true);
                } else if name == "TZID" {
                    self.zone = Some(value.trim().to_owned());
                }
                None
            }
            _ => None,
        }
    }

    fn found(&mut self, ended: &str, end: u64, is_calendar: bool) -> Option<Found> {
        let span = Span { from: self.from, bytes: end.saturating_sub(self.from) };
        let uid = self.uid.take().filter(|uid| !uid.is_empty());
        let uid = uid.map(|uid| *blake3::hash(uid.as_bytes()).as_bytes());
        match ended {
            "VTIMEZONE" if is_calendar => {
                Some(Found { span, uid: None, zone: Some(self.zone.take().filter(|zone| !zone.is_empty())?) })
            }
            "VEVENT" | "VTODO" | "VJOURNAL" if is_calendar => Some(Found { span, uid, zone: None }),
            // Of two cards with one UID each is a card.
            "VCARD" if !is_calendar => Some(Found { span, uid: None, zone: None }),
            _ => None,
        }
    }
}

/// Reads a line, of which no more than its beginning is kept. Gives how many bytes it has.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut bytes = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)? as u64;
    let mut is_whole = line.ends_with(b"\n") || bytes < LINE_BYTES_MAX;
    while !is_whole {
        let rest = reader.fill_buf()?;
        let end = rest.iter().position(|byte| *byte == b'\n').map(|place| place + 1);
        let read = end.unwrap_or(rest.len());
        is_whole = end.is_some() || read == 0;
        reader.consume(read);
        bytes += read as u64;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::Cursor;

    use super::*;

    fn objects(text: &str, is_calendar: bool) -> Vec<String> {
        let mut pieces = Pieces::of(Cursor::new(text.as_bytes().to_vec()), is_calendar).unwrap();
        let object = |number| String::from_utf8(pieces.object(number).unwrap().unwrap()).unwrap();
        let count = 0..Pieces::of(Cursor::new(text.as_bytes().to_vec()), is_calendar).unwrap().len();
        count.map(object).collect()
    }

    #[test]
    fn what_has_one_uid_comes_together_with_its_zones() {
        let text = "\u{feff}BEGIN:VCALENDAR\r\nMETHOD:PUBLISH\r\nBEGIN:VTIMEZONE\r\nTZID:Here\r\nEND:VTIMEZONE\r\n\
            BEGIN:VTIMEZONE\r\nTZID:There\r\nEND:VTIMEZONE\r\n\
            BEGIN:VEVENT\r\nUID:a\r\n b\r\nDTSTART;TZID=Here:20260101T090000\r\nBEGIN:VALARM\r\nUID:x\r\nEND:VALARM\r\nEND:VEVENT\r\n\
            BEGIN:VTODO\r\nSUMMARY:no name\r\nEND:VTODO\r\nBEGIN:X-NOISE\r\nUID:ab\r\nEND:X-NOISE\r\n\
            BEGIN:VEVENT\nUID:ab\nRECURRENCE-ID:20260101T090000Z\nEND:VEVENT\nEND:VCALENDAR\n";
        let found = objects(text, true);
        assert_eq!(found.len(), 2, "{found:#?}");
        let series = found.first().unwrap();
        assert_eq!(series.matches("BEGIN:VEVENT").count(), 2, "{series}");
        assert!(series.contains("TZID:Here") && !series.contains("There") && !series.contains("METHOD"));
        assert!(found.last().unwrap().contains("no name"));
    }

    #[test]
    fn cards_are_taken_one_by_one() {
        let text = "BEGIN:VCARD\nVERSION:3.0\nFN:A\nEND:VCARD\n\nBEGIN:VCARD\nFN:B\nEND:VCARD";
        assert_eq!(
            objects(text, false),
            ["BEGIN:VCARD\nVERSION:3.0\nFN:A\nEND:VCARD\n", "BEGIN:VCARD\nFN:B\nEND:VCARD\r\n"]
        );
    }

    #[test]
    fn nothing_that_a_file_holds_is_kept_beyond_a_limit() {
        let long = "x".repeat(usize::try_from(PIECE_BYTES_MAX).unwrap());
        let text = format!("BEGIN:VCARD\nFN:{long}\nEND:VCARD\nBEGIN:VCARD\nFN:B\nEND:VCARD\n");
        let pieces = Pieces::of(Cursor::new(text.into_bytes()), false).unwrap();
        assert_eq!((pieces.len(), pieces.left_out.len()), (1, 1));
        for open in ["BEGIN:VCARD\n".repeat(1_000), "END:VCARD\n".repeat(1_000), "\u{feff}:\n ;".to_owned()] {
            assert_eq!(Pieces::of(Cursor::new(open.into_bytes()), false).unwrap().len(), 0);
        }
    }
}
