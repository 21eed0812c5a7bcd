//! Contents of all volumes: where large ones are put, moving them, and removing what nobody refers to.

use scrinium_contents::{
    AttachmentOptions, Contents, ObjectInUse, RelocatedAttachments, Relocation, RemovedObjects, move_all,
};
use scrinium_database::Result;
use scrinium_objects::Objects;

use crate::databases::Databases;

impl Databases {
    /// Makes `objects` use stores of objects from now on: to be called before anything is read or written. Volumes that
    /// are attached later use it too.
    pub fn set_objects(&self, objects: &Objects) {
        for context in self.contexts() {
            context.contents.places().set_objects(objects.clone());
        }
    }

    /// What stores of objects are used by.
    #[must_use]
    pub fn objects(&self) -> Objects {
        self.first().contents.places().objects()
    }

    /// Says where large contents are put from now on, on all volumes, those that are attached later included. Those that
    /// are there stay where they are.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`](scrinium_database::DatabaseError::Invalid) if the address is wrong, and what the stores
    /// report; nothing is changed then. That a store of objects answers is not looked at.
    pub fn set_attachment_options(&self, options: AttachmentOptions) -> Result<()> {
        let contexts = self.contexts();
        if let Some(address) = &options.store {
            for context in &contexts {
                context.contents.places().define(address)?;
            }
        }
        for context in contexts.iter().skip(1) {
            context.contents.places().set_options(options.clone())?;
        }
        Ok(self.first().contents.places().set_options(options)?)
    }

    /// Removes objects that no document needs any more, after the time that is set; at most two hundred a call and
    /// volume, and none any more once `go_on` answers false.
    ///
    /// # Errors
    /// What the stores report. That a store of objects does not answer is no error: it is tried by the next call.
    pub fn remove_objects(&self, go_on: &dyn Fn() -> bool) -> Result<RemovedObjects> {
        let mut sum = RemovedObjects::default();
        for context in self.contexts() {
            let done = context.contents.remove_objects(go_on)?;
            sum.examined += done.examined;
            sum.removed += done.removed;
        }
        Ok(sum)
    }

    /// Moves the contents of a database, or of all, to where they should be. Contents that other databases share are
    /// moved for all of them. It shows as a task `attachments`, which can be paused and cancelled. One like it that was ended
    /// before its time continues where it was, unless where contents go was set again in between, or `again` is said.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`](scrinium_database::DatabaseError::NotFound);
    /// [`DatabaseError::Unavailable`](scrinium_database::DatabaseError::Unavailable) if a store of objects does not answer; and what the
    /// store reports. What was moved by then is moved.
    pub fn relocate_attachments(
        &self,
        database: Option<&str>,
        to: Relocation,
        again: bool,
    ) -> Result<RelocatedAttachments> {
        let (number, contexts) = match database {
            Some(name) => {
                let (number, context) = self.place_of(name)?;
                (Some(number), vec![context])
            }
            None => (None, self.contexts()),
        };
        let task = self.first().tasks().map(|tasks| tasks.start("attachments", database, None));
        let contents: Vec<&Contents> = contexts.iter().map(|context| &context.contents).collect();
        let moved = move_all(&contents, (number, to, again), (self.io_limits(), task.as_ref()));
        let Some(task) = task else { return Ok(moved?) };
        match &moved {
            Ok(done) if done.stopped => {}
            Ok(_) => task.finish(),
            Err(error) => task.fail(error.to_string()),
        }
        Ok(moved?)
    }

    /// Whether a move of contents was ended before its time, and would go on where it was.
    ///
    /// # Errors
    /// What the stores report.
    pub fn has_attachments_to_relocate(&self) -> Result<bool> {
        for context in self.contexts() {
            if context.contents.is_relocation_unfinished()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Calls `take` with each object that a document of a volume refers to, or did until lately, in the order of their
    /// digests, until it answers false.
    ///
    /// # Errors
    /// That there is no such volume, and what its store reports.
    pub fn each_object(&self, volume: &str, take: impl FnMut(ObjectInUse) -> Result<bool>) -> Result<()> {
        self.context_of(volume)?.contents.each_object(take)
    }

    /// Counts for the statistics how many objects contents are, and their bytes.
    ///
    /// # Errors
    /// What the stores report.
    pub fn count_objects(&self) -> Result<()> {
        self.contexts().iter().try_for_each(|context| Ok(context.contents.count_objects()?))
    }
}
