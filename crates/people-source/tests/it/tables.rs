//! Tables as Google, Microsoft 365 and Outlook write them, and as people do.

use proptest::prelude::*;
use scrinium_people_source::{
    Member, PersonField, PersonRecord, RecordFault, RecordPlace, SourceRecords, TableError, TableLimits,
    decode, read_table,
};

fn read(text: &str) -> SourceRecords {
    read_table(text.as_bytes(), TableLimits::default()).unwrap()
}

fn field(person: &PersonRecord, field: PersonField) -> String {
    person.fields.get(&field).map(|values| values.join("|")).unwrap_or_else(|| "-".to_owned())
}

const GOOGLE: &str = "First Name [Required],Last Name [Required],Email Address [Required],Password [Required],\
Org Unit Path [Required],Status [READ ONLY],Recovery Email,Work Secondary Email,Work Phone,Mobile Phone,Employee ID,\
Employee Title,Department\r\n\
Ada,Lovelace,ada@example.test,****,/,Active,ada@elsewhere.test,,+44 20 7946 0100,,7,Engineer,Engines\r\n\
Charles,\"Babbage, Prof.\",charles@example.test,****,/,Suspended,,,,,,,\r\n";

const MICROSOFT: &str = "Block credential,City,Display name,First name,Last name,Object Id,Office,Phone number,\
Preferred language,Proxy addresses,Title,User principal name\n\
False,London,Ada Lovelace,Ada,Lovelace,11111111-2222-3333-4444-555555555555,12,+44 20 7946 0100,en-GB,\
SMTP:ada@example.test+smtp:a.lovelace@example.test+SIP:ada@example.test,Engineer,ada@example.onmicrosoft.test\n\
True,,Charles Babbage,Charles,Babbage,11111111-2222-3333-4444-666666666666,,,,,,charles@example.test\n";

const OUTLOOK: &str = "Title;First Name;Last Name;Company;Job Title;Business Phone;E-mail Address;E-mail 2 Address;Language\n\
Lady;Ada;Lovelace;Engines Ltd;Engineer;+44 20;ada@example.test;countess@example.test;English\n";

#[test]
fn the_lists_of_the_large_providers() {
    let google = read(GOOGLE);
    let [ada, charles] = google.people.as_slice() else { panic!("two people") };
    assert_eq!((ada.identity.as_str(), ada.short_name.as_str(), &ada.password), ("ada", "ada", &None));
    assert_eq!(field(ada, PersonField::FullName), "Ada Lovelace");
    assert_eq!(field(ada, PersonField::JobTitle), "Engineer");
    // Nothing is said of aliases: a recovery address is not one, nor is a column that nobody knows.
    assert_eq!(field(ada, PersonField::Aliases), "-");
    assert_eq!((ada.is_disabled, charles.is_disabled), (Some(false), Some(true)));
    assert_eq!(field(charles, PersonField::LastName), "Babbage, Prof.");
    // A column without a value is empty at the source.
    assert_eq!(field(charles, PersonField::Department), "");
    assert_eq!(google.ignored, ["Org Unit Path [Required]", "Recovery Email", "Work Secondary Email"]);

    let microsoft = read(MICROSOFT);
    let [ada, charles] = microsoft.people.as_slice() else { panic!("two people") };
    assert_eq!(ada.identity, "11111111-2222-3333-4444-555555555555");
    assert_eq!(field(ada, PersonField::Address), "ada@example.test");
    assert_eq!(field(ada, PersonField::Aliases), "a.lovelace@example.test");
    assert_eq!(field(ada, PersonField::Language), "en-GB");
    assert_eq!((ada.is_disabled, charles.is_disabled), (Some(false), Some(true)));
    assert_eq!(field(charles, PersonField::Address), "charles@example.test");

    let outlook = read(OUTLOOK);
    let [ada] = outlook.people.as_slice() else { panic!("one person") };
    assert_eq!(field(ada, PersonField::JobTitle), "Engineer");
    assert_eq!(field(ada, PersonField::Aliases), "countess@example.test");
    assert_eq!(outlook.ignored, ["Title"]);
}

#[test]
fn our_own_table_with_groups_passwords_and_tabs() {
    let table = "ShortName\tFullName\tInternetAddress\tAliases\tGroups\tTimeZone\tPassword\tDisabled\n\
                 ada\tAda Lovelace\tada@example.test\ta@example.test;ADA@example.test\tEngines; Writers\tEurope/London\tengine no 1\tno\n\
                 \t\t\t\t\t\t\t\n\
                 charles\tCharles\tcharles@example.test\t\tengines\t\t\tyes";
    let records = read(table);
    let [ada, charles] = records.people.as_slice() else { panic!("two people") };
    assert_eq!(ada.password.as_ref().map(|password| password.0.as_str()), Some("engine no 1"));
    assert!(!format!("{records:?}").contains("engine no 1"));
    // The address is no alias of itself.
    assert_eq!(field(ada, PersonField::Aliases), "a@example.test");
    assert_eq!((charles.place.clone(), charles.is_disabled), (RecordPlace::Line(4), Some(true)));
    let groups: Vec<_> =
        records.groups.iter().map(|group| (group.name.as_str(), group.members.len())).collect();
    assert_eq!(groups, [("Engines", 2), ("Writers", 1)]);
    assert_eq!(records.groups[0].members[1], Member::Name("charles".to_owned()));
}

#[test]
fn every_encoding_that_programs_write() {
    let text = "Username,Display name\njosé,José García\n";
    let utf16 = |order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    let latin: Vec<u8> = text.chars().map(|sign| u8::try_from(u32::from(sign)).unwrap()).collect();
    for bytes in [
        text.as_bytes().to_vec(),
        [b"\xef\xbb\xbf".as_slice(), text.as_bytes()].concat(),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
        [b"\xff\xfe".as_slice(), &utf16(u16::to_le_bytes)].concat(),
        [b"\xfe\xff".as_slice(), &utf16(u16::to_be_bytes)].concat(),
        latin,
    ] {
        assert_eq!(decode(&bytes), text);
        let records = read_table(&bytes, TableLimits::default()).unwrap();
        assert_eq!(field(&records.people[0], PersonField::FullName), "José García");
    }
}

#[test]
fn a_line_that_is_wrong_is_left_out_and_said() {
    let table = "Username,Email,Status,Job title\n\
                 ada,ada at example,active,x\n\
                 charles,charles@example.test,gone fishing,x\n\
                 \"two words\",two@example.test,active,x\n\
                 ,,active,x\n\
                 grace,grace@example.test,active,\"a\nb\"\n\
                 mary,mary@example.test,active,x,y\n\
                 emmy,emmy@example.test\n";
    let records = read(table);
    let faults: Vec<_> =
        records.left_out.iter().map(|one| (&one.place, one.identity.as_deref(), &one.fault)).collect();
    let line = RecordPlace::Line;
    assert_eq!(
        faults,
        [
            (&line(2), Some("ada"), &RecordFault::Address("ada at example".to_owned())),
            (&line(3), Some("charles"), &RecordFault::Status("gone fishing".to_owned())),
            (&line(4), Some("two words"), &RecordFault::ShortName("two words".to_owned())),
            (&line(5), None, &RecordFault::NoName),
            (&line(6), Some("grace"), &RecordFault::Value { field: "JobTitle".to_owned() }),
            // The line before takes two.
            (&line(8), Some("mary"), &RecordFault::Columns { found: 5, expected: 4 }),
        ]
    );
    assert_eq!(records.people.len(), 1);
    assert_eq!(field(&records.people[0], PersonField::JobTitle), "");
}

#[test]
fn what_is_no_table_is_refused() {
    let small = TableLimits { bytes: 100, rows: 2, columns: 3, members: 3 };
    for (text, error) in [
        ("", TableError::Empty),
        ("\n\n", TableError::Empty),
        ("Colour,Size\nred,1\n", TableError::NoColumn),
        ("Username,username\na,b\n", TableError::Twice("username".to_owned())),
        ("uid,a,b,c\n", TableError::TooManyColumns { line: 1, found: 4, limit: 3 }),
        ("uid\na\nb\nc\n", TableError::TooManyRows { line: 4, limit: 2 }),
        ("uid,groups\na,x;y\nb,x;y\n", TableError::TooManyMembers { line: 3, limit: 3 }),
    ] {
        assert_eq!(read_table(text.as_bytes(), small), Err(error), "{text:?}");
    }
    let error = read_table(&[b'a'; 101], small).unwrap_err();
    assert_eq!(error, TableError::TooLarge { found: 101, limit: 100 });
    // Thousands of aliases of one person are not compared with each other.
    let aliases: String = (0..300).map(|number| format!("a{number}@example.test;")).collect();
    let records = read(&format!("uid,aliases\nada,\"{aliases}\"\n"));
    assert_eq!(records.left_out[0].fault, RecordFault::TooManyAliases);
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "(uid|Email|Groups|[,;\t\"\n@ -~]){0,40}") {
        let _ = read_table(&bytes, TableLimits::default());
        let _ = read_table(format!("uid,Email,Groups\n{text}").as_bytes(), TableLimits::default());
        let _ = read_table(text.as_bytes(), TableLimits::default());
    }
}
