//! A directory elsewhere that people and groups are kept in step with.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scrinium_administration::Requests;
use scrinium_directory::Directory;
use scrinium_ldap_wire::{Filter, LdapUrl, MessageLimits, Secret};
use scrinium_people_source::{
    Credentials, DirectoryKind, Encryption, Plan, PlanOptions, Reading, SourceOptions, Task, records_of,
};
use scrinium_statistics::Tasks;
use serde_json::{Value, json};

use super::apply::{Applied, Comparison};
use super::connection::{Target, ask};
use crate::Shutdown;
use crate::cli::Failure;
use crate::config::Settings;
use crate::registry::DirectRegistry;

/// The task, by its kind.
const KIND: &str = "people_source";

/// What people who come from it have in the field `Source`.
const SOURCE: &str = scrinium_directory::FOLLOWED_SOURCE;

/// Entries of a page, and values of one entry.
const PAGE_SIZE: u32 = 500;
const VALUES_MAX: usize = 200_000;

/// A longer file is not taken for a password.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// It is looked so often whether the server stops.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Reading all of a source takes no longer.
const READ_WITHIN: Duration = Duration::from_secs(600);

/// What brings the directory in step.
pub(crate) struct Follower {
    directory: Arc<Directory>,
    requests: Arc<Requests>,
    tasks: Tasks,
    settings: Arc<Settings>,
}

impl Follower {
    /// For the source that the settings name; `None` where they name none.
    ///
    /// # Errors
    /// In words, what is wrong with the settings.
    pub(crate) fn new(
        (directory, requests): (&Arc<Directory>, &Arc<Requests>),
        tasks: &Tasks,
        settings: &Arc<Settings>,
    ) -> Result<Option<Self>, Failure> {
        if settings.people_source.url.is_empty() {
            return Ok(None);
        }
        let follower = Self {
            directory: Arc::clone(directory),
            requests: Arc::clone(requests),
            tasks: tasks.clone(),
            settings: Arc::clone(settings),
        };
        source_options(settings, Credentials::Anonymous)?;
        Ok(Some(follower))
    }

    /// Brings the directory in step, again and again, on a thread of its own that ends with the server.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn start(self, shutdown: Shutdown) -> std::io::Result<std::thread::JoinHandle<()>> {
        std::thread::Builder::new().name("people source".to_owned()).spawn(move || {
            let mut next = Instant::now();
            while !shutdown.is_requested() {
                if Instant::now() >= next {
                    self.once(&shutdown);
                    next = Instant::now() + self.settings.people_source.interval;
                }
                std::thread::sleep(LOOK_EVERY);
            }
        })
    }

    fn once(&self, shutdown: &Shutdown) {
        let task = self.tasks.start(KIND, None, None);
        match self.bring_in_step(&|written| task.advance(written), shutdown) {
            Ok((plan, applied)) => {
                task.detail("plan", told(&plan, &applied));
                if !plan.is_empty() {
                    tracing::info!(
                        new = plan.new_people.len(),
                        changed = plan.changed_people.len(),
                        groups = plan.new_groups.len() + plan.changed_groups.len(),
                        written = applied.written,
                        refused = applied.refused.len(),
                        "people were brought in step with their source"
                    );
                }
                for refused in applied.refused.iter().take(10) {
                    tracing::warn!(refused, "a person or group of the source was refused");
                }
                task.finish();
            }
            Err(error) => {
                tracing::warn!(error = error.reason(), "people were not brought in step with their source");
                task.fail(error.reason());
            }
        }
    }

    fn bring_in_step(&self, advance: &dyn Fn(u64), shutdown: &Shutdown) -> Result<(Plan, Applied), Failure> {
        let keys = &self.settings.people_source;
        let (target, options) = source_options(&self.settings, self.credentials()?)?;
        let kind = options.kind;
        let goes_on = || !shutdown.is_requested();
        let told = ask(&target, options, Task::Read(Reading::All), &goes_on).map_err(Failure::work)?;
        let records = records_of(&told.entries, kind);
        let registry = DirectRegistry::of_server(Arc::clone(&self.directory));
        let comparison = Comparison::read(&registry, SOURCE)?;
        // References to other servers were not followed, so that somebody may be there.
        let has_everybody =
            told.outcome.is_some_and(|outcome| outcome.is_complete && outcome.references == 0);
        let options = PlanOptions {
            is_complete: has_everybody,
            takes_over: keys.take_over,
            most_disabled_percent: u8::try_from(keys.most_disabled_percent).unwrap_or(100),
        };
        let plan = comparison.plan(&records, options).map_err(Failure::work)?;
        let mut before = 0;
        let mut applied = comparison.carry_out(&plan, &registry, &mut |written| {
            advance(written - before);
            before = written;
        })?;
        for mut rename in std::mem::take(&mut applied.renames) {
            SOURCE.clone_into(&mut rename.requested_by);
            if let Err(error) = self.requests.order(&rename) {
                applied.refused.push(format!("{}: {error}", rename.name));
            }
        }
        Ok((plan, applied))
    }

    fn credentials(&self) -> Result<Credentials, Failure> {
        let keys = &self.settings.people_source;
        if keys.bind_name.is_empty() {
            return Ok(Credentials::Anonymous);
        }
        let password = read_password(&self.settings.in_data_dir(&keys.password))?;
        Ok(Credentials::Simple { name: keys.bind_name.clone(), password: Secret(password.into_bytes()) })
    }
}

/// Where the source is, and what is read there.
///
/// # Errors
/// In words, what is wrong with the settings.
pub(super) fn source_options(
    settings: &Settings,
    credentials: Credentials,
) -> Result<(Target, SourceOptions), Failure> {
    let keys = &settings.people_source;
    let wrong =
        |key: &str, error: &dyn std::fmt::Display| Failure::Use(format!("people_source.{key}: {error}"));
    let url = LdapUrl::parse(&keys.url).map_err(|error| wrong("url", &error))?;
    let kind = match keys.kind.as_str() {
        "active_directory" => DirectoryKind::ActiveDirectory,
        _ => DirectoryKind::Standard,
    };
    let filter = if keys.filter.is_empty() {
        kind.filter()
    } else {
        Filter::parse(&keys.filter, MessageLimits::CLIENT).map_err(|error| wrong("filter", &error))?
    };
    let encryption = match (url.is_tls, keys.tls.as_str()) {
        (true, _) => Encryption::FromTheStart,
        (false, "off") => Encryption::None,
        (false, _) => Encryption::StartTls,
    };
    let trusted = Some(keys.ca_file.as_str()).filter(|file| !file.is_empty());
    let target = Target {
        host: url.host.clone().unwrap_or_else(|| "localhost".to_owned()),
        port: url.port.unwrap_or(if url.is_tls { 636 } else { 389 }),
        trusted: trusted.map(|file| settings.in_data_dir(Path::new(file))).into_iter().collect(),
        within: READ_WITHIN,
    };
    let options = SourceOptions {
        kind,
        encryption,
        allows_clear_password: keys.tls == "off",
        credentials,
        base: keys.base.clone(),
        filter,
        page_size: PAGE_SIZE,
        entries_max: keys.entries,
        values_max: VALUES_MAX,
        limits: MessageLimits::CLIENT,
    };
    Ok((target, options))
}

fn read_password(path: &Path) -> Result<String, Failure> {
    use std::io::Read;
    let cannot = |error| Failure::Work(format!("cannot read the password in {}: {error}", path.display()));
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(PASSWORD_BYTES_MAX).read_to_string(&mut text).map_err(cannot)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn told(plan: &Plan, applied: &Applied) -> Value {
    json!({
        "new_people": plan.new_people.len(),
        "changed_people": plan.changed_people.len(),
        "unchanged_people": plan.unchanged_people,
        "new_groups": plan.new_groups.len(),
        "changed_groups": plan.changed_groups.len(),
        "conflicts": plan.conflicts.len(),
        "written": applied.written,
        "refused": applied.refused,
    })
}
