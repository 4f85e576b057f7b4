//! Step `book`: does what the pages of `docs/` say, literally, each page with a broker of its own.
//!
//! Commands find the binary just built as `danube`, Python programs the published official client.
//! Pages name the usual ports; the free ones that this broker has take their place before a block
//! runs. Pages that are generated or only explain (`adr`, `formats`, `reference`) have no commands.
//!
//! Law: what a page starts is ended again, and it leaves nothing outside the build folder.

use super::clients::{build, environment};
use super::newcomer::{Tour, addresses};
use super::tour::{self, Act, Block};
use crate::ground::Ground;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// Folders of `docs/` without commands.
const WITHOUT: [&str; 3] = ["adr", "formats", "reference"];
/// The terminal of the broker that a page does not start itself.
const BROKER: u8 = 0;

/// Does what each page says.
pub fn run(ground: &Ground) -> Result<()> {
    let danube = build(ground)?;
    let binaries = danube.parent().context("the binary lies in a folder")?;
    let shell = ground.shell()?;
    let home = ground.target.join("interop-python");
    let python = environment(&shell, &home, &ground.root.join("interop/python"))?;
    let python = python.parent().context("Python lies in a folder")?;
    let mut commands = 0;
    for page in pages(&ground.root.join("docs"))? {
        let name = page.strip_prefix(&ground.root).unwrap_or(&page).display().to_string();
        let blocks = tour::read_page(&shell.read_file(&page)?).with_context(|| name.clone())?;
        if blocks.is_empty() {
            continue;
        }
        eprintln!("-- {name}");
        commands += blocks.len();
        let folder = ground.target.join("book").join(name.replace('/', "-"));
        shell.remove_path(&folder)?;
        shell.create_dir(&folder)?;
        take(ground, &name, &folder, &[binaries, python], blocks)?;
    }
    if commands == 0 {
        bail!("docs/ has no command to run");
    }
    Ok(())
}

fn take(
    ground: &Ground,
    name: &str,
    folder: &Path,
    binaries: &[&Path],
    blocks: Vec<Block>,
) -> Result<()> {
    let mut environment = addresses()?;
    let ports: Vec<(&str, String)> = environment
        .iter()
        .filter_map(|(variable, address)| match *variable {
            "DANUBE_BROKER_ADDR" => Some(("127.0.0.1:6650", address.clone())),
            "DANUBE_ADMIN_ADDR" => Some(("127.0.0.1:50051", address.clone())),
            "DANUBE_HTTP_ADDR" => Some(("127.0.0.1:8080", address.clone())),
            _ => None,
        })
        .collect();
    let own = std::env::var_os("PATH").unwrap_or_default();
    let path = binaries.iter().map(|path| path.to_path_buf()).chain(std::env::split_paths(&own));
    let path = std::env::join_paths(path).context("the path of a folder has a colon")?;
    environment.push(("PATH", path.to_string_lossy().into_owned()));
    // What a command remembers for its user goes there.
    environment.push(("HOME", folder.display().to_string()));
    environment.push(("XDG_CONFIG_HOME", folder.display().to_string()));
    let blocks = with_broker(blocks).into_iter().map(|block| on_ports(block, &ports));
    Tour::new(name, folder, &ground.target, environment).take(&blocks.collect::<Vec<_>>())
}

/// A page that does not begin with starting a broker finds one running.
fn with_broker(mut blocks: Vec<Block>) -> Vec<Block> {
    let starts = |block: &Block| match &block.act {
        Act::Run { script, until: Some(_) } => script.contains("danube start"),
        _ => false,
    };
    if !blocks.first().is_some_and(starts) {
        let act = Act::Run {
            script: "exec danube start --data-dir broker".to_owned(),
            until: Some("danube ready".to_owned()),
        };
        blocks.insert(0, Block { line: 0, terminal: BROKER, act });
    }
    blocks
}

fn on_ports(block: Block, ports: &[(&str, String)]) -> Block {
    let act = match block.act {
        Act::Run { mut script, until } => {
            for (usual, free) in ports {
                script = script.replace(usual, free);
            }
            Act::Run { script, until }
        }
        shown => shown,
    };
    Block { act, ..block }
}

/// The pages, in order of their names.
fn pages(docs: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(docs).with_context(|| docs.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if path.is_dir() && name.is_none_or(|name| !WITHOUT.contains(&name.as_str())) {
            found.extend(pages(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_a_broker_gets_one_and_ports_are_replaced() {
        let blocks = tour::read_page("```sh\ncurl 127.0.0.1:8080/metrics\n```\n").expect("good");
        let blocks = with_broker(blocks);
        assert_eq!((blocks.len(), blocks[0].terminal), (2, BROKER));
        let ports = [("127.0.0.1:8080", "127.0.0.1:9".to_owned())];
        let Act::Run { script, .. } = on_ports(blocks.into_iter().nth(1).expect("two"), &ports).act
        else {
            panic!("it runs")
        };
        assert_eq!(script, "curl 127.0.0.1:9/metrics");
        let own = "```sh terminal=1 until=\"danube ready\"\ndanube start\n```\n";
        assert_eq!(with_broker(tour::read_page(own).expect("good")).len(), 1);
    }
}
