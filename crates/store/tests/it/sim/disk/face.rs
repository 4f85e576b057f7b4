//! The disk as the store sees it.
//!
//! Law: each operation is judged once, before anything of it is done.

use super::{EIO, NameChange, SimDisk, State, Verdict, os};
use crate::sim::faults::Fault;
use crate::sim::history::DIR;
use crate::sim::inode::Inode;
use crate::sim::random::Random;
use danube_store::disk::{DIRECT_ALIGN, Disk, DiskFile};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

/// One open file of one life.
struct SimFile {
    disk: SimDisk,
    inode: usize,
    life: u64,
    name: PathBuf,
}

fn short(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        let verdict = state.judge(|| format!("make {}", short(path)), Fault::Create, 0);
        if let Verdict::Refused(code) = verdict {
            return os(code);
        }
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.trace.prepared += u64::from(path.extension().is_some_and(|it| it == "spare"));
        let done = matches!(verdict, Verdict::Done) || state.done_anyway();
        let inode = state.inodes.len();
        if done {
            state.inodes.push(Inode::default());
            state.change_name(NameChange::Made(path.to_path_buf(), inode));
        }
        match verdict {
            Verdict::Failed(code) | Verdict::Refused(code) => os(code),
            Verdict::Done => Ok(Arc::new(SimFile {
                disk: self.clone(),
                inode,
                life: state.life,
                name: path.to_path_buf(),
            })),
        }
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.state();
        state.alive()?;
        let inode = state.find(path)?;
        let (life, name) = (state.life, path.to_path_buf());
        Ok(Arc::new(SimFile { disk: self.clone(), inode, life, name }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let verdict = state.judge(|| format!("remove {}", short(path)), Fault::Remove, 0);
        if let Verdict::Refused(code) = verdict {
            return os(code);
        }
        let inode = state.find(path)?;
        if matches!(verdict, Verdict::Done) || state.done_anyway() {
            let bytes = state.inodes[inode].data.len() as u64;
            state.give_back(bytes);
            state.change_name(NameChange::Removed(path.to_path_buf()));
        }
        match verdict {
            Verdict::Done => Ok(()),
            Verdict::Failed(code) | Verdict::Refused(code) => os(code),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.state();
        state.alive()?;
        let all = state.names.keys().chain(&state.dirs);
        Ok(all.filter(|path| path.parent() == Some(dir)).cloned().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let what = || format!("move {} to {}", short(from), short(to));
        let verdict = state.judge(what, Fault::Rename, 0);
        if let Verdict::Refused(code) = verdict {
            return os(code);
        }
        let inode = state.find(from)?;
        if matches!(verdict, Verdict::Done) || state.done_anyway() {
            if let Ok(replaced) = state.find(to) {
                let bytes = state.inodes[replaced].data.len() as u64;
                state.give_back(bytes);
            }
            let change = NameChange::Moved(from.to_path_buf(), to.to_path_buf(), inode);
            state.change_name(change);
        }
        match verdict {
            Verdict::Done => Ok(()),
            Verdict::Failed(code) | Verdict::Refused(code) => os(code),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        let verdict = state.judge(|| format!("sync directory {}", short(dir)), Fault::SyncDir, 0);
        match verdict {
            Verdict::Refused(code) => return os(code),
            Verdict::Failed(code) if !state.done_anyway() => return os(code),
            _ => {}
        }
        let (now, later) =
            std::mem::take(&mut state.pending).into_iter().partition(|c| c.dir() == Some(dir));
        let now: Vec<NameChange> = now;
        state.pending = later;
        now.into_iter().for_each(|change| state.keep_name(change));
        if let Verdict::Failed(code) = verdict { os(code) } else { Ok(()) }
    }

    fn boot_id(&self) -> Option<[u8; 16]> {
        let mut id = *b"boot ...........";
        id[8..].copy_from_slice(&(self.state().boots + 1).to_le_bytes());
        Some(id)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.alive()?;
        if !state.dirs.contains(dir) {
            state.change_name(NameChange::Dir(dir.to_path_buf()));
        }
        Ok(())
    }

    fn lock(&self, _path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut state = self.state();
        state.alive()?;
        if std::mem::replace(&mut state.locked, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Unlock(self.clone(), state.life)))
    }
}

/// Gives the lock back.
struct Unlock(SimDisk, u64);

impl Drop for Unlock {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if state.life == self.1 {
            state.locked = false;
        }
    }
}

impl SimFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.life == self.life { Ok(state) } else { os(EIO) }
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state()?;
        state.alive()?;
        let reads = state.opened.entry(self.name.clone()).or_default();
        *reads += 1;
        // By name and count, as files may be read side by side.
        if *reads == 1 && state.plan.reads_fail > 0 {
            let name = self.name.to_string_lossy().bytes().map(u64::from).sum::<u64>();
            let mut random = Random::new(name, state.life);
            if random.below(1000) < state.plan.reads_fail {
                if random.chance(50) {
                    return os(EIO);
                }
                let len = (buffer.len() / 2).min(buffer.len());
                return Ok(read(&state.inodes[self.inode].data, at, &mut buffer[..len]));
            }
        }
        Ok(read(&state.inodes[self.inode].data, at, buffer))
    }

    fn write_at(&self, at: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.disk.pass_gate(slices);
        let mut state = self.state()?;
        let mut bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        let crc = crc32c::crc32c(&bytes);
        let what =
            || format!("write {} bytes ({crc:08x}) at {at} of {}", bytes.len(), short(&self.name));
        let grows =
            (at + bytes.len() as u64).saturating_sub(state.inodes[self.inode].data.len() as u64);
        let verdict = state.judge(what, Fault::Write, grows);
        match verdict {
            Verdict::Refused(code) => return os(code),
            Verdict::Failed(_) => {
                let some = state.random.below(bytes.len() as u64 + 1) as usize;
                bytes.truncate(some);
            }
            Verdict::Done => {}
        }
        state.inodes[self.inode].write(at as usize, &bytes);
        if let Verdict::Failed(code) = verdict { os(code) } else { Ok(()) }
    }

    fn write_direct_at(&self, at: u64, bytes: IoSlice<'_>) -> io::Result<()> {
        let aligned = [at as usize, bytes.as_ptr().addr(), bytes.len()];
        assert!(aligned.iter().all(|it| it % DIRECT_ALIGN == 0), "{aligned:?}");
        let in_journal = self.name.parent() == Some(Path::new(DIR));
        self.state()?.trace.direct += u64::from(in_journal);
        self.write_at(at, &mut [bytes])
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state()?;
        let verdict = state.judge(|| format!("sync {}", short(&self.name)), Fault::Sync, 0);
        let state = &mut *state;
        let inode = &mut state.inodes[self.inode];
        match verdict {
            Verdict::Refused(code) => os(code),
            // A crash in the middle of a sync leaves what a crash before it may leave.
            Verdict::Failed(code) if state.dead => os(code),
            Verdict::Failed(code) => {
                inode.fail_sync(&mut state.random);
                os(code)
            }
            Verdict::Done => {
                inode.sync();
                Ok(())
            }
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state()?;
        let what = || format!("cut {} to {len}", short(&self.name));
        let verdict = state.judge(what, Fault::SetLen, 0);
        if let Verdict::Refused(code) = verdict {
            return os(code);
        }
        if matches!(verdict, Verdict::Done) || state.done_anyway() {
            let before = state.inodes[self.inode].data.len() as u64;
            state.give_back(before.saturating_sub(len));
            state.inodes[self.inode].set_len(len as usize);
        }
        match verdict {
            Verdict::Done => Ok(()),
            Verdict::Failed(code) | Verdict::Refused(code) => os(code),
        }
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        let mut state = self.state()?;
        let before = state.inodes[self.inode].data.len() as u64;
        let what = || format!("reserve {len} of {}", short(&self.name));
        let verdict = state.judge(what, Fault::Preallocate, len.saturating_sub(before));
        match verdict {
            Verdict::Done => {
                state.inodes[self.inode].set_len(len.max(before) as usize);
                Ok(())
            }
            Verdict::Failed(code) | Verdict::Refused(code) => os(code),
        }
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.state()?;
        state.alive()?;
        Ok(state.inodes[self.inode].data.len() as u64)
    }
}

fn read(data: &[u8], at: u64, buffer: &mut [u8]) -> usize {
    let Some(rest) = usize::try_from(at).ok().and_then(|at| data.get(at..)) else { return 0 };
    let len = rest.len().min(buffer.len());
    buffer[..len].copy_from_slice(&rest[..len]);
    len
}
