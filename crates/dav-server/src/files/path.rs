//! Where files lie: paths and the folders behind them.

use scrinium_database::folder::name::SEPARATOR;
use scrinium_dav::place::{NAME_BYTES_MAX, ROOT};
use scrinium_dav_wire::header::{encode_segment, parse_destination, path_segments};

/// The segment of paths, and the folder of a mail database, below which files lie.
const SEGMENT: &str = "files";
const FOLDER: &str = "Files";

/// The path of a file or of a collection of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilePath {
    /// Whose it is.
    pub(super) person: String,
    /// Names, from the person's root on; none for the root.
    pub(super) names: Vec<String>,
}

impl FilePath {
    /// Whether a path lies among files.
    pub(super) fn is_meant(path: &str) -> bool {
        let mut segments = path.split(['/', '?']).skip(1);
        segments.next() == Some(ROOT) && segments.next() == Some(SEGMENT)
    }

    /// Of a path as it came. `None`: nothing can lie there.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let mut names = Vec::new();
        for segment in path_segments(path)? {
            let name = String::from_utf8(segment).ok()?;
            let is_sound = name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
            (is_sound && !name.contains(SEPARATOR)).then(|| names.push(name))?;
        }
        let mut rest = names.into_iter();
        if rest.next()? != ROOT || rest.next()? != SEGMENT {
            return None;
        }
        Some(Self { person: rest.next()?, names: rest.collect() })
    }

    /// Of an address: in the header If, in Destination.
    pub(super) fn of_address(address: &str) -> Option<Self> {
        Self::parse(parse_destination(address)?.1)
    }

    /// As it is given out.
    pub(super) fn href(&self, is_collection: bool) -> String {
        let mut href = format!("/{ROOT}/{SEGMENT}/{}", encode_segment(self.person.as_bytes()));
        for name in &self.names {
            href.push('/');
            href.push_str(&encode_segment(name.as_bytes()));
        }
        if is_collection {
            href.push('/');
        }
        href
    }

    /// The folder that such a collection is.
    pub(super) fn folder(&self) -> String {
        let mut folder = FOLDER.to_owned();
        for name in &self.names {
            folder.push(SEPARATOR);
            folder.push_str(name);
        }
        folder
    }

    /// The name, and the collection that it lies in. `None` of the root.
    pub(super) fn split(&self) -> Option<(Self, &str)> {
        let (name, above) = self.names.split_last()?;
        Some((Self { person: self.person.clone(), names: above.to_vec() }, name))
    }

    pub(super) fn child(&self, name: &str) -> Self {
        let mut child = self.clone();
        child.names.push(name.to_owned());
        child
    }

    /// Whether another path is this one or lies below it.
    pub(super) fn holds(&self, other: &Self) -> bool {
        self.person == other.person && other.names.starts_with(&self.names)
    }
}
