//! What a script may cost.

use crate::extension::Extension;

/// Limits of a script and of a run. The defaults are above what RFC 5228 (section 2.10.7) and its extensions ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The script's source.
    pub script_bytes: usize,
    /// One string of a script.
    pub string_bytes: usize,
    /// Strings of one list.
    pub list_strings: usize,
    /// Blocks in blocks, and tests in tests, together. RFC 5228 asks for 15 of each.
    pub nesting: usize,
    /// Commands and tests of a script.
    pub commands: usize,
    /// One regular expression.
    pub regex_bytes: usize,
    /// Memory of one regular expression when it is compiled.
    pub regex_memory_bytes: usize,
    /// Regular expressions of a script, and as many that a run makes of variables.
    pub regexes: usize,
    /// Commands and tests that a run executes, in all scripts that are included.
    pub steps: u32,
    /// Bytes that a run looks at, each time it looks.
    pub work_bytes: u64,
    /// Variables of one script, and as many global ones. RFC 5229 (section 6) asks for 128.
    pub variables: usize,
    /// A variable's value; what is longer is cut. RFC 5229 (section 6) asks for 4,000.
    pub variable_bytes: usize,
    /// A string after its variables were put in; what is longer is cut.
    pub expanded_bytes: usize,
    /// Actions of a run.
    pub actions: usize,
    /// Redirects of a run.
    pub redirects: usize,
    /// Notifications of a run.
    pub notifications: usize,
    /// Flags of a message.
    pub flags: usize,
    /// Changes of the header in a run.
    pub header_edits: usize,
    /// Fields of a header that are looked at, from the top.
    pub header_fields: usize,
    /// Bytes of a field that are looked at.
    pub field_bytes: usize,
    /// Addresses of a field that are looked at.
    pub addresses: usize,
    /// Parts of a message that are looked at.
    pub body_parts: usize,
    /// Scripts that include each other.
    pub include_depth: usize,
    /// Scripts that a run includes, however often.
    pub includes: usize,
    /// Tests for duplicates in a run.
    pub duplicates: usize,
    /// Shortest period of vacation's replies; shorter ones become this long.
    pub vacation_min_seconds: u64,
    /// Longest period of vacation's replies; longer ones become this long.
    pub vacation_max_seconds: u64,
    /// Longest time for which a message is remembered as seen; longer ones become this long.
    pub duplicate_max_seconds: u64,
    /// Extensions that a host does not carry out: to scripts they are unknown.
    pub hidden: &'static [Extension],
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            script_bytes: 256 * 1024,
            string_bytes: 64 * 1024,
            list_strings: 1_024,
            nesting: 32,
            commands: 8_192,
            regex_bytes: 1_024,
            regex_memory_bytes: 256 * 1024,
            regexes: 64,
            steps: 20_000,
            work_bytes: 256 * 1024 * 1024,
            variables: 128,
            variable_bytes: 8 * 1024,
            expanded_bytes: 128 * 1024,
            actions: 64,
            redirects: 5,
            notifications: 5,
            flags: 64,
            header_edits: 64,
            header_fields: 10_000,
            field_bytes: 64 * 1024,
            addresses: 10_000,
            body_parts: 1_000,
            include_depth: 10,
            includes: 64,
            duplicates: 16,
            vacation_min_seconds: 0,
            vacation_max_seconds: 90 * 86_400,
            duplicate_max_seconds: 90 * 86_400,
            hidden: &[],
        }
    }
}
