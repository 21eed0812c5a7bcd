//! Character sets of seven bits that browsers do not read any more, and mail still holds: UTF-7 (RFC 2152), HZ
//! (RFC 1843) and ISO-2022-KR (RFC 1557).

use std::char::decode_utf16;

use encoding_rs::{EUC_KR, GBK};

use super::decode::base64_value;

/// UTF-7: `+` begins characters as base64 of UTF-16, `-` or anything that is no base64 ends them, `+-` is a plus.
/// Of text that `is_cut`, nothing is said to be missing at the end.
pub(super) fn decode_utf7(bytes: &[u8], is_cut: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'+' {
            // Bytes from 128 on are none of UTF-7; they are taken for what most of its time had.
            text.push(char::from(byte));
            continue;
        }
        let end = rest.iter().position(|&byte| base64_value(byte).is_none()).unwrap_or(rest.len());
        let (shifted, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        let closing = after.first();
        if shifted.is_empty() {
            text.push('+');
        } else {
            push_shifted(shifted, is_cut && closing.is_none(), &mut text);
        }
        // A minus that ends what is shifted belongs to it; anything else is text.
        rest = if closing == Some(&b'-') { after.get(1..).unwrap_or_default() } else { after };
    }
    text
}

fn push_shifted(shifted: &[u8], is_cut: bool, text: &mut String) {
    let mut units = Vec::with_capacity(shifted.len() / 2);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for six_bits in shifted.iter().filter_map(|&byte| base64_value(byte)) {
        held = (held << 6) | u32::from(six_bits);
        bits += 6;
        if bits >= 16 {
            bits -= 16;
            units.extend(u16::try_from((held >> bits) & 0xffff));
        }
    }
    if is_cut && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
        units.pop();
    }
    text.extend(decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
    if bits >= 6 && !is_cut {
        text.push(char::REPLACEMENT_CHARACTER);
    }
}

/// HZ: `~{` begins pairs of GB 2312, `~}` ends them, `~~` is a tilde, `~` at the end of a line joins it with the next.
pub(super) fn decode_hz(bytes: &[u8]) -> String {
    let mut eight_bit = Vec::with_capacity(bytes.len());
    let mut shifted = false;
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.first()) {
            (b'~', Some(b'{')) => shifted = true,
            (b'~', Some(b'}')) => shifted = false,
            (b'~', Some(b'~')) if !shifted => eight_bit.push(b'~'),
            (b'~', Some(b'\n')) if !shifted => {}
            (b'\n', _) => {
                // A line begins with ASCII whatever the one before did.
                shifted = false;
                eight_bit.push(byte);
                continue;
            }
            _ => {
                eight_bit.push(if shifted && byte > b' ' { byte | 0x80 } else { byte });
                continue;
            }
        }
        rest = after.get(1..).unwrap_or_default();
    }
    GBK.decode_without_bom_handling(&eight_bit).0.into_owned()
}

/// ISO-2022-KR: shift out begins pairs of KS X 1001, shift in ends them.
pub(super) fn decode_iso_2022_kr(bytes: &[u8]) -> String {
    let mut eight_bit = Vec::with_capacity(bytes.len());
    let mut shifted = false;
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            0x0e => shifted = true,
            0x0f => shifted = false,
            0x1b if after.starts_with(b"$)C") => rest = after.get(3..).unwrap_or_default(),
            b'\n' => {
                shifted = false;
                eight_bit.push(byte);
            }
            _ => eight_bit.push(if shifted && byte > b' ' { byte | 0x80 } else { byte }),
        }
    }
    EUC_KR.decode_without_bom_handling(&eight_bit).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::decode_utf7;

    #[test]
    fn utf7_is_read_whole() {
        for (written, text) in [
            ("1 +- 1 +AD0 2", "1 + 1 = 2"),
            ("Hi Mom -+Jjo--!", "Hi Mom -\u{263a}-!"),
            ("+ZeVnLIqe-", "日本語"),
            ("+AGEAYgBj.", "abc."),
            ("+2Dzf1A-", "\u{1f3d4}"),
            ("a+", "a+"),
            ("+AOQ b", "ä b"),
        ] {
            assert_eq!(decode_utf7(written.as_bytes(), false), text, "{written}");
        }
    }
}
