//! The document, the selection, and what stands around them.

use super::{Arguments, Body, Category, FormKind, Function, Native, flags};
use crate::machine::{Machine, MachineResult};
use crate::number::from_count;
use crate::value::{Text, Value};

const fn document(
    name: &'static str,
    body: Body,
    arguments: &'static str,
    help: &'static str,
    examples: &'static [(&'static str, &'static str)],
    flags: u16,
) -> Function {
    Function { name, category: Category::Document, arguments, help, examples, flags, body }
}

const fn native(native: Native) -> Body {
    Body::Native(native)
}

// The examples are evaluated for a response of 300 bytes with two attachments.
pub(super) const FUNCTIONS: &[Function] = &[
    document(
        "@All",
        native(|_, _| Ok(Value::truth(true))),
        "",
        "True: SELECT @All selects every document.",
        &[("SELECT @All", "1")],
        flags::PURE,
    ),
    document(
        "@AllChildren",
        native(|_, _| Ok(Value::truth(false))),
        "",
        "In a view that shows responses, adds those to documents that are selected for themselves: SELECT Form = \"Topic\" | @AllChildren. Of itself it is false.",
        &[("@AllChildren", "0")],
        flags::CHILDREN,
    ),
    document(
        "@AllDescendants",
        native(|_, _| Ok(Value::truth(false))),
        "",
        "In a view that shows responses, adds those to selected documents, the responses to these, and so on. Of itself it is false.",
        &[("@AllDescendants", "0")],
        flags::DESCENDANTS,
    ),
    document(
        "@IsResponseDoc",
        native(|machine, _| Ok(Value::truth(machine.document()?.parent().is_some()))),
        "",
        "Whether the document is a response to another.",
        &[("@IsResponseDoc", "1")],
        flags::PARENT,
    ),
    document(
        "@IsNewDoc",
        native(|_, _| Ok(Value::truth(false))),
        "",
        "Whether the document has not been saved yet; on a server always false.",
        &[("@IsNewDoc", "0")],
        flags::PURE,
    ),
    document(
        "@IsAvailable",
        Body::Form(FormKind::IsAvailable),
        "name",
        "Whether the document has the field, or the variable a value.",
        &[("@IsAvailable(Subject)", "1"), ("@IsAvailable(NoSuchField)", "0")],
        flags::DOCUMENT,
    ),
    document(
        "@IsUnavailable",
        Body::Form(FormKind::IsUnavailable),
        "name",
        "Whether the document lacks the field.",
        &[("@IsUnavailable(NoSuchField)", "1")],
        flags::DOCUMENT,
    ),
    document(
        "@GetField",
        Body::Form(FormKind::GetField),
        "name",
        "The field of this name, which may be any text.",
        &[(r#"@GetField("Subject")"#, "Subject"), (r#"@GetField("Sub" + "ject")"#, "Subject")],
        flags::DOCUMENT,
    ),
    document(
        "@SetField",
        Body::Form(FormKind::SetField),
        "name; value",
        "Gives a field a value inside an expression, as FIELD does: for the rest of this evaluation only. Its \
         name is a constant.",
        &[(r#"@SetField("Subject"; "new"); Subject"#, r#""new""#)],
        flags::PURE,
    ),
    document(
        "@DocFields",
        native(doc_fields),
        "",
        "The names of the fields of the document.",
        &[(r#"@IsMember("Subject"; @DocFields)"#, "1")],
        flags::ANY_FIELD,
    ),
    document(
        "@DocumentUniqueID",
        native(|machine, _| Ok(Value::text(machine.document()?.id()))),
        "",
        "The identifier of the document, the same in all replicas.",
        &[("@DocumentUniqueID", r#""A1""#)],
        flags::DOCUMENT,
    ),
    document(
        "@InheritedDocumentUniqueID",
        native(parent),
        "",
        "The identifier of the document that this one responds to; empty if it is no response.",
        &[("@InheritedDocumentUniqueID", r#""P1""#)],
        flags::PARENT,
    ),
    document(
        "@Ref",
        native(parent),
        "",
        "The same as @InheritedDocumentUniqueID.",
        &[("@Ref", r#""P1""#)],
        flags::PARENT,
    ),
    document(
        "@Created",
        native(|machine, _| Ok(machine.document()?.created().map_or_else(Value::empty, Value::time))),
        "",
        "When the document was made: when it came into this database.",
        &[("@Created", "[2026-11-19 08:00]")],
        flags::DOCUMENT,
    ),
    document(
        "@Modified",
        native(|machine, _| Ok(machine.document()?.modified().map_or_else(Value::empty, Value::time))),
        "",
        "When the document was changed last.",
        &[("@Date(@Modified)", "[2026-11-20]")],
        flags::DOCUMENT,
    ),
    document(
        "@AddedToThisFile",
        native(|machine, _| Ok(machine.document()?.created().map_or_else(Value::empty, Value::time))),
        "",
        "When the document came into this database; the same as @Created.",
        &[("@AddedToThisFile = @Created", "1")],
        flags::DOCUMENT,
    ),
    document(
        "@ModifiedInThisFile",
        native(|machine, _| Ok(machine.document()?.modified().map_or_else(Value::empty, Value::time))),
        "",
        "When the document was changed last in this database, by a person or by replication; the same as @Modified.",
        &[("@ModifiedInThisFile = @Modified", "1")],
        flags::DOCUMENT,
    ),
    document("@Size", native(size), "", "The same as @DocLength.", &[("@Size", "300")], flags::DOCUMENT),
    document(
        "@DocOmittedLength",
        native(|_, _| Ok(Value::number(0.0))),
        "",
        "The size of what a replica left out of the document, in bytes; on a server always 0, since documents are whole.",
        &[("@DocOmittedLength", "0")],
        flags::PURE,
    ),
    document(
        "@DocOmmittedLength",
        native(|_, _| Ok(Value::number(0.0))),
        "",
        "The same as @DocOmittedLength, as the original also spells it.",
        &[("@DocOmmittedLength", "0")],
        flags::PURE,
    ),
    document(
        "@IsDocTruncated",
        native(|_, _| Ok(Value::truth(false))),
        "",
        "Whether a replica left out parts of the document; on a server always false.",
        &[("@IsDocTruncated", "0")],
        flags::PURE,
    ),
    document(
        "@DocLength",
        native(size),
        "",
        "The size of the document with its attachments, in bytes.",
        &[("@DocLength", "300")],
        flags::DOCUMENT,
    ),
    document(
        "@Attachments",
        native(|machine, _| Ok(Value::number(from_count(machine.document()?.attachments().len())))),
        "[without bodies]",
        "The number of attachments. The argument of the original is accepted and makes no difference.",
        &[("@Attachments", "2")],
        flags::DOCUMENT,
    ),
    document(
        "@AttachmentNames",
        native(attachment_names),
        "[without bodies]",
        "The names of the attachments; empty if there are none.",
        &[("@AttachmentNames", r#""plan.pdf":"photo.png""#)],
        flags::DOCUMENT,
    ),
    document(
        "@AttachmentLengths",
        native(attachment_lengths),
        "[without bodies]",
        "The lengths of the attachments in bytes; empty if there are none.",
        &[("@AttachmentLengths", "1000:250")],
        flags::DOCUMENT,
    ),
    document(
        "@DbName",
        native(database_name),
        "",
        "The names of the server and of the database, a list of two.",
        &[("@DbName", r#""CN=Hub/O=Acme":"mail/ann""#)],
        flags::SERVER,
    ),
    document(
        "@DbTitle",
        native(|machine, arguments| {
            told(arguments, machine.environment()?.database_title.as_deref(), "a title")
        }),
        "",
        "The title of the database.",
        &[("@DbTitle", r#""Ann's mail""#)],
        flags::SERVER,
    ),
    document(
        "@ServerName",
        native(|machine, arguments| {
            told(arguments, machine.environment()?.server_name.as_deref(), "a server")
        }),
        "",
        "The canonical name of the server.",
        &[("@ServerName", r#""CN=Hub/O=Acme""#)],
        flags::SERVER,
    ),
    document(
        "@UserName",
        native(|machine, arguments| told(arguments, machine.environment()?.user_name.as_deref(), "a user")),
        "",
        "The canonical name of the user for whom the formula runs; an error where it runs for none.",
        &[("@UserName", r#""CN=Ann Smith/OU=Sales/O=Acme""#)],
        flags::USER,
    ),
    document(
        "@UserNamesList",
        native(super::name::user_names),
        "",
        "The names of the user, with those of the levels above; then roles and groups.",
        &[(
            "@UserNamesList",
            r#""Ann Smith":"CN=Ann Smith/OU=Sales/O=Acme":"*/OU=Sales/O=Acme":"*/O=Acme":"*":"[Editors]":"Staff""#,
        )],
        flags::USER,
    ),
    document(
        "@UserRoles",
        native(|machine, _| Ok(Value::texts(texts(&machine.environment()?.user_roles)))),
        "",
        "The roles of the user; empty if there are none.",
        &[("@UserRoles", r#""[Editors]""#)],
        flags::USER,
    ),
];

fn texts(names: &[String]) -> Vec<Text> {
    names.iter().map(Text::new).collect()
}

pub(super) fn told(arguments: &Arguments<'_>, text: Option<&str>, what: &str) -> MachineResult {
    text.map(Value::text)
        .ok_or_else(|| arguments.message(format!("the formula does not run for {what}")).into())
}

fn parent(machine: &mut Machine<'_>, _: &Arguments<'_>) -> MachineResult {
    Ok(machine.document()?.parent().map_or_else(Value::empty, Value::text))
}

fn doc_fields(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let names = machine.document()?.field_names();
    let names = names.ok_or_else(|| arguments.message("the document cannot tell the names of its fields"))?;
    machine.charge_list(names.len())?;
    Ok(Value::texts(names))
}

fn size(machine: &mut Machine<'_>, _: &Arguments<'_>) -> MachineResult {
    Ok(Value::number(from_bytes(machine.document()?.size_bytes())))
}

fn from_bytes(bytes: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "no file comes near 2^53 bytes")]
    return bytes as f64;
}

fn attachment_names(machine: &mut Machine<'_>, _: &Arguments<'_>) -> MachineResult {
    let attachments = machine.document()?.attachments();
    machine.charge_list(attachments.len())?;
    Ok(Value::texts(attachments.into_iter().map(|attachment| Text::from(attachment.name)).collect()))
}

fn attachment_lengths(machine: &mut Machine<'_>, _: &Arguments<'_>) -> MachineResult {
    let attachments = machine.document()?.attachments();
    machine.charge_list(attachments.len())?;
    Ok(Value::numbers(attachments.iter().map(|attachment| from_bytes(attachment.length)).collect()))
}

fn database_name(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let environment = machine.environment()?;
    let Some(name) = &environment.database_name else { return told(arguments, None, "a database") };
    let server = environment.server_name.as_deref().unwrap_or("");
    Ok(Value::texts(vec![Text::new(server), Text::new(name)]))
}
