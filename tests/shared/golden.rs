//! Comparison with golden files.

use std::{env, fs, path::Path};

/// Compares a text with a file of `tests/golden/`; with `UPDATE=1` writes the file.
#[track_caller]
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().expect("in a folder")).expect("folders can be made");
        fs::write(&path, text).expect("golden files can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(text == expected, "{} differs; UPDATE=1 rewrites it:\n{text}", path.display());
}
