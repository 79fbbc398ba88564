//! A tantivy index of one segment whose posting lists are written without tantivy's own indexer.
//!
//! tantivy's indexing writer spends most of its time in its hash map of terms. So `super::invert` makes the
//! lists, and tantivy's serializer writes them. The result is an ordinary tantivy index.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use tantivy::directory::error::{OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{Directory, MmapDirectory, OwnedBytes};
use tantivy::index::SegmentComponent;
use tantivy::postings::InvertedIndexSerializer;
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::store::Compressor;
use tantivy::{Index, IndexSettings, SegmentReader, TantivyDocument, TantivyError};

use super::artifact::checksum;
use verbatim_base::call::Stop;
use verbatim_base::files;
use verbatim_base::map_faults::{self, Registration};

const MAPPED: [SegmentComponent; 6] = [
    SegmentComponent::Terms,
    SegmentComponent::Postings,
    SegmentComponent::Positions,
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
    SegmentComponent::Store,
];

/// Returns whether tantivy reads a file after the index was opened. tantivy reads all other files only during
/// the opening.
pub(super) fn is_read_later(name: &str) -> bool {
    name.ends_with(".term") || name.ends_with(".idx")
}

/// Returns a schema of text fields that are not tokenized. Fields are numbered in the order of `fields`.
pub(super) fn schema(fields: &[&str], option: IndexRecordOption) -> Schema {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(option);
    let options = TextOptions::default().set_indexing_options(indexing);
    let mut schema = Schema::builder();
    for (number, name) in (0..).zip(fields) {
        let field = schema.add_text_field(name, options.clone());
        debug_assert_eq!(field, Field::from_field_id(number));
    }
    schema.build()
}

/// Creates an index in an empty folder. `write` writes the posting lists.
///
/// tantivy gets only one empty document, because it would store five bytes for each document. Reading the
/// lists does not need the number of documents.
pub(super) fn create(
    folder: &Path,
    schema: Schema,
    write: impl FnOnce(&mut InvertedIndexSerializer) -> tantivy::Result<()>,
) -> tantivy::Result<()> {
    let settings = IndexSettings {
        docstore_compression: Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    };
    let mut writer = Index::builder()
        .schema(schema)
        .settings(settings)
        .single_segment_index_writer(MmapDirectory::open(folder)?, 64 << 20)?;
    writer.add_document(TantivyDocument::new())?;
    let segments = writer.finalize()?.searchable_segments()?;
    let Some(segment) = segments.first() else { return Ok(()) };
    for component in
        [SegmentComponent::Terms, SegmentComponent::Postings, SegmentComponent::Positions]
    {
        std::fs::remove_file(folder.join(segment.relative_path(component)))?;
    }
    let mut serializer = InvertedIndexSerializer::open(segment)?;
    write(&mut serializer)?;
    serializer.close()?;
    Ok(())
}

/// Returns an error of tantivy in the words of the system, if that failed.
pub(super) fn io_error(error: TantivyError) -> io::Error {
    let (TantivyError::IoError(source)
    | TantivyError::OpenReadError(OpenReadError::IoError { io_error: source, .. })
    | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error: source, .. })
    | TantivyError::OpenDirectoryError(OpenDirectoryError::IoError {
        io_error: source, ..
    })) = &error
    else {
        return io::Error::other(error);
    };
    io::Error::new(source.kind(), source.to_string())
}

/// Checks the files of an index against the checksums that tantivy put at their ends while it wrote them.
/// They are read and not mapped, because mapped pages count as memory of the process.
pub(super) fn check(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let has_checksum = path.extension().is_some_and(|extension| extension != "json");
        if has_checksum && !is_as_written(&path)? {
            let name = path.file_name().unwrap_or_default().display();
            let text = format!("{name} was changed by something else while it was written");
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

/// The end of a tantivy file, as JSON. Its length and a constant number follow, four bytes each.
#[derive(Deserialize)]
struct Footer {
    crc: u32,
}

fn is_as_written(path: &Path) -> io::Result<bool> {
    const AFTER_FOOTER: u64 = 8;
    let mut file = files::open(path)?;
    let end = file.seek(SeekFrom::End(-(AFTER_FOOTER as i64)))?;
    let mut length = [0; 4];
    file.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    let Some(body) = end.checked_sub(length) else { return Ok(false) };
    file.seek(SeekFrom::Start(body))?;
    let Ok(footer) = serde_json::from_reader::<_, Footer>((&file).take(length)) else {
        return Ok(false);
    };
    file.rewind()?;
    Ok(checksum(file.take(body), &Stop::never())? == footer.crc)
}

/// The registrations of the mapped files that tantivy reads lists from. They must live as long as the lists.
pub(super) struct ListMaps {
    _maps: Vec<(Registration, OwnedBytes)>,
}

/// Opens an index; returns `None` unless it is one segment.
pub(super) fn open(folder: &Path) -> tantivy::Result<Option<(SegmentReader, ListMaps)>> {
    let directory = MmapDirectory::open(folder)?;
    let segments = Index::open(directory.clone())?.searchable_segments()?;
    let [segment] = &segments[..] else { return Ok(None) };
    let mut maps = Vec::new();
    for component in MAPPED {
        let path = segment.relative_path(component);
        if directory.exists(&path)? {
            // The directory maps each file only once, so the segment reader gets this same map.
            let bytes = directory.open_read(&path)?.read_bytes()?;
            maps.push((map_faults::register(&bytes), bytes));
        }
    }
    // tantivy's index reader is not used, because it would watch the folder and lock it.
    let reader = SegmentReader::open(segment)?;
    Ok(Some((reader, ListMaps { _maps: maps })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_changed_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        create(path, schema(&["text"], IndexRecordOption::Basic), |serializer| {
            let mut field = serializer.new_field(Field::from_field_id(0), 0, None)?;
            field.new_term(b"red", 1, false)?;
            field.write_doc(7, 1, &[]);
            field.close_term()?;
            Ok(field.close()?)
        })
        .unwrap();
        check(path).unwrap();
        let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let is_checked = |path: &std::path::PathBuf| path.extension().unwrap() != "json";
        for file in files.filter(is_checked).collect::<Vec<_>>() {
            let bytes = fs::read(&file).unwrap();
            let mut changed = bytes.clone();
            changed[0] ^= 1;
            fs::write(&file, &changed).unwrap();
            assert!(check(path).is_err(), "{}", file.display());
            fs::write(&file, &bytes).unwrap();
        }
        check(path).unwrap();
    }
}
