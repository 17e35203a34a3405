//! Moving names.

use haft_policy::{Guard, guard_in};
use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::Errno;

use super::guard::is_inside_git;
use crate::witness::notify::Call;
use crate::witness::paths::Spot;
use crate::witness::places::Area;
use crate::witness::supervisor::{Answer, Supervisor};

impl Supervisor {
    pub(super) fn rename(
        &mut self,
        call: &Call,
        (old_base, old): (i32, usize),
        (new_base, new): (i32, usize),
        flags: u32,
    ) -> Result<Answer, Errno> {
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::INVAL)?;
        let both = RenameFlags::EXCHANGE | RenameFlags::NOREPLACE;
        if flags.contains(RenameFlags::WHITEOUT) || flags.contains(both) {
            return Err(Errno::INVAL);
        }
        let from = self.spot(call, old_base, old)?;
        let to = self.spot(call, new_base, new)?;
        if from.dots > 0 || to.dots > 0 {
            return Err(Errno::BUSY);
        }
        let kind = FileType::from_raw_mode(from.stat()?.st_mode);
        let there = to.stat().ok().map(|stat| FileType::from_raw_mode(stat.st_mode));
        let directory = kind == FileType::Directory;
        if there.is_some() && flags.contains(RenameFlags::NOREPLACE) {
            return Err(Errno::EXIST);
        }
        if !self.may_change("move", &from) || !self.may_change("move", &to) {
            return Err(Errno::ACCESS);
        }
        for spot in [&from, &to] {
            self.may_be_renamed(spot)?;
        }
        if (from.dir.area == Area::Root) != (to.dir.area == Area::Root) {
            // A move across is a copy and a removal, each of which is witnessed as what it is.
            return Err(Errno::XDEV);
        }
        if from.is_misnamed() || (to.slash && !directory) {
            return Err(Errno::NOTDIR);
        }
        if there.is_none() && flags.contains(RenameFlags::EXCHANGE) {
            return Err(Errno::NOENT);
        }
        if flags.contains(RenameFlags::EXCHANGE) {
            return self.exchange(&from, &to, directory || there == Some(FileType::Directory));
        }
        if !directory && self.places.is_secret(from.path()) && !self.places.is_secret(to.path()) {
            // Under the new name it could be read.
            return Err(self.refuse_read(from.path()));
        }
        self.may_leave(&from, directory)?;
        match self.guard_of(&to) {
            None => {}
            Some(Guard::GitConfig) if kind == FileType::RegularFile => {
                return Ok(self.install_config(&from, &to).into());
            }
            // A directory named .git is looked through below.
            Some(Guard::GitLink) if directory => {}
            Some(guard) => return Err(self.refuse_guarded("move", to.path(), guard, "")),
        }
        if kind == FileType::Symlink && to.dir.area == Area::Root && is_inside_git(to.path()) {
            return Err(self.refuse_guarded("move", to.path(), Guard::GitLink, "a link"));
        }
        if directory {
            self.may_become(&from, &to)?;
            return self.move_directory(&from, &to, there, flags);
        }
        self.touch(&from)?;
        self.touch(&to)?;
        if kind == FileType::Symlink || there == Some(FileType::Symlink) {
            self.dirs.forget();
        }
        Ok(rename(&from, &to, flags).into())
    }

    /// What may not be touched is known by its path, so the directories above it keep their names.
    fn may_be_renamed(&mut self, spot: &Spot) -> Result<(), Errno> {
        let path = spot.path();
        if !self.places.holds_untouchable(path) {
            return Ok(());
        }
        let rule = "something in it may not be touched, and would be under another name";
        self.denials.add("move", path.display().to_string(), rule, None);
        Err(Errno::ACCESS)
    }

    /// Settings stay where they are, also with the directory around them.
    fn may_leave(&mut self, from: &Spot, directory: bool) -> Result<(), Errno> {
        if let Some(guard @ Guard::Settings) = self.guard_of(from) {
            return Err(self.refuse_guarded("move", from.path(), guard, ""));
        }
        if directory && from.name == ".claude" && from.dir.area == Area::Root && !from.dir.made {
            for name in ["settings.json", "settings.local.json"] {
                let inside = std::path::Path::new(&from.name).join(name);
                if rustix::fs::statat(&from.dir.fd, &inside, AtFlags::SYMLINK_NOFOLLOW).is_ok()
                    && guard_in(&self.places.scope, &from.dir.path.join(&inside)).is_some()
                {
                    return Err(self.refuse_guarded("move", from.path(), Guard::Settings, name));
                }
            }
        }
        Ok(())
    }

    fn move_directory(
        &mut self,
        from: &Spot,
        to: &Spot,
        there: Option<FileType>,
        flags: RenameFlags,
    ) -> Result<Answer, Errno> {
        let (old, new) = (from.path(), to.path());
        if from.dir.area != Area::Root || old == new {
            self.dirs.forget();
            return Ok(rename(from, to, flags).into());
        }
        if there.is_some_and(|kind| kind != FileType::Directory) {
            return Err(Errno::NOTDIR);
        }
        if new.starts_with(old) {
            return Err(Errno::INVAL);
        }
        if there.is_some() {
            // The kernel would put it in place of an empty directory, which is noted as what it is: a removal.
            self.touch(to)?;
            rustix::fs::unlinkat(&to.dir.fd, &to.name, AtFlags::REMOVEDIR)?;
        }
        if self.recorder.is_new(old) {
            self.touch(from)?;
            self.touch(to)?;
            // Below it all is new, under the new name as under the old one.
            self.recorder.arrives(from, to)?;
            self.dirs.forget();
            return Ok(rename(from, to, flags).into());
        }
        let mode = from.stat()?.st_mode & 0o7777;
        self.recorder.before_move(old, new)?;
        self.dirs.forget();
        if let Err(error) = rename(from, to, flags) {
            self.recorder.stayed();
            return Err(error);
        }
        self.recorder.moved(old, new, mode);
        Ok(Answer::Done(0))
    }

    fn exchange(&mut self, from: &Spot, to: &Spot, directories: bool) -> Result<Answer, Errno> {
        if directories {
            // Programs that know it also know how to do without.
            return Err(Errno::INVAL);
        }
        self.refuse_any_guard("move", from)?;
        self.refuse_any_guard("move", to)?;
        for spot in [from, to] {
            if self.places.is_secret(spot.path()) {
                return Err(self.refuse_read(spot.path()));
            }
        }
        self.touch(from)?;
        self.touch(to)?;
        self.dirs.forget();
        Ok(rename(from, to, RenameFlags::EXCHANGE).into())
    }
}

fn rename(from: &Spot, to: &Spot, flags: RenameFlags) -> Result<(), Errno> {
    if flags.is_empty() {
        return rustix::fs::renameat(&from.dir.fd, from.word(), &to.dir.fd, to.word());
    }
    rustix::fs::renameat_with(&from.dir.fd, from.word(), &to.dir.fd, to.word(), flags)
}
