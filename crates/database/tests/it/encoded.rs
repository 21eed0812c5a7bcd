//! Attachments that come as gzip: stored as they came, and read as that or as what they stand for, at any offset.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use scrinium_contents::{ContentError, EncodedUpload, Upload};
use scrinium_database::{Edit, EditMode, InitialAccess, NewAttachment, ReadOptions};
use scrinium_fault::{cases, noise};
use scrinium_maintenance::{FixupOptions, fixup};
use scrinium_views::OpenDatabase;
use serde_json::json;

use crate::common::{SERVER, Server, get_with};

/// Of these members a gzip is made: what compresses well, and what does not.
fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (any::<u8>(), 0..600_000_usize).prop_map(|(byte, count)| vec![byte; count]),
        (any::<u64>(), 0..200_000_usize).prop_map(|(seed, count)| noise(seed, count)),
    ]
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn attach(database: &OpenDatabase, id: &str, packed: &[u8], piece_bytes: usize) {
    let mut upload = EncodedUpload::new(database.upload("text/plain"));
    packed.chunks(piece_bytes).for_each(|piece| upload.write(piece).unwrap());
    let content = upload.finish().unwrap();
    let attached = NewAttachment { name: "f".to_owned(), content_type: "text/plain".to_owned(), content };
    let edit =
        Edit { json: json!({"_id": id}).to_string().into(), attachments: vec![attached], ..Edit::default() };
    let update = database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap();
    update.wait().unwrap().remove(0).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(12)))]

    #[test]
    fn a_gzip_is_read_as_what_it_stands_for(
        members in prop::collection::vec(member(), 1..4),
        piece_bytes in 1_000..400_000_usize,
        reads in prop::collection::vec((0.0..1.1_f64, 1..700_000_usize), 0..8),
    ) {
        let server = Server::quick();
        let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
        let plain = members.concat();
        let packed: Vec<u8> = members.iter().flat_map(|member| compressed(member)).collect();
        attach(&database, "x", &packed, piece_bytes);
        let open = || database.open_attachment("x", "f", None, &SERVER).unwrap();
        let reader = open();
        prop_assert_eq!(reader.length, plain.len() as u64);
        prop_assert_eq!(reader.encoded_length, Some(packed.len() as u64));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        for (place, most) in reads {
            let offset = ((plain.len() as f64) * place) as usize;
            let read = reader.read(offset as u64, most).unwrap();
            let expected = plain.get(offset..).unwrap_or_default();
            prop_assert!(expected.starts_with(&read) && read.len() <= most);
            prop_assert_eq!(read.is_empty(), expected.is_empty());
        }
        for (reader, expected) in [(open(), &plain), (open().into_encoded(), &packed)] {
            let mut all = Vec::new();
            while let Some(read) = Some(reader.read(all.len() as u64, 100_000).unwrap()).filter(|read| !read.is_empty()) {
                all.extend_from_slice(&read);
            }
            prop_assert!(all == *expected);
        }
        let options = ReadOptions { encoding_info: true, ..ReadOptions::default() };
        let stub = get_with(&database, "x", &options).unwrap()["_attachments"]["f"].take();
        prop_assert_eq!(&stub["length"], plain.len());
        prop_assert_eq!(&stub["encoded_length"], packed.len());
        fixup(&server.databases, None, FixupOptions::default(), |finding| panic!("{finding:?}")).unwrap();
    }
}

#[test]
fn what_is_no_gzip_or_stands_for_too_much_is_refused() {
    let server = Server::quick();
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    let upload = |bytes: &[u8]| {
        let upload = Upload::new(&database.context.contents, "text/plain", 1 << 20);
        let mut upload = EncodedUpload::new(upload);
        upload.write(bytes).and_then(|()| upload.finish())
    };
    let packed = compressed(&noise(1, 5000));
    assert_eq!(upload(&packed).unwrap().decoded_length(), Some(5000));
    let trailing = [&packed[..], b"more"].concat();
    for broken in [&b"nonsense"[..], b"", &packed[..3000], &packed[..packed.len() - 1], &trailing] {
        assert!(matches!(upload(broken), Err(ContentError::Encoding)), "{} bytes", broken.len());
    }
    assert!(upload(&compressed(&vec![0; 1 << 20])).is_ok());
    let bomb = compressed(&vec![0; (1 << 20) + 1]);
    assert!(bomb.len() < 10_000);
    assert!(matches!(upload(&bomb), Err(ContentError::TooLarge { .. })));
}
