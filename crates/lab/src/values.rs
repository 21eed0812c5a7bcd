//! Values that several command lines have.

use std::time::Duration;

/// A length of time, such as `90s`, `15m` or `6h`; a plain number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is no time; write 90s, 15m or 6h");
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| wrong());
    }
    let signed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(signed).map_err(|_| wrong())
}

/// `NAME=VALUE`.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| "write NAME=VALUE".to_owned())?;
    if name.is_empty() {
        Err("the name is missing".to_owned())
    } else {
        Ok((name.to_owned(), value.to_owned()))
    }
}
