//! The views of a design document, or of a folder, and their indexes.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use scrinium_database::Access;
use scrinium_mango::IndexDefinition;

use crate::definition::Definition;
use crate::policy::Policies;
use crate::registry::ViewIndex;
use crate::resort::Resorted;

/// Design documents read at once; each may be of some size.
pub(crate) const DESIGNS_AT_ONCE: usize = 10;

/// Definitions that queries choose among.
pub(crate) type MangoIndexes = Arc<[Arc<IndexDefinition>]>;

/// All Mango indexes of a database.
#[derive(Clone)]
pub(crate) struct KnownIndexes {
    pub(crate) indexes: MangoIndexes,
    /// The ids of those design documents that not everybody may read.
    pub(crate) restricted: Arc<[String]>,
}

/// The views of one design document, or the collection of one folder.
pub(crate) struct Group {
    pub(crate) views: Vec<View>,
    /// Other orders that the views can be read in.
    pub(crate) resorted: Vec<Resorted>,
    /// What the design document was before it changed, as long as views of now are not built: it answers for them.
    pub(crate) before: Mutex<Option<Arc<Group>>>,
    pub(crate) policies: Policies,
    /// This many of the views are noted as built.
    pub(crate) remembered: AtomicUsize,
    /// The design document's `Readers` name somebody: for others there are none of its views.
    pub(crate) is_restricted: bool,
}

/// A view and its index.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) definition: Arc<Definition>,
    pub(crate) index: Arc<ViewIndex>,
    /// The number of the folder whose collection it is; it has what is in there.
    pub(crate) folder: Option<u32>,
}

/// What design documents say holds for everybody, no matter who may read them.
pub(crate) const fn access_for_designs() -> Access {
    Access::of_the_server("applying design documents")
}

impl View {
    pub(crate) fn is_built(&self) -> bool {
        self.index.reached() > 0
    }
}

impl Group {
    pub(crate) fn new(
        views: Vec<View>,
        resorted: Vec<Resorted>,
        policies: Policies,
        before: Option<Arc<Self>>,
    ) -> Self {
        let before = Mutex::new(before);
        Self { views, resorted, before, policies, remembered: AtomicUsize::new(0), is_restricted: false }
    }

    /// The views now and, while some of them are not built, those before.
    pub(crate) fn with_before(self: &Arc<Self>) -> impl Iterator<Item = Arc<Self>> + use<> {
        let before = self.before.lock().clone();
        std::iter::once(Arc::clone(self)).chain(before)
    }

    pub(crate) fn view(&self, name: &str) -> Option<&View> {
        self.views.iter().find(|view| view.definition.name == name)
    }
}
