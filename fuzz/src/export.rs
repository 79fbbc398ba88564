//! Exports of one JSON file with any content: read, and imported into a database. A second import
//! changes nothing.

use std::{collections::HashSet, fs};

use verbatim_chats::import::{Branches, Error, Export, ImportTally};
use verbatim_engine::import;

pub(super) fn run(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("conversations.json");
    fs::write(&path, data).expect("a file");
    let mut is_plain = true;
    for branches in [Branches::Shown, Branches::All] {
        let Ok(mut export) = Export::open(&path) else { return };
        let mut tally = ImportTally::default();
        let (mut conversations, mut messages) = (HashSet::new(), 0);
        let read = export.read::<Error>(branches, &mut tally, &|_| {}, &mut |_, conversation| {
            messages += conversation.messages.len() as u64;
            is_plain &= conversations.insert(conversation.id);
            Ok(())
        });
        assert_eq!(tally.messages, messages);
        assert!(read.is_err() || tally.conversations > 0);
        is_plain &= read.is_ok();
    }
    // A conversation that is in the export twice may be written twice.
    if is_plain {
        let sources = [path];
        let target = folder.path().join("chats.db");
        let import = || import::import(&sources, &target, Branches::Shown, &|_| {});
        let first = import().expect("what was read can be written");
        let second = import().expect("what was written can be written again");
        assert!(!second.changes.any(), "{:?} then {:?}", first.changes, second.changes);
    }
}
