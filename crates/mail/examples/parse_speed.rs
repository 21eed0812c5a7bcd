//! How many messages a second become memos on one core: `parse_speed FOLDER [--show FILE]`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use scrinium_mail::{MessageOptions, memo_of_message};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().ok_or("usage: parse_speed FOLDER [--show FILE]")?;
    if let Some(file) = arguments.get(2) {
        let memo = memo_of_message(&std::fs::read(file)?, &MessageOptions::default());
        println!("{}", serde_json::to_string_pretty(&memo)?);
        return Ok(());
    }
    let mut files = Vec::new();
    collect(Path::new(folder), &mut files)?;
    let messages: Vec<Vec<u8>> = files.iter().map(std::fs::read).collect::<Result<_, _>>()?;
    let bytes: usize = messages.iter().map(Vec::len).sum();
    let mut noted = 0;
    let started = Instant::now();
    for message in &messages {
        let memo = memo_of_message(message, &MessageOptions::default());
        noted += usize::from(memo.contains_key("$ParseNotes"));
    }
    let seconds = started.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate needs few digits")]
    let rates = (messages.len() as f64 / seconds, bytes as f64 / seconds / 1e6);
    println!("{} messages, {noted} with notes, {:.0}/s, {:.0} MB/s", messages.len(), rates.0, rates.1);
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
    Ok(())
}
