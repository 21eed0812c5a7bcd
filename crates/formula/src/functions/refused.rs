//! Functions of the original that a formula on a server cannot use, and why.

/// Why a function is not available.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// It shows something to a person or asks one.
    Interface,
    /// It changes something.
    Change,
    /// It reads other documents, or things outside the database.
    Elsewhere,
    /// It tells about the row of a view, which is known only when the view is read.
    Row,
    /// It tells about the machine or the program.
    Machine,
    /// The server does not keep what it tells.
    NotKept,
    /// It compiles or runs text as a formula.
    Compiling,
    /// It is not built yet.
    Later,
}

impl Refusal {
    /// Why, as the end of a sentence.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Interface => "it needs a person and a window, and formulas run on the server",
            Self::Change => "formulas that select documents or fill columns change nothing",
            Self::Elsewhere => "formulas see one document only, so that a view depends on nothing else",
            Self::Row => "it tells about a row of a view, which is known only when the view is read",
            Self::Machine => "it depends on the machine or the program that runs it",
            Self::NotKept => "the server does not keep what it tells",
            Self::Compiling => "formulas are compiled once, before they run",
            Self::Later => "this version does not have it yet",
        }
    }

    /// What to do instead.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Interface => "move it to the program that shows the document",
            Self::Change => {
                "use a temporary variable (name := value), or change the document through the interface"
            }
            Self::Elsewhere => "store what is needed in the document itself",
            Self::Row => "read positions, levels and counts from the view's rows",
            Self::Machine => "store what is needed in the document, or ask the server through its interface",
            Self::NotKept => "store what is needed in a field of the document",
            Self::Compiling => "write the expression itself in its place",
            Self::Later => "see the formula reference for the functions there are",
        }
    }

    /// The heading in the reference.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Interface => "They need a person and a window",
            Self::Change => "They change something",
            Self::Elsewhere => "They read other documents or other programs",
            Self::Row => "They tell about a row of a view",
            Self::Machine => "They depend on the machine",
            Self::NotKept => "They tell what the server does not keep",
            Self::Compiling => "They run text as a formula",
            Self::Later => "Not in this version",
        }
    }
}

pub(super) const NAMES: &[(Refusal, &[&str])] = &[
    (
        Refusal::Interface,
        &[
            "@Command",
            "@PostedCommand",
            "@Prompt",
            "@DialogBox",
            "@PickList",
            "@StatusBar",
            "@FocusIsIn",
            "@IsInCompositeApp",
            "@IsDocBeingEdited",
            "@IsDocBeingLoaded",
            "@IsDocBeingMailed",
            "@IsDocBeingRecalculated",
            "@IsDocBeingSaved",
            "@IsEmbeddedInsideWCT",
            "@IsModalHelp",
            "@IsAppInstalled",
            "@URLOpen",
            "@URLGetHeader",
            "@URLHistory",
            "@URLQueryString",
            "@GetFocusTable",
            "@SetTargetFrame",
            "@TableRow",
            "@ThisName",
            "@ThisValue",
            "@UpdateFormulaContext",
            "@GetCurrentDocument",
            "@RefreshECL",
            "@EditECL",
            "@EditUserECL",
            "@EnableAlarms",
            "@OpenInNewWindow",
            "@ViewTitle",
            "@DocMark",
            "@HelpInfo",
            "@ViewShowThisUnread",
            "@IsValid",
            "@FontList",
            "@BrowserInfo",
            "@Responses",
            "@GetViewInfo",
            "@SetViewInfo",
            "@ClientType",
            "@RegQueryValue",
        ],
    ),
    (
        Refusal::Change,
        &[
            "@DeleteDocument",
            "@DeleteField",
            "@HardDeleteDocument",
            "@UndeleteDocument",
            "@MailSend",
            "@MailSignPreference",
            "@MailEncryptSentPreference",
            "@MailEncryptSavedPreference",
            "@SetDocField",
            "@SetProfileField",
            "@SetEnvironment",
            "@AddToFolder",
            "@Unavailable",
            "@DocLock",
            "@UserPrivileges",
            "@SetHTTPHeader",
        ],
    ),
    (
        Refusal::Elsewhere,
        &[
            "@DbLookup",
            "@DbColumn",
            "@DbCommand",
            "@GetDocField",
            "@GetProfileField",
            "@GetAddressBooks",
            "@NameLookup",
            "@MailDbName",
            "@DbExists",
            "@DDEInitiate",
            "@DDEExecute",
            "@DDEPoke",
            "@DDETerminate",
            "@PolicyIsFieldLocked",
            "@GetHTTPHeader",
            "@OptimizeMailAddress",
            "@TemplateVersion",
            "@WebDbName",
            "@UserAccess",
            "@DbManager",
            "@ReplicaID",
            "@SaveSelectPreferences",
            "@LDAPServer",
            "@HashPassword",
            "@Password",
            "@PasswordQuality",
            "@VerifyPassword",
            "@Certificate",
            "@UserNameLanguage",
            "@LocationGetInfo",
            "@GetIMContactListGroupNames",
            "@Command2",
        ],
    ),
    (
        Refusal::Row,
        &[
            "@IsCategory",
            "@IsExpandable",
            "@DocLevel",
            "@DocNumber",
            "@DocParentNumber",
            "@DocChildren",
            "@DocDescendants",
            "@DocSiblings",
            "@DocOmittedLength",
        ],
    ),
    (
        Refusal::Machine,
        &[
            "@Environment",
            "@Version",
            "@Platform",
            "@GetPortsList",
            "@GetCurrentTimeZone",
            "@LanguagePreference",
            "@Locale",
            "@IsAgentEnabled",
            "@ConfigFile",
            "@FormLanguage",
            "@GetMachineInfo",
            "@DocNumberOfDatabase",
            "@IsUsingJavaElement",
            "@DbSizeLimit",
            "@OSVersion",
            "@ServerAccess",
            "@IsVirtualizedDirectory",
        ],
    ),
    (
        Refusal::NotKept,
        &[
            "@Accessed",
            "@AddedToThisFile",
            "@ModifiedInThisFile",
            "@NoteID",
            "@AttachmentModifiedTimes",
            "@Zone",
            "@IsDocTruncated",
            "@AdminECLIsLocked",
            "@UnreadMarks",
        ],
    ),
    (Refusal::Compiling, &["@Eval", "@CheckFormulaSyntax", "@FormulaCompile"]),
    (
        Refusal::Later,
        &[
            "@Abstract",
            "@Ascii",
            "@FileDir",
            "@Narrow",
            "@Wide",
            "@TimeToTextInZone",
            "@TimeZoneToText",
            "@Size",
            "@StrikeOut",
            "@FloatEq",
            "@GetDateParts",
            "@UniqueID",
        ],
    ),
];
