//! What people do with git.

use crate::workloads::work::{Work, all_work, work};

pub(crate) const TABLE: &[Work] = &[
    work("commits and branches", "git init -q; echo 1 > f; git add .; git commit -qm one; git checkout -qb side; echo 2 > f; git commit -qam two; git checkout -q main; echo 3 > g; git add g; git commit -qm three; git merge -q -m merged side; git log --format=%s | sort; git status --short; cat f g").leaves_anything(),
    work("rebase and stash", "git init -q; seq 9 > f; git add .; git commit -qm one; git checkout -qb side; sed -i s/9/nine/ f; git commit -qam nine; git checkout -q main; sed -i s/1/one/ f; git commit -qam first; git checkout -q side; git rebase -q main; git log --format=%s; echo x >> f; git stash -q; git stash pop -q; git diff --stat | tail -1; git reset -q --hard; git clean -qfdx; git revert --no-edit HEAD > /dev/null; git log --oneline | wc -l").leaves_anything(),
    work("clones and remotes", "git init -q a; cd a; echo 1 > f; git add .; git commit -qm one; cd ..; git clone -q a b; git clone -q --bare a c.git; cd b; git remote add other ../c.git; git config user.name B; git config user.email b@example.org; echo 2 > f; git commit -qam two; git push -q other HEAD:main; git fetch -q --all; git branch -a | sort; git -C ../c.git log --format=%s; git pull -q; git remote remove other; git config --get user.name").leaves_anything(),
    work("worktrees", "git init -q a; cd a; echo 1 > f; git add .; git commit -qm one; git worktree add -q ../w; cd ../w; echo 2 > f; git commit -qam two; git log --format=%s; cd ../a; git worktree list | wc -l; git worktree remove ../w; git merge -q w; cat f").leaves_anything(),
    work("submodules", "git init -q m; git -C m commit -q --allow-empty -m one; git init -q a; cd a; git -c protocol.file.allow=always submodule --quiet add ../m sub; git commit -qm sub; git submodule status | wc -l; git -C sub log --format=%s").leaves_anything(),
    work("tags and housekeeping", "git init -q; for i in $(seq 30); do echo $i > f; git add f; git commit -qm $i; done; git tag v1; git tag -a v2 -m two; git gc -q; git repack -adq; git fsck 2>/dev/null; git count-objects | cut -d' ' -f1; git describe; git reflog expire --expire=now --all; git prune; git bisect start -q HEAD HEAD~20 > /dev/null 2>&1; git bisect reset > /dev/null 2>&1 || true; git archive HEAD | tar -t; git log --oneline | wc -l").leaves_anything(),
    work("a checkout of many files", "git init -q; mkdir d; for i in $(seq 500); do echo $i > d/$i; done; git add .; git commit -qm one; git checkout -qb other; for i in $(seq 500); do echo new-$i > d/$i; done; git commit -qam two; git checkout -q main; cat d/7; git checkout -q other; cat d/7; git rm -rq d; git commit -qm gone; ls").leaves_anything(),
    work("patches", "git init -q; echo 1 > f; git add .; git commit -qm one; echo 2 >> f; git diff > p; git checkout -q f; git apply p; cat f; git commit -qam two; git format-patch -1 -o out > /dev/null; git reset -q --hard HEAD~1; git am -q out/*; git log --format=%s").leaves_anything(),
    work("a repository made by hand", "git init -q --initial-branch=trunk; git symbolic-ref HEAD; git config core.autocrlf false; git config branch.trunk.merge refs/heads/trunk; git remote add origin https://example.org/x.git; git remote set-url origin https://example.org/y.git; git config --get remote.origin.url; git config --unset core.autocrlf; ls .git/hooks | grep -vc sample || true; rm -rf .git; ls -a | wc -l").leaves_anything(),
];

#[test]
fn git_works() {
    all_work(TABLE);
}
