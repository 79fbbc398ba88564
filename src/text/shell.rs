//! Arguments of commands that a person can paste into a shell.

/// Returns an argument as the platform's shells take it: in quotes if it holds anything that they
/// would read otherwise.
pub fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    let is_plain = |c: char| is_plain(c) || cfg!(windows) && c == '\\';
    let is_safe = !argument.is_empty() && argument.chars().all(is_plain);
    match argument {
        _ if is_safe => argument.to_owned(),
        // A file name of Windows holds no double quote.
        _ if cfg!(windows) => format!("\"{argument}\""),
        _ => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_what_was_quoted() {
        for (argument, expected) in [
            ("/home/me/export.zip", "/home/me/export.zip"),
            ("京都.zip", "京都.zip"),
            ("", "''"),
            ("My Chats/my export.zip", "'My Chats/my export.zip'"),
            ("it's", r"'it'\''s'"),
            ("a$b;c", "'a$b;c'"),
            ("~/a", "'~/a'"),
        ] {
            assert_eq!(quoted(argument), expected);
            let printed = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", quoted(argument))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(printed.stdout).unwrap(), argument);
        }
    }
}
