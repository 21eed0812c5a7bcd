//! Which crates need no test again, because nothing that their tests depend on has changed since they passed.
//!
//! A crate's [`Fingerprint`] covers its own folder, those of all crates that it or its tests use, what these read elsewhere
//! in the repository, what all crates share (lock file, scripts, settings), and the surroundings: compiler, environment, programs
//! that tests look for. A [`Stamp`] says that the tests of a crate passed with a fingerprint. `scripts/test` asks for stamps only in
//! continuous integration.
//!
//! What a crate reads outside of its folder stands in its manifest, and [`crate::check`] finds what is missing there:
//!
//! ```toml
//! [package.metadata.stamps]
//! sources = ["experiments"]   # compiled in, so that crates that use this one depend on it too
//! tests = ["docs"]            # read by its tests alone
//! ```

mod fingerprint;
mod kept;
mod manifests;
mod read;

pub use fingerprint::{Fingerprint, surroundings};
pub use kept::{Stamp, Stamps};
pub use manifests::Crates;
pub(crate) use read::check;
