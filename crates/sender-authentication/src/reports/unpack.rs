//! Reports out of gzip and zip, whatever their names say.

use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use super::{ReportError, ReportLimits};

/// Files of an archive that are counted.
const FILES_MAX: usize = 100;

/// The XML of a report that may be packed. What it is shows in its first bytes.
///
/// # Errors
/// [`ReportError`]
pub fn unpack_report(bytes: &[u8], limits: &ReportLimits) -> Result<Vec<u8>, ReportError> {
    if bytes.len() > limits.packed_bytes {
        return Err(ReportError::Large(limits.packed_bytes));
    }
    match bytes {
        [0x1f, 0x8b, ..] => read_all(MultiGzDecoder::new(bytes), limits),
        [b'P', b'K', ..] => unzip(bytes, limits),
        _ => {
            let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            let is_xml = text.trim_ascii_start().starts_with(b"<");
            if !is_xml {
                return Err(ReportError::Form);
            }
            read_all(text, limits)
        }
    }
}

fn unzip(bytes: &[u8], limits: &ReportLimits) -> Result<Vec<u8>, ReportError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| ReportError::Packing)?;
    let mut report = None;
    let mut files = 0;
    for number in 0..archive.len().min(FILES_MAX) {
        let file = archive.by_index_raw(number).map_err(|_| ReportError::Packing)?;
        // Some archivers add a folder, or what macOS keeps beside each file.
        if file.is_file() && !file.name().starts_with("__MACOSX/") {
            files += 1;
            report = report.or(Some(number));
        }
    }
    let number = report.filter(|_| files == 1).ok_or(ReportError::Files(files))?;
    let file = archive.by_index(number).map_err(|_| ReportError::Packing)?;
    read_all(file, limits)
}

fn read_all(packed: impl Read, limits: &ReportLimits) -> Result<Vec<u8>, ReportError> {
    let mut xml = Vec::new();
    let most = u64::try_from(limits.xml_bytes).unwrap_or(u64::MAX);
    packed.take(most.saturating_add(1)).read_to_end(&mut xml).map_err(|_| ReportError::Packing)?;
    if xml.len() > limits.xml_bytes { Err(ReportError::Large(limits.xml_bytes)) } else { Ok(xml) }
}
