//! Transition from one state of the tables to the next.
//!
//! `DIRECTORY/current` is a link to the generation that readers use. A generation never changes. An
//! export builds the next one next to it, shares unchanged files, and moves the link when the
//! generation is complete. The previous generation remains until the next export, for readers that
//! still use it.

use crate::manifest::{self, FileState, Known, Manifest, PackEntry};
use crate::pack::Pack;
use crate::read::{StoreReading, Task};
use crate::{ExportError, failed};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// Name of the link to the current tables.
pub const CURRENT: &str = "current";
/// Prefix of generation names.
const GENERATION: &str = "generation-";
/// The generation under construction.
const UNFINISHED: &str = ".unfinished";

/// Limits on files and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of folders of bed and period; periods become longer if there would be more.
    pub folders: usize,
    /// Rows from which on a pack is full.
    pub pack: usize,
    /// Maximum number of rows in memory.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { folders: 200, pack: 1_000_000, memory: 4_000_000 }
    }
}

/// An export in progress. Dropping it before the end leaves the tables unchanged.
#[derive(Debug)]
pub struct Export {
    directory: PathBuf,
    limits: Limits,
    /// Number of the next generation.
    number: u64,
    /// The current generation and its manifest.
    before: PathBuf,
    old: Manifest,
    /// Stores of the next generation, by path.
    stores: BTreeMap<PathBuf, Known>,
    /// Names of stores whose previous rows are no longer valid.
    replaced: BTreeSet<String>,
    /// Rows read so far and still in memory, by bed and period.
    memory: BTreeMap<(String, String), Pack>,
    /// Rows read so far and already in files.
    packs: Vec<Pack>,
    /// Number of packs named so far.
    names_used: usize,
    exported: ExportSummary,
    _lock: File,
}

/// Contents of the tables and work done by an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Stores in the tables.
    pub stores: usize,
    /// Their runs.
    pub runs: usize,
    /// Files.
    pub files: usize,
    /// Bytes of these files.
    pub bytes: u64,
    /// Stores read.
    pub read: usize,
    /// Unchanged stores.
    pub unchanged: usize,
    /// Stores that are too old.
    pub older: usize,
    /// Stores removed from the tables because their files no longer exist.
    pub gone: usize,
}

impl Export {
    /// Starts an export into `directory`, and creates it if absent.
    ///
    /// # Errors
    /// Fails if the directory cannot be written or another process writes to it.
    pub fn open(directory: &Path, limits: Limits) -> Result<Export, ExportError> {
        fs::create_dir_all(directory).map_err(|why| failed(directory, &why))?;
        let lock = directory.join(".lock");
        let lock = File::options().create(true).append(true).open(&lock);
        let lock = lock.map_err(|why| failed(directory, &why))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ExportError::Busy { directory: directory.to_owned() });
            }
            Err(TryLockError::Error(why)) => return Err(failed(directory, &why)),
        }
        let name = fs::read_link(directory.join(CURRENT)).unwrap_or_default();
        let before = directory.join(name);
        let mut old = Manifest::read(&before).unwrap_or_default();
        // Stores with missing files are read again.
        let is_whole = |pack: &PackEntry| pack.bytes(&before).is_some();
        let (intact, lost): (Vec<PackEntry>, Vec<PackEntry>) =
            std::mem::take(&mut old.packs).into_iter().partition(is_whole);
        old.packs = intact;
        let mut replaced: BTreeSet<String> =
            lost.iter().flat_map(|pack| &pack.stores).cloned().collect();
        if !old.is_ours() {
            old.packs.clear();
            replaced.extend(old.stores.iter().map(|known| known.store.clone()));
        }
        let stores = old.stores.iter().map(|known| (known.path.clone(), known.clone()));
        let export = Export {
            directory: directory.to_owned(),
            limits,
            number: generations(directory).into_iter().max().map_or(1, |last| last + 1),
            before,
            stores: stores.collect(),
            old,
            replaced,
            memory: BTreeMap::new(),
            packs: Vec::new(),
            names_used: 0,
            exported: ExportSummary::default(),
            _lock: lock,
        };
        export.clean()?;
        Ok(export)
    }

    /// Returns the stores below `root` to read, and previously exported stores to read again
    /// because the tables are of another version or damaged.
    ///
    /// # Errors
    /// Fails if two stores have the same name.
    pub fn tasks(
        &mut self,
        stores: &[PathBuf],
        root: &Path,
        since: Option<&str>,
    ) -> Result<Vec<Task>, ExportError> {
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let full_root = canonical(root);
        let place =
            |path: &PathBuf| path.strip_prefix(root).map_or(path.clone(), |p| full_root.join(p));
        let stores: BTreeSet<PathBuf> = stores.iter().map(place).collect();
        let mut tasks = Vec::new();
        for path in &stores {
            let since = since.map(str::to_owned);
            let task = Task { path: path.clone(), root: full_root.clone(), since };
            let name = task.store();
            self.claim(&name, path)?;
            let known = self.stores.get(path);
            let known = known.filter(|known| known.store == name && self.is_kept(known));
            match known.filter(|known| known.seen.is_some() && known.seen == FileState::of(path)) {
                Some(known) if known.has_rows => self.exported.unchanged += 1,
                Some(known) if known.is_older(task.since.as_deref()) => self.exported.older += 1,
                _ => tasks.push(task),
            }
        }
        let others: Vec<Known> = self.stores.values().cloned().collect();
        for known in others.into_iter().filter(|known| !stores.contains(&known.path)) {
            let is_in_scope = known.path.starts_with(&full_root) || !self.is_kept(&known);
            if is_in_scope && !known.path.exists() {
                self.remove_store(&known);
            } else if known.has_rows && !self.is_kept(&known) {
                tasks.push(Task { path: known.path, root: known.root, since: None });
            }
        }
        Ok(tasks)
    }

    /// Replaces a store's previous rows with the ones just read.
    ///
    /// # Errors
    /// Fails if the rows cannot be written.
    pub fn add(&mut self, read: StoreReading) -> Result<(), ExportError> {
        let StoreReading { known, parts } = read;
        let old = self.stores.get(&known.path);
        if !known.has_rows && old.is_some_and(|old| old.has_rows && self.is_kept(old)) {
            self.exported.older += 1;
            return Ok(());
        }
        if let Some(old) = self.stores.insert(known.path.clone(), known.clone()) {
            self.replaced.insert(old.store);
        }
        self.replaced.insert(known.store.clone());
        match known.has_rows {
            true => self.exported.read += 1,
            false => self.exported.older += 1,
        }
        for part in parts {
            let period = self.old.period.of(&part.day);
            let pack = Pack::new(&part.bed, &period, &known.store, part.tables);
            let place = (part.bed, period);
            match self.memory.get_mut(&place) {
                Some(there) => there.append(pack, &self.directory.join(UNFINISHED))?,
                None => drop(self.memory.insert(place.clone(), pack)),
            }
            let is_full = self.memory.get(&place).is_some_and(|pack| pack.rows >= self.limits.pack);
            if is_full {
                self.write_out(&place)?;
            }
        }
        while self.memory.values().map(|pack| pack.rows).sum::<usize>() > self.limits.memory {
            let largest = self.memory.iter().max_by_key(|(_, pack)| pack.rows);
            let Some((place, _)) = largest else { break };
            self.write_out(&place.clone())?;
        }
        Ok(())
    }

    /// Builds the next generation and makes it current.
    ///
    /// # Errors
    /// Fails if it cannot be written; the tables are unchanged then.
    pub fn finish(mut self) -> Result<ExportSummary, ExportError> {
        if self.replaced.is_empty() && self.before.join(manifest::NAME).exists() {
            let manifest = std::mem::take(&mut self.old);
            return Ok(self.sum(&manifest, &self.before));
        }
        let unfinished = self.directory.join(UNFINISHED);
        for packed in std::mem::take(&mut self.old.packs) {
            let pack = Pack::of_files(&self.before, &packed);
            self.packs.extend(pack.without(&self.replaced, &unfinished)?);
        }
        let mut packs = std::mem::take(&mut self.packs);
        packs.extend(std::mem::take(&mut self.memory).into_values());
        if packs.is_empty() {
            packs.push(Pack::empty());
        }
        let period = self.period(&packs);
        let mut folders: BTreeMap<(String, String), Vec<Pack>> = BTreeMap::new();
        for mut pack in packs {
            pack.period = period.of(&pack.period);
            folders.entry((pack.bed.clone(), pack.period.clone())).or_default().push(pack);
        }
        let mut packed = Vec::new();
        for packs in folders.into_values() {
            self.settle(packs, &mut packed)?;
        }
        // A previous store that could not be read again has no rows any more.
        let names: BTreeSet<&String> = packed.iter().flat_map(|pack| &pack.stores).collect();
        let mut stores: Vec<Known> = std::mem::take(&mut self.stores).into_values().collect();
        stores.retain(|known| !known.has_rows || names.contains(&known.store));
        stores.sort_by(|a, b| a.store.cmp(&b.store));
        let manifest = Manifest { period, stores, packs: packed, ..Manifest::new() };
        let exported = self.sum(&manifest, &unfinished);
        self.publish(&manifest)?;
        Ok(exported)
    }

    /// Returns true if the previous rows of a store are valid.
    fn is_kept(&self, known: &Known) -> bool {
        !self.replaced.contains(&known.store)
    }

    /// Claims a name for a store. A store whose file no longer exists loses its name.
    fn claim(&mut self, store: &str, path: &Path) -> Result<(), ExportError> {
        let is_other = |known: &&Known| known.store == store && known.path != path;
        let other = self.stores.values().find(is_other).cloned();
        match other {
            Some(known) if known.path.exists() => Err(ExportError::Taken {
                store: store.to_owned(),
                known: known.path,
                path: path.to_owned(),
            }),
            Some(known) => {
                self.remove_store(&known);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Removes a deleted store from the tables.
    fn remove_store(&mut self, known: &Known) {
        self.stores.remove(&known.path);
        self.replaced.insert(known.store.clone());
        self.exported.gone += usize::from(known.has_rows);
    }

    /// Writes the rows of one bed and period to files to free memory.
    fn write_out(&mut self, place: &(String, String)) -> Result<(), ExportError> {
        let Some(pack) = self.memory.remove(place) else { return Ok(()) };
        let unfinished = self.directory.join(UNFINISHED);
        let packed = pack.put(&unfinished, &self.name())?;
        self.packs.push(Pack::of_files(&unfinished, &packed));
        Ok(())
    }

    /// Returns a file name that no generation uses.
    fn name(&mut self) -> String {
        self.names_used += 1;
        format!("{:06}-{}.parquet", self.number, self.names_used)
    }

    /// Returns the shortest period with few enough folders, but never a shorter one than before,
    /// which would move all files back and forth.
    fn period(&self, packs: &[Pack]) -> manifest::Period {
        let mut period = self.old.period;
        loop {
            let folders = packs.iter().map(|pack| (pack.bed.as_str(), period.of(&pack.period)));
            let folders = folders.collect::<BTreeSet<_>>().len();
            match period.longer() {
                Some(longer) if folders > self.limits.folders => period = longer,
                _ => return period,
            }
        }
    }

    /// Writes the packs of one folder into the new generation; merges small ones.
    fn settle(&mut self, packs: Vec<Pack>, into: &mut Vec<PackEntry>) -> Result<(), ExportError> {
        let unfinished = self.directory.join(UNFINISHED);
        let (full, mut small): (Vec<Pack>, Vec<Pack>) =
            packs.into_iter().partition(|pack| pack.rows >= self.limits.pack);
        small.sort_by(|a, b| a.stores.first().cmp(&b.stores.first()));
        let mut last: Option<Pack> = None;
        let mut done = full;
        for pack in small {
            match &mut last {
                Some(last) => last.append(pack, &unfinished)?,
                None => last = Some(pack),
            }
            if last.as_ref().is_some_and(|last| last.rows >= self.limits.pack) {
                // Written immediately, so that memory contains one full pack at a time.
                let full = last.take().map(|last| last.put(&unfinished, &self.name()));
                into.extend(full.transpose()?);
            }
        }
        done.extend(last);
        for pack in done {
            let name = if pack.is_in_files() { String::new() } else { self.name() };
            into.push(pack.put(&unfinished, &name)?);
        }
        Ok(())
    }

    /// Renames the new generation and moves the link.
    fn publish(&self, manifest: &Manifest) -> Result<(), ExportError> {
        let unfinished = self.directory.join(UNFINISHED);
        let name = format!("{GENERATION}{:06}", self.number);
        let publish = || -> std::io::Result<()> {
            fs::write(unfinished.join(manifest::NAME), serde_json::to_vec(manifest)?)?;
            fs::rename(&unfinished, self.directory.join(&name))?;
            let link = self.directory.join(".link");
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(&name, &link)?;
            fs::rename(&link, self.directory.join(CURRENT))
        };
        publish().map_err(|why| failed(&self.directory.join(CURRENT), &why))?;
        // Readers of the previous generation find its files until the next export.
        let before = self.before.file_name().map(|name| name.to_string_lossy().into_owned());
        for number in generations(&self.directory) {
            let name = format!("{GENERATION}{number:06}");
            if number != self.number && Some(&name) != before.as_ref() {
                let _ = fs::remove_dir_all(self.directory.join(name));
            }
        }
        Ok(())
    }

    /// Summarises a generation.
    fn sum(&self, manifest: &Manifest, generation: &Path) -> ExportSummary {
        let stores = manifest.stores.iter().filter(|known| known.has_rows);
        let bytes = manifest.packs.iter().filter_map(|pack| pack.bytes(generation));
        ExportSummary {
            stores: stores.clone().count(),
            runs: stores.map(|known| known.runs).sum(),
            files: manifest.packs.len() * crate::tables::TABLES.len(),
            bytes: bytes.sum(),
            ..self.exported
        }
    }

    /// Removes the remains of an export that was killed.
    fn clean(&self) -> Result<(), ExportError> {
        let unfinished = self.directory.join(UNFINISHED);
        match fs::remove_dir_all(&unfinished) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                Err(failed(&unfinished, &why))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        let _ = self.clean();
    }
}

/// Returns the numbers of the existing generations.
fn generations(directory: &Path) -> Vec<u64> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix(GENERATION)?.parse().ok()).collect()
}
