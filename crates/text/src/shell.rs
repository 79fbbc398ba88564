//! Quotes arguments of commands that a person can paste into a shell.

/// Returns an argument for the platform's shells. Quotes the argument if it has characters that a shell would
/// interpret.
pub fn quoted(argument: &str) -> String {
    quoted_for(argument, cfg!(windows))
}

/// Returns an argument for the shells of Windows, `cmd` and PowerShell, or for those of other systems.
pub fn quoted_for(argument: &str, windows: bool) -> String {
    // Without quotation marks, PowerShell reads `a,b` as a list and `@a` as a variable.
    let marks = if windows { r"/._-+:=\" } else { "/._-+,:@%=" };
    if !argument.is_empty() && argument.chars().all(|c| c.is_alphanumeric() || marks.contains(c)) {
        argument.to_owned()
    } else if windows {
        // Windows programs read `\"` as a quote, and halve the number of backslashes before a quote.
        let backslashes = argument.len() - argument.trim_end_matches('\\').len();
        format!("\"{}{}\"", argument.replace('"', "\\\""), "\\".repeat(backslashes))
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_has_double_quotes() {
        for (argument, expected) in [
            (r"C:\Users\me\export.zip", r"C:\Users\me\export.zip"),
            (r"C:\My Chats\a.zip", r#""C:\My Chats\a.zip""#),
            (r"C:\My Chats\", r#""C:\My Chats\\""#),
            ("red,green", r#""red,green""#),
            ("@home", r#""@home""#),
            (r#"say "hi""#, r#""say \"hi\"""#),
            ("", r#""""#),
        ] {
            assert_eq!(quoted_for(argument, true), expected);
        }
    }

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
