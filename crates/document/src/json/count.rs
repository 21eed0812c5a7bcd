//! How much stands in a JSON text, before anything is made of it.

/// What a JSON text holds; at least as much where it is invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonCounts {
    /// Values of all kinds, at all depths.
    pub values: usize,
    /// Members of objects.
    pub members: usize,
}

impl JsonCounts {
    /// Counts the marks between values, outside of strings.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let mut counts = Self { values: 1, members: 0 };
        let (mut in_string, mut escaped) = (false, false);
        for byte in text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b',' | b'[' | b'{' if !in_string => counts.values += 1,
                b':' if !in_string => counts.members += 1,
                _ => {}
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        let counts = |text: &str| {
            let counts = JsonCounts::of(text.as_bytes());
            (counts.values, counts.members)
        };
        assert_eq!(counts("1"), (1, 0));
        assert_eq!(counts("[0,0,0]"), (4, 0));
        assert_eq!(counts("[{},{}]"), (5, 0));
        assert_eq!(counts(r#"{"a,[{:\",":"x:,","b":[1]}"#), (4, 2));
        assert_eq!(counts(r#""\\",[1"#), (3, 0));
    }
}
