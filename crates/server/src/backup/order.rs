//! What is ordered on the console, and how it is typed there.

use std::path::PathBuf;

use scrinium_backup::Target;

use crate::config::parse_bytes;

/// `load backup`: a backup of the whole server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupOrder {
    /// The repository's folder; `None` is the only one that the configuration names.
    pub repository: Option<PathBuf>,
    /// At most so fast.
    pub bytes_per_second: Option<u64>,
}

/// `load restore`: one database of a backup, next to the live one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreOrder {
    /// The repository's folder.
    pub repository: PathBuf,
    /// The database as the backup has it.
    pub database: String,
    /// Its new name.
    pub name: String,
    /// The backup; `None` is the newest from which the target can be reached.
    pub backup: Option<String>,
    /// Up to where.
    pub target: Target,
    /// Where the log was archived; `None` is what the backup says.
    pub archive_dir: Option<PathBuf>,
}

impl BackupOrder {
    /// Reads `[DIR] [-r RATE]`; nothing if it is not that.
    pub(crate) fn parse(rest: &str) -> Option<Self> {
        let (names, options) = words(rest, &["-r"])?;
        let mut names = names.into_iter();
        let repository = names.next().map(PathBuf::from);
        if names.next().is_some() {
            return None;
        }
        let mut bytes_per_second = None;
        for (_, value) in options {
            bytes_per_second = Some(parse_bytes(&value).ok()?);
        }
        Some(Self { repository, bytes_per_second })
    }

    /// As [`BackupOrder::parse`] reads it.
    pub(crate) fn line(&self) -> String {
        let rate = self.bytes_per_second.map(|rate| format!(" -r {rate}")).unwrap_or_default();
        let place = self.repository.as_ref().map(|dir| format!(" {}", quoted(&dir.display().to_string())));
        format!("load backup{}{rate}", place.unwrap_or_default())
    }
}

impl RestoreOrder {
    /// Reads `REPOSITORY DATABASE NEW [-b BACKUP] [-t TARGET] [-a ARCHIVE]`; nothing if it is not that.
    pub(crate) fn parse(rest: &str) -> Option<Self> {
        let (names, options) = words(rest, &["-b", "-t", "-a"])?;
        let [repository, database, name] = <[String; 3]>::try_from(names).ok()?;
        let mut order = Self {
            repository: repository.into(),
            database,
            name,
            backup: None,
            target: Target::Backup,
            archive_dir: None,
        };
        for (option, value) in options {
            match option {
                "-b" => order.backup = Some(value),
                "-t" => order.target = value.parse().ok()?,
                _ => order.archive_dir = Some(value.into()),
            }
        }
        Some(order)
    }

    /// As [`RestoreOrder::parse`] reads it.
    pub(crate) fn line(&self) -> String {
        let repository = quoted(&self.repository.display().to_string());
        let mut line = format!("load restore {repository} {} {}", quoted(&self.database), quoted(&self.name));
        if let Some(backup) = &self.backup {
            line.push_str(&format!(" -b {backup}"));
        }
        match self.target {
            Target::Backup => {}
            Target::Latest => line.push_str(" -t latest"),
            Target::Sequence(sequence) => line.push_str(&format!(" -t {sequence}")),
            Target::Time(_) => line.push_str(&format!(" -t {}", self.target)),
        }
        if let Some(archive_dir) = &self.archive_dir {
            line.push_str(&format!(" -a {}", quoted(&archive_dir.display().to_string())));
        }
        line
    }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// Words, and the values of options, which the next word is. A word with blanks in it stands between quotes.
#[allow(clippy::type_complexity, reason = "two lists, said in place")]
fn words<'o>(text: &str, options: &[&'o str]) -> Option<(Vec<String>, Vec<(&'o str, String)>)> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after, plain) = match rest.strip_prefix('"') {
            Some(inside) => {
                let (word, after) = inside.split_once('"')?;
                (word, after, false)
            }
            None => {
                let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                (word, after, true)
            }
        };
        all.push((word.to_owned(), plain));
        rest = after.trim_start();
    }
    let (mut names, mut values) = (Vec::new(), Vec::new());
    let mut all = all.into_iter();
    while let Some((word, plain)) = all.next() {
        if !plain || !word.starts_with('-') {
            names.push(word);
            continue;
        }
        let option = options.iter().find(|option| option.eq_ignore_ascii_case(&word))?;
        values.push((*option, all.next()?.0));
    }
    Some((names, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_is_written() {
        let repository = PathBuf::from("/back ups/-x");
        for bytes_per_second in [None, Some(50 << 20)] {
            for repository in [None, Some(repository.clone())] {
                let order = BackupOrder { repository, bytes_per_second };
                assert_eq!(BackupOrder::parse(&order.line()["load backup".len()..]), Some(order));
            }
        }
        let targets = ["latest", "17", "2026-11-22T06:00:00.5Z"].map(|target| target.parse().unwrap());
        for target in targets.into_iter().chain([Target::Backup]) {
            let order = RestoreOrder {
                repository: repository.clone(),
                database: "mail/ada".to_owned(),
                name: "mail/ada-1".to_owned(),
                backup: Some("20261122T060000000Z-abcd".to_owned()),
                target,
                archive_dir: Some("/the archive".into()),
            };
            assert_eq!(RestoreOrder::parse(&order.line()["load restore ".len()..]), Some(order));
        }
        for wrong in ["a b", "a -r", "a -r fast", "a -x 1", "\"a"] {
            assert_eq!(BackupOrder::parse(wrong), None, "{wrong}");
        }
    }
}
