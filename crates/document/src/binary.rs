//! Reading and writing the small integers of our stored records.

/// Appends an unsigned LEB128 integer: seven bits a byte, lowest first.
pub(crate) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Takes an unsigned LEB128 integer off the front; `None` if it is cut short, longer than 64 bits, or
/// not in its shortest form (one value has one spelling, so equal records have equal bytes).
pub(crate) fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let low = u64::from(byte & 0x7f);
        if shift == 63 && low > 1 {
            return None;
        }
        value |= low << shift;
        if byte & 0x80 == 0 {
            return if byte == 0 && shift > 0 { None } else { Some(value) };
        }
    }
    None
}

/// Takes `length` bytes off the front.
pub(crate) fn read_bytes<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
}
