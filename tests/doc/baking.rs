use verbatim_search::{Branches, Config, Engine, import};

/// Imports the export of the first example of the documentation, for the other examples.
pub fn baking() -> Result<(tempfile::TempDir, Engine), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let export = home.path().join("conversations.json");
    std::fs::write(
        &export,
        r#"[{"uuid": "c1", "name": "Baking", "chat_messages": [
        {"uuid": "m1", "sender": "human", "created_at": "2025-01-03T10:00:00Z",
         "text": "How long does a sourdough bread proof?"},
        {"uuid": "m2", "sender": "assistant", "created_at": "2025-01-03T10:00:09Z",
         "text": "Four hours at 24 degrees, or a night in the fridge."}]}]"#,
    )?;
    let config = Config { home: home.path().to_owned(), ..Config::default() };
    std::fs::create_dir_all(config.db_folder())?;
    import(&[export], &config.db_folder().join("chats.db"), Branches::Shown, &|_| {})?;
    Ok((home, Engine::new(config)))
}
