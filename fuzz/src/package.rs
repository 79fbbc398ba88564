//! Exports of several files: any bytes as a zip, and zips and folders with any names and contents.
//!
//! Input: a byte that selects the kind; then the zip, or names and contents with a NUL after each.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use verbatim_chats::import::{Branches, Error, Export, ImportTally};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

pub(super) fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("export");
    let mut fields = data.split(|byte| *byte == 0);
    let files =
        std::iter::from_fn(|| Some((String::from_utf8_lossy(fields.next()?), fields.next()?)));
    match kind % 4 {
        0 => fs::write(&path, data).expect("a file"),
        1 => {
            fs::create_dir(&path).expect("a folder");
            for (name, content) in files {
                // Below the folder, even if the name leads out of it.
                let name: Vec<&str> = name
                    .split('/')
                    .filter(|part| !part.is_empty() && !part.starts_with('.'))
                    .collect();
                let file = path.join(name.join("/"));
                drop(fs::create_dir_all(file.parent().unwrap_or(Path::new("."))));
                drop(fs::write(file, content));
            }
        }
        method => {
            let method =
                if method == 2 { CompressionMethod::Stored } else { CompressionMethod::Deflated };
            let mut zip = ZipWriter::new(File::create(&path).expect("a file"));
            for (name, content) in files {
                let options = SimpleFileOptions::default().compression_method(method);
                if zip.start_file(name, options).is_ok() {
                    zip.write_all(content).expect("an entry");
                }
            }
            drop(zip.finish());
        }
    }
    let Ok(mut export) = Export::open(&path) else { return };
    let _ = export.size();
    let mut tally = ImportTally::default();
    let read = export.read::<Error>(Branches::All, &mut tally, &|_| {}, &mut |_, _| Ok(()));
    assert!(read.is_err() || tally.conversations > 0);
}
