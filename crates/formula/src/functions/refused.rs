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
    /// It looks for words in other documents.
    Search,
    /// It tells about the row of a view, which is known only when the view is read.
    Row,
    /// It tells about the machine or the program.
    Machine,
    /// The server does not keep what it tells.
    NotKept,
    /// It runs text as a formula.
    RunsText,
    /// It makes or tries a password.
    Password,
}

impl Refusal {
    /// Why, as the end of a sentence.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Interface => "it needs a person and a window, and formulas run on the server",
            Self::Change => "formulas that select documents or fill columns change nothing",
            Self::Elsewhere => "formulas see one document only, so that a view depends on nothing else",
            Self::Search => {
                "formulas see one document only, and which others have the words changes with every write"
            }
            Self::Row => "it describes a row of a view, which is known only when the view is read",
            Self::Machine => "it depends on the machine or the program that runs it",
            Self::NotKept => "the server does not keep what it would show",
            Self::RunsText => {
                "what a formula reads, and whether it depends on the time, must be known before it runs"
            }
            Self::Password => "passwords are made and tried by the directory alone",
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
            Self::Search => "ask for the words with `_fulltext`, or with `$text` in a query",
            Self::Row => "read positions, levels and counts from the view's rows",
            Self::Machine => "store what is needed in the document, or ask the server through its interface",
            Self::NotKept => "store what is needed in a field of the document",
            Self::RunsText => "write the expression itself in its place",
            Self::Password => {
                "store a new password in the person's document of the directory, which hashes it"
            }
        }
    }

    /// The heading in the reference.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Interface => "They need a person and a window",
            Self::Change => "They change something",
            Self::Elsewhere => "They read other documents or other programs",
            Self::Search => "They look for words in other documents",
            Self::Row => "They tell about a row of a view",
            Self::Machine => "They depend on the machine",
            Self::NotKept => "They tell what the server does not keep",
            Self::RunsText => "They run text as a formula",
            Self::Password => "They make or try passwords",
        }
    }
}

pub(super) const NAMES: &[(Refusal, &[&str])] = &[
    (
        Refusal::Interface,
        &[
            "@BrowserInfo",
            "@ClientType",
            "@Command",
            "@DialogBox",
            "@DocMark",
            "@EditECL",
            "@EditUserECL",
            "@EnableAlarms",
            "@FontList",
            "@GetFocusTable",
            "@GetHTTPHeader",
            "@GetIMContactListGroupNames",
            "@GetViewInfo",
            "@IsAppInstalled",
            "@IsDocBeingEdited",
            "@IsDocBeingLoaded",
            "@IsDocBeingMailed",
            "@IsDocBeingRecalculated",
            "@IsDocBeingSaved",
            "@IsEmbeddedInsideWCT",
            "@IsInCompositeApp",
            "@IsModalHelp",
            "@IsUsingJavaElement",
            "@IsValid",
            "@LaunchApp",
            "@OpenInNewWindow",
            "@PickList",
            "@PostedCommand",
            "@Prompt",
            "@RefreshECL",
            "@ScanBarcode",
            "@SetTargetFrame",
            "@SetViewInfo",
            "@StatusBar",
            "@ThisName",
            "@ThisValue",
            "@UpdateFormulaContext",
            "@URLGetHeader",
            "@URLHistory",
            "@URLOpen",
            "@UrlQueryString",
            "@ViewShowThisUnread",
            "@ViewTitle",
        ],
    ),
    (
        Refusal::Change,
        &[
            "@AddToFolder",
            "@CheckAlarms",
            "@DeleteDocument",
            "@DeleteField",
            "@DocLock",
            "@HardDeleteDocument",
            "@MailSend",
            "@SetDocField",
            "@SetEnvironment",
            "@SetHTTPHeader",
            "@SetProfileField",
            "@Unavailable",
            "@UndeleteDocument",
        ],
    ),
    (
        Refusal::Elsewhere,
        &[
            "@Certificate",
            "@DB2Schema",
            "@DbColumn",
            "@DbCommand",
            "@DbExists",
            "@DbLookup",
            "@DbManager",
            "@DDEExecute",
            "@DDEInitiate",
            "@DDEPoke",
            "@DDETerminate",
            "@GetAddressBooks",
            "@GetDocField",
            "@GetProfileField",
            "@IsDB2",
            "@LDAPServer",
            "@MailDbName",
            "@NameLookup",
            "@PolicyIsFieldLocked",
            "@ServerAccess",
            "@TemplateVersion",
            "@UserAccess",
            "@UserNameLanguage",
            "@UserPrivileges",
            "@V4UserAccess",
            "@WebDbName",
        ],
    ),
    (Refusal::Search, &["@FTSearch"]),
    (
        Refusal::Row,
        &[
            "@DocChildren",
            "@DocDescendants",
            "@DocLevel",
            "@DocNumber",
            "@DocParentNumber",
            "@DocSiblings",
            "@IsCategory",
            "@IsExpandable",
            "@Responses",
        ],
    ),
    (
        Refusal::Machine,
        &[
            "@AdminECLIsLocked",
            "@ConfigFile",
            "@Domain",
            "@Environment",
            "@FormLanguage",
            "@GetPortsList",
            "@IsAgentEnabled",
            "@IsVirtualizedDirectory",
            "@LanguagePreference",
            "@Locale",
            "@MailEncryptSavedPreference",
            "@MailEncryptSentPreference",
            "@MailSavePreference",
            "@MailSignPreference",
            "@OrgDir",
            "@Platform",
            "@RegQueryValue",
            "@Version",
        ],
    ),
    (Refusal::NotKept, &["@Accessed", "@AttachmentModifiedTimes", "@NoteID", "@ReplicaID"]),
    (Refusal::RunsText, &["@Eval"]),
    (Refusal::Password, &["@HashPassword", "@Password", "@PasswordQuality", "@VerifyPassword"]),
];
