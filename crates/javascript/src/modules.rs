//! CommonJS modules: map functions load those in `views.lib` by `require('views/lib/name')`, validations any text of their
//! design document.

use rquickjs::{Ctx, Exception, Function, Result};
use serde_json::Value;

use crate::source;

/// What stands before a module's source, on its first line.
pub(crate) const HEAD: &str = "(function (module, exports, require) {";

/// Folders in folders; deeper ones are left out.
const DEPTH_MAX: usize = 32;

/// The texts of all modules in `views.lib` by their paths, as JSON.
pub(crate) fn of_library(library: &Value) -> String {
    let mut texts = serde_json::Map::new();
    collect("views/lib".to_owned(), library, DEPTH_MAX, &mut texts);
    Value::Object(texts).to_string()
}

/// The texts of all modules in a design document, in the same way.
pub(crate) fn of_design(design: &Value) -> String {
    let mut texts = serde_json::Map::new();
    for (name, node) in design.as_object().into_iter().flatten() {
        if !name.starts_with('_') {
            collect(name.clone(), node, DEPTH_MAX, &mut texts);
        }
    }
    Value::Object(texts).to_string()
}

fn collect(path: String, node: &Value, depth: usize, texts: &mut serde_json::Map<String, Value>) {
    match node {
        Value::String(_) => {
            texts.insert(path, node.clone());
        }
        Value::Object(nodes) if depth > 0 => {
            for (name, node) in nodes {
                collect(format!("{path}/{name}"), node, depth - 1, texts);
            }
        }
        _ => {}
    }
}

/// The path of the module that `require(name)` means in a module of the folder `base`. As in CouchDB, a name
/// that does not begin with a dot begins at the design document.
#[allow(clippy::needless_pass_by_value, reason = "the engine calls it so")]
pub(crate) fn resolve(ctx: Ctx<'_>, base: String, name: String) -> Result<String> {
    let relative = matches!(name.split('/').next(), Some("." | ".."));
    let mut path: Vec<&str> = base.split('/').filter(|part| relative && !part.is_empty()).collect();
    for part in name.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part != ".." {
            path.push(part);
        } else if path.pop().is_none() {
            let message = format!("invalid_require_path: {name} leads out of the design document");
            return Err(Exception::throw_message(&ctx, &message));
        }
    }
    Ok(path.join("/"))
}

/// The function that runs a module's source.
#[allow(clippy::needless_pass_by_value, reason = "the engine calls it so")]
pub(crate) fn compile<'js>(ctx: Ctx<'js>, path: String, text: String) -> Result<Function<'js>> {
    // The line's end closes a comment in the last line.
    ctx.eval_with_options(format!("{HEAD}{text}\n}})"), source::options(&path))
}
