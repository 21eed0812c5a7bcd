//! What the views of all databases of a server use.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use scrinium_database::{
    Database, DatabaseError, DesignInterpreter, EditFunction, EditMode, EditToValidate, FunctionLanguage,
    Result, Verdict,
};
use scrinium_javascript::{Pool, PoolOptions, Validator};
use scrinium_statistics::Registry;
use scrinium_store::Store;
use serde_json::Value;

use crate::counts::ViewCounts;
use crate::design;
use crate::error::OrDatabaseError as _;
use crate::follow::UpdateQueue;
use crate::formula_validation::FormulaValidator;
use crate::text::AttachmentText;
use crate::waiting::Updates;

/// What the views of all databases of a server use.
pub struct ViewsContext {
    rebuild_dir: RwLock<PathBuf>,
    /// The processes that run functions.
    pub(crate) scripts: Pool,
    /// The databases in which something is to be brought up to date.
    pub announced: Arc<UpdateQueue>,
    pub(crate) view_counts: Arc<ViewCounts>,
    pub(crate) updates: Updates,
    attachment_text: OnceLock<Arc<dyn AttachmentText>>,
}

impl ViewsContext {
    /// That of a server whose first store is `store`.
    #[must_use]
    pub fn new(store: &Store) -> Self {
        Self {
            rebuild_dir: RwLock::new(default_rebuild_dir(store)),
            scripts: Pool::default(),
            announced: Arc::default(),
            view_counts: Arc::default(),
            updates: Updates::default(),
            attachment_text: OnceLock::new(),
        }
    }

    /// Where builds of views put what does not fit into memory.
    #[must_use]
    pub fn rebuild_dir(&self) -> PathBuf {
        self.rebuild_dir.read().clone()
    }

    /// Sets that folder; the next build uses it.
    pub fn set_rebuild_dir(&self, dir: PathBuf) {
        *self.rebuild_dir.write() = dir;
    }

    /// Sets how many processes run JavaScript, and what each of them may use; for those that are started from now on.
    pub fn set_script_options(&self, options: PoolOptions) {
        self.scripts.set_options(options);
    }

    /// Sets what takes the words out of attachments, once; without it they have none.
    pub fn set_attachment_text(&self, text: Arc<dyn AttachmentText>) {
        if self.attachment_text.set(text).is_err() {
            tracing::error!("what reads attachments was set twice");
        }
    }

    pub(crate) fn attachment_text(&self) -> Option<&dyn AttachmentText> {
        self.attachment_text.get().map(AsRef::as_ref)
    }

    /// A gauge that reads 0 once the databases are closed.
    pub(crate) fn figure(
        self: &Arc<Self>,
        statistics: &Registry,
        name: &str,
        read: impl Fn(&Self) -> f64 + Send + Sync + 'static,
    ) {
        let views = Arc::downgrade(self);
        statistics.gauge(name, move || views.upgrade().map_or(0.0, |views| read(&views)));
    }
}

impl DesignInterpreter for ViewsContext {
    fn check_design(&self, owner: [u8; 16], design: &Value, mode: EditMode) -> Result<()> {
        match mode {
            EditMode::Interactive => design::check(&self.scripts, owner, design),
            EditMode::Replicated => design::check_replicated(&self.scripts, owner, design),
        }
    }

    fn check_columns(&self, folder: &str, columns: &Value) -> Result<()> {
        let definition = design::of_folder(folder, 0, columns)?;
        if !definition.keys.resorts.is_empty() {
            return Err(DatabaseError::bad_request(format!(
                "Folder `{folder}`: `resort` is of the columns of views; a folder has one order."
            )));
        }
        Ok(())
    }

    fn edit_function(
        &self,
        owner: [u8; 16],
        language: FunctionLanguage,
        source: &str,
        design: &str,
    ) -> Option<Box<dyn EditFunction>> {
        match language {
            FunctionLanguage::JavaScript => {
                Some(Box::new(Function(Validator::new(&self.scripts, owner, source, design))))
            }
            FunctionLanguage::Formula => Some(Box::new(FormulaValidator::new(source)?)),
        }
    }
}

/// Where builds have their folders unless the administrator says otherwise.
fn default_rebuild_dir(store: &Store) -> PathBuf {
    store.dir().join("rebuild")
}

/// A `validate_doc_update`.
struct Function(Validator);

impl EditFunction for Function {
    fn validate(&self, _: &Database, edits: &[EditToValidate<'_>]) -> Result<Vec<Verdict>> {
        let edits: Vec<_> = edits.iter().map(text).collect();
        let verdicts = self.0.validate(&edits).or_database_error()?;
        Ok(verdicts.into_iter().map(verdict).collect())
    }
}

const fn text<'a>(edit: &EditToValidate<'a>) -> scrinium_javascript::EditToValidate<'a> {
    let EditToValidate { new_json, old_json, user_json, security_json } = *edit;
    scrinium_javascript::EditToValidate { new_json, old_json, user_json, security_json }
}

fn verdict(verdict: scrinium_javascript::Verdict) -> Verdict {
    match verdict {
        scrinium_javascript::Verdict::Allowed => Verdict::Allowed,
        scrinium_javascript::Verdict::Forbidden { reason } => Verdict::Forbidden { reason },
        scrinium_javascript::Verdict::Unauthorized { reason } => Verdict::Unauthorized { reason },
        scrinium_javascript::Verdict::Failed(error) => Verdict::Failed { reason: error.to_string() },
    }
}
