//! The keys of roles in a manifest and in the files of posting lists.

use std::borrow::Cow;

/// The marks in role keys: for a role that is stored as a text, and for any other role.
const TEXT_ROLE: char = 't';
const OTHER_ROLE: char = 'o';

/// Returns the key of a role. The key is the role itself, or NUL, a mark and the role if the role is not
/// stored as a text or begins with a NUL.
pub(super) fn role_key(role: &str, is_text: bool) -> Cow<'_, str> {
    match (is_text, role.starts_with('\0')) {
        (true, false) => role.into(),
        (true, true) => format!("\0{TEXT_ROLE}{role}").into(),
        (false, _) => format!("\0{OTHER_ROLE}{role}").into(),
    }
}

/// Returns the role of a key, and whether the database stores the role as a text.
pub(super) fn parse_role_key(key: &str) -> (&str, bool) {
    let Some(marked) = key.strip_prefix('\0') else { return (key, true) };
    match marked.strip_prefix(OTHER_ROLE) {
        Some(role) => (role, false),
        None => (marked.strip_prefix(TEXT_ROLE).unwrap_or(marked), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_that_is_no_text_has_a_key_of_its_own() {
        let roles = ["", "user", "\0", "\0user", "\0tuser", "\0ouser", "\0\0", "7"];
        let roles: Vec<_> = roles.iter().flat_map(|role| [(*role, true), (*role, false)]).collect();
        let mut keys = std::collections::HashSet::new();
        for (role, is_text) in roles {
            let key = role_key(role, is_text).into_owned();
            assert_eq!(parse_role_key(&key), (role, is_text));
            assert!(keys.insert(key), "{role:?} {is_text}");
        }
    }
}
