//! Files that are not what we left: each gives an error that names it, or the whole catalog.

use super::*;
use std::path::PathBuf;

/// A directory with a closed catalog in it, its file, and what the catalog holds.
async fn closed() -> (tempfile::TempDir, PathBuf, Catalog) {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = open(dir.path()).await;
    let confirmed = fill(&meta, 0, 10).await;
    meta.close().await;
    let path = dir.path().join("raft.redb");
    (dir, path, confirmed)
}

async fn refusal(dir: &Path) -> String {
    let error = Meta::open(MetaOptions::new(dir)).await.expect_err("damaged");
    assert!(matches!(&error, MetaError::Damaged { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("raft.redb` is damaged: "), "{text}");
    text
}

#[tokio::test]
async fn a_file_of_another_kind_is_damaged() {
    for bytes in [vec![], b"not a database".to_vec(), vec![0; 1 << 20], vec![b'x'; 5000]] {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("raft.redb"), &bytes).expect("written");
        refusal(dir.path()).await;
        let kept = std::fs::read(dir.path().join("raft.redb")).expect("there");
        assert!(kept == bytes, "nobody mends what they do not understand");
    }
}

/// Flips a byte in each used block of `sound` and opens what comes of it.
async fn flip_every_block(sound: &[u8], confirmed: &Catalog) {
    let (mut whole, mut refused) = (0, 0);
    for (block, bytes) in sound.chunks(512).enumerate() {
        if bytes.iter().all(|byte| *byte == 0) {
            continue;
        }
        let mut flipped = sound.to_vec();
        flipped[block * 512 + 100] ^= 0xff;
        let copy = tempfile::tempdir().expect("a directory");
        std::fs::write(copy.path().join("raft.redb"), flipped).expect("written");
        match Meta::open(MetaOptions::new(copy.path())).await {
            Ok(meta) => {
                assert_eq!(*meta.view(), *confirmed, "block {block}");
                meta.close().await;
                whole += 1;
            }
            Err(error) => {
                let named = copy.path().display().to_string();
                assert!(error.to_string().contains(&named), "block {block}: {error}");
                refused += 1;
            }
        }
    }
    println!("{whole} blocks did not matter, {refused} were refused");
    assert!(refused > 0);
}

#[tokio::test]
async fn a_flipped_byte_is_found_or_did_not_matter() {
    let (_dir, path, confirmed) = closed().await;
    flip_every_block(&std::fs::read(&path).expect("there"), &confirmed).await;
}

/// After a crash the database mends what the crash cut off; it must not take damage for that.
#[tokio::test]
async fn a_flipped_byte_after_a_crash_loses_no_confirmed_change() {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = open(dir.path()).await;
    let confirmed = fill(&meta, 0, 10).await;
    let left_behind = std::fs::read(dir.path().join("raft.redb")).expect("there");
    flip_every_block(&left_behind, &confirmed).await;
    meta.close().await;
}

#[tokio::test]
async fn a_record_that_is_not_ours_is_named() {
    let (dir, path, _) = closed().await;
    let table: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("raft_state");
    let damage = |key: &str, bytes: &[u8]| {
        let database = redb::Database::open(&path).expect("sound");
        let write = database.begin_write().expect("writable");
        write.open_table(table).expect("there").insert(key, bytes).expect("written");
        write.commit().expect("committed");
    };
    damage("vote", b"{");
    let error = Meta::open(MetaOptions::new(dir.path())).await.expect_err("damaged").to_string();
    assert!(error.contains("record `vote` is damaged"), "{error}");
    damage("node_id", b"\"one\"");
    assert!(refusal(dir.path()).await.contains("record `node_id` is damaged"));
    damage("format", b"2");
    assert!(refusal(dir.path()).await.contains("it has format `2`"));
}

#[tokio::test]
async fn a_file_that_was_not_finished_is_made_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("raft.redb.new"), b"half").expect("written");
    let meta = open(dir.path()).await;
    assert_eq!(*meta.view(), Catalog::default());
    meta.close().await;
    assert!(!dir.path().join("raft.redb.new").exists());
}

#[tokio::test]
async fn a_place_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("occupied");
    std::fs::write(&path, b"").expect("written");
    let error = Meta::open(MetaOptions::new(&path)).await.expect_err("not a directory");
    assert!(matches!(&error, MetaError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
}
