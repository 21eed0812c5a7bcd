//! Texts in character sets.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// A text in this character set; without one in UTF-8, or else in what most files have that are not.
pub(crate) fn plain(bytes: &[u8], label: Option<&'static Encoding>) -> String {
    // A mark at the beginning says more than a label.
    let (encoding, skipped) = Encoding::for_bom(bytes).unwrap_or_else(|| (label.unwrap_or(UTF_8), 0));
    let bytes = bytes.get(skipped..).unwrap_or_default();
    if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) {
        return text.into_owned();
    }
    let otherwise = if label.is_some() { encoding } else { WINDOWS_1252 };
    otherwise.decode_without_bom_handling(bytes).0.into_owned()
}

/// Leaves out what is beyond so many bytes.
pub(crate) fn cut(text: &mut String, bytes_max: usize) {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_in_the_set_that_they_are_in() {
        assert_eq!(plain("Grüße".as_bytes(), None), "Grüße");
        assert_eq!(plain(b"Gr\xfc\xdfe", None), "Grüße");
        assert_eq!(plain(b"\xff\xfeH\0i\0", None), "Hi");
        assert_eq!(plain(b"\xcf\xf0", Some(encoding_rs::WINDOWS_1251)), "Пр");
        let mut text = "äö".to_owned();
        cut(&mut text, 3);
        assert_eq!(text, "ä");
    }
}
