//! How much memory there is: what the system, the control groups of this process and its limit of addresses leave.

use std::fs;
use std::path::Path;

/// Bytes that can be had now; `None` where the system does not say.
#[must_use]
pub fn available_bytes() -> Option<u64> {
    available_below(Path::new("/"))
}

/// Bytes of memory that the machine has, or that this process may have if that is less; `None` where the system does
/// not say.
#[must_use]
pub fn total_bytes() -> Option<u64> {
    total_below(Path::new("/"))
}

/// Bytes that this process has had at most (VmHWM); `None` where the system does not say.
#[must_use]
pub fn peak_bytes() -> Option<u64> {
    line(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Lets [`peak_bytes`] begin anew, where the system allows it.
pub fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// [`available_bytes`] as the files of the system below `root` have it.
fn available_below(root: &Path) -> Option<u64> {
    let system = line(&text(root, "proc/meminfo")?, "MemAvailable:");
    [system, groups(root).map(|group| group.free), addresses(root)].into_iter().flatten().min()
}

/// [`total_bytes`] as the files of the system below `root` have it.
fn total_below(root: &Path) -> Option<u64> {
    let system = line(&text(root, "proc/meminfo")?, "MemTotal:")?;
    Some(groups(root).map_or(system, |group| system.min(group.limit)))
}

fn text(root: &Path, file: &str) -> Option<String> {
    fs::read_to_string(root.join(file)).ok()
}

/// The kibibytes after a name, in bytes.
fn line(text: &str, name: &str) -> Option<u64> {
    let kibibytes = text.lines().find_map(|l| l.strip_prefix(name))?.trim().strip_suffix("kB")?;
    kibibytes.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

/// What `ulimit -v` leaves.
fn addresses(root: &Path) -> Option<u64> {
    let limit = address_limit(&text(root, "proc/self/limits")?)?;
    Some(limit.saturating_sub(line(&text(root, "proc/self/status")?, "VmSize:")?))
}

/// The soft limit of addresses, where there is one.
fn address_limit(limits: &str) -> Option<u64> {
    limits.lines().find_map(|l| l.strip_prefix("Max address space"))?.split_whitespace().next()?.parse().ok()
}

/// A limit of memory, and what is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    limit: u64,
    free: u64,
}

/// How a version of control groups writes its limits down.
struct Version {
    /// Where its groups are mounted.
    root: &'static str,
    limits: &'static [&'static str],
    usage: &'static str,
    /// The file cache that is given up when memory is short.
    cache: &'static str,
}

const FIRST: Version = Version {
    root: "memory",
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    cache: "total_inactive_file ",
};

const SECOND: Version =
    Version { root: "", limits: &["memory.max", "memory.high"], usage: "memory.current", cache: "inactive_file " };

fn groups(root: &Path) -> Option<Group> {
    tightest(&root.join("sys/fs/cgroup"), &text(root, "proc/self/cgroup")?)
}

/// The least that a group of this process, or one above it, leaves; `mount` is where they are, `own` what the system
/// says which they are.
fn tightest(mount: &Path, own: &str) -> Option<Group> {
    let mut least: Option<Group> = None;
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let version = match controllers {
            "" => &SECOND,
            listed if listed.split(',').any(|controller| controller == "memory") => &FIRST,
            _ => continue,
        };
        // In a container the path may be one of the host, of which only the last group is there, as the root.
        let root = mount.join(version.root);
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            for found in limits_of(&root.join(group), version) {
                let limit = least.map_or(found.limit, |least| least.limit.min(found.limit));
                let free = least.map_or(found.free, |least| least.free.min(found.free));
                least = Some(Group { limit, free });
            }
        }
    }
    least
}

/// The limits of one group, none where it has none.
fn limits_of(group: &Path, version: &Version) -> Vec<Group> {
    let text = |name: &str| fs::read_to_string(group.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let cache = || text("memory.stat")?.lines().find_map(|l| l.strip_prefix(version.cache))?.trim().parse::<u64>().ok();
    let used = number(version.usage).unwrap_or(0).saturating_sub(cache().unwrap_or(0));
    let limits = version.limits.iter().filter_map(|name| number(name));
    // "max" is no number, and the first version writes the largest page count there is.
    let limits = limits.filter(|limit| *limit < 1 << 60);
    limits.map(|limit| Group { limit, free: limit.saturating_sub(used) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_figures_are_read_in_bytes() {
        assert_eq!(line("MemTotal: 9 kB\nMemAvailable:   1024 kB\n", "MemAvailable:"), Some(1 << 20));
        assert_eq!(line("VmPeak:\t 9 kB\nVmHWM:\t   123456 kB\nVmRSS:\t 1 kB\n", "VmHWM:"), Some(126_418_944));
        assert_eq!(line("VmRSS:\t 1 kB\n", "VmHWM:"), None);
        assert_eq!(line("VmHWM:\t lots kB\n", "VmHWM:"), None);
        let limits =
            "Limit Soft Hard Units\nMax address space         1073741824           unlimited            bytes\n";
        assert_eq!(address_limit(limits), Some(1 << 30));
        assert_eq!(address_limit("Max address space         unlimited            unlimited            bytes"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_covers_what_was_touched() {
        let touched = vec![1u8; 64 << 20];
        assert!(peak_bytes().unwrap() >= std::hint::black_box(&touched).len() as u64);
    }

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_least_of_what_the_system_a_group_and_a_limit_of_addresses_leave_can_be_had() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!((available_below(root), total_below(root)), (None, None));
        put(root, "proc/meminfo", "MemTotal: 900 kB\nMemAvailable: 500 kB\n");
        assert_eq!((available_below(root), total_below(root)), (Some(500 << 10), Some(900 << 10)));
        put(root, "proc/self/limits", "Max address space 716800 unlimited bytes\n");
        put(root, "proc/self/status", "VmSize: 300 kB\n");
        assert_eq!((available_below(root), total_below(root)), (Some(400 << 10), Some(900 << 10)));
        put(root, "proc/self/cgroup", "0::/job\n");
        put(root, "sys/fs/cgroup/job/memory.max", "409600\n");
        put(root, "sys/fs/cgroup/job/memory.current", "102400\n");
        assert_eq!((available_below(root), total_below(root)), (Some(300 << 10), Some(400 << 10)));
    }

    #[test]
    fn the_tightest_group_counts_in_both_versions() {
        let mount = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(mount.path(), path, text);
        assert_eq!(tightest(mount.path(), "0::/a/b\n"), None);
        put("a/memory.max", "1000\n");
        put("a/memory.current", "400\n");
        put("a/memory.stat", "anon 300\ninactive_file 100\n");
        put("a/b/memory.max", "max\n");
        put("a/b/memory.high", "900\n");
        put("a/b/memory.current", "10\n");
        assert_eq!(tightest(mount.path(), "0::/a/b\n"), Some(Group { limit: 900, free: 700 }));
        assert_eq!(tightest(mount.path(), "0::/a\n"), Some(Group { limit: 1000, free: 700 }));
        put("memory/memory.limit_in_bytes", "9223372036854771712\n");
        put("memory/job/memory.limit_in_bytes", "5000\n");
        put("memory/job/memory.usage_in_bytes", "4990\n");
        assert_eq!(tightest(mount.path(), "3:cpu:/x\n2:memory:/job\n"), Some(Group { limit: 5000, free: 10 }));
        // A path of the host, seen from a container: its group is the root.
        put("memory/memory.limit_in_bytes", "6000\n");
        let found = tightest(mount.path(), "2:memory:/docker/0123\n");
        assert_eq!(found, Some(Group { limit: 6000, free: 6000 }));
    }
}
