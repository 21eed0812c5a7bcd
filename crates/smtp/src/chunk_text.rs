//! Line ends of a text that comes in chunks (RFC 3030), as [`scrinium_smtp_wire::DotReader`] treats those of DATA.

use scrinium_smtp_wire::{BareEnds, TextFault};

/// Passes a text on, and looks for a CR or LF by itself.
#[derive(Clone, Debug)]
pub(crate) struct ChunkText {
    bare_ends: BareEnds,
    after_carriage_return: bool,
    fault: Option<TextFault>,
}

impl ChunkText {
    pub(crate) fn new(bare_ends: BareEnds) -> Self {
        Self { bare_ends, after_carriage_return: false, fault: None }
    }

    /// The first fault.
    pub(crate) fn fault(&self) -> Option<TextFault> {
        self.fault
    }

    /// Takes the next bytes and appends what passes to `out`: nothing more after a fault.
    pub(crate) fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            if std::mem::take(&mut self.after_carriage_return) {
                if *first == b'\n' {
                    out.extend_from_slice(b"\r\n");
                    rest = after;
                    continue;
                }
                self.bare(TextFault::BareCarriageReturn, out);
            }
            if self.fault.is_some() {
                return;
            }
            match first {
                b'\r' => self.after_carriage_return = true,
                b'\n' => self.bare(TextFault::BareLineFeed, out),
                _ => {
                    let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
                    let (plain, after) =
                        rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, &[]));
                    out.extend_from_slice(plain);
                    rest = after;
                    continue;
                }
            }
            rest = after;
        }
    }

    /// The text is over.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.after_carriage_return) {
            self.bare(TextFault::BareCarriageReturn, out);
        }
    }

    fn bare(&mut self, fault: TextFault, out: &mut Vec<u8>) {
        match self.bare_ends {
            BareEnds::Refuse => self.fault = self.fault.or(Some(fault)),
            BareEnds::Normalise => out.extend_from_slice(b"\r\n"),
        }
    }
}
