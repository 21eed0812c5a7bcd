//! Where a running server makes backups and restores from: only where its configuration says, so that anyone who may use the
//! console has it write to no other place of its machine, nor send its data elsewhere.

use std::path::{Path, PathBuf};

use crate::config::Settings;

/// The place that is asked for, if the configuration names it; without one, the only place that it names.
pub(crate) fn target(settings: &Settings, wanted: Option<&Path>) -> Result<PathBuf, String> {
    let targets = &settings.backup.targets;
    match (wanted, targets.as_slice()) {
        (Some(wanted), _) if is_named(settings, wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => Err(refusal(wanted)),
        (None, [only]) => Ok(PathBuf::from(only)),
        (None, []) => {
            Err("name a folder for backups as backup.targets in the configuration file, such as targets = \
                           [\"/backups/mail\"] under [backup], and start the server again"
                .to_owned())
        }
        (None, several) => Err(format!("say which of backup.targets: {}", several.join(", "))),
    }
}

/// The log's archive that is asked for, if it is the server's own or the configuration names it.
pub(crate) fn archive(settings: &Settings, wanted: &Path) -> Result<PathBuf, String> {
    let own = settings.in_data_dir(&settings.log.archive_dir);
    let own = std::path::absolute(&own).unwrap_or(own);
    if wanted == own || is_named(settings, wanted) { Ok(wanted.to_owned()) } else { Err(refusal(wanted)) }
}

fn is_named(settings: &Settings, wanted: &Path) -> bool {
    settings.backup.targets.iter().any(|target| Path::new(target) == wanted)
}

fn refusal(wanted: &Path) -> String {
    let wanted = wanted.display();
    format!(
        "a running server works only in the places that its configuration file names: add \"{wanted}\" to backup.targets \
         there and start the server again, or stop the server and give the same command"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_place_that_the_configuration_names_is_taken() {
        let mut settings = Settings::default();
        let ask = |settings: &Settings, wanted: Option<&str>| target(settings, wanted.map(Path::new));
        assert!(ask(&settings, None).unwrap_err().contains("backup.targets"));
        assert!(ask(&settings, Some("/backups")).unwrap_err().contains("add \"/backups\" to backup.targets"));
        settings.backup.targets = vec!["/backups".to_owned()];
        assert_eq!(ask(&settings, None), Ok(PathBuf::from("/backups")));
        assert_eq!(ask(&settings, Some("/backups/")), Ok(PathBuf::from("/backups/")));
        for wrong in ["/backups/../etc", "/backups/mail", "backups", "/", "", "s3://bucket/backups"] {
            assert!(ask(&settings, Some(wrong)).is_err(), "{wrong}");
        }
        settings.backup.targets.push("s3://bucket/mail".to_owned());
        assert_eq!(ask(&settings, Some("s3://bucket/mail")), Ok(PathBuf::from("s3://bucket/mail")));
        assert!(ask(&settings, Some("s3://bucket/mail2")).is_err());
        assert!(ask(&settings, None).unwrap_err().ends_with("/backups, s3://bucket/mail"));
        assert!(archive(&settings, Path::new("/etc")).is_err());
        let own = std::path::absolute(settings.in_data_dir(&settings.log.archive_dir)).unwrap();
        assert_eq!(archive(&settings, &own), Ok(own.clone()));
    }
}
