//! Names of files as Hadoop's programs write them, `hdfs:///user/me/x`, and the local files that they mean.
//!
//! `hdfs:` is a directory of this machine, whatever the host in the name: [`ROOT_VARIABLE`] names it, else it is `hdfs` in
//! the user's directory for data. A name cannot lead out of it.

use crate::usage::usage;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Variable with the directory of `hdfs:///`.
pub const ROOT_VARIABLE: &str = "GRISTMILL_HDFS_ROOT";

/// File system of names without a scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultSystem {
    /// A file of `hdfs:`, relative to the user's directory there.
    Hdfs,
    /// A file of this machine, relative to the working directory.
    Local,
}

impl DefaultSystem {
    /// Reads a URI, `local`, or a machine of `hdfs:`.
    ///
    /// # Errors
    /// An unknown system.
    pub fn parse(name: &str) -> anyhow::Result<Self> {
        let name = name.trim();
        let is_host = |host: &str| {
            host.starts_with(|first: char| first.is_ascii_alphanumeric())
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
                && !["file", "local"].iter().any(|word| host.eq_ignore_ascii_case(word))
        };
        let is_machine = |name: &str| match name.split_once(':') {
            Some((host, port)) => is_host(host) && port.parse::<u16>().is_ok(),
            None => is_host(name),
        };
        match scheme_of(name) {
            _ if name == "local" => Ok(Self::Local),
            Some(("file", rest)) if is_this(machine_and_path(rest).0) => Ok(Self::Local),
            Some(("hdfs" | "viewfs", _)) => Ok(Self::Hdfs),
            None if is_machine(name) => Ok(Self::Hdfs),
            _ => Err(usage(format!(
                "`{name}' is not a supported file system; available: hdfs://HOST/ and file:///"
            ))),
        }
    }
}

/// Name of the user, as in Hadoop.
fn user_of_environment() -> String {
    let named = ["HADOOP_USER_NAME", "USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let user = named.filter(|user| !user.is_empty() && !user.contains('/') && user != "..");
    user.unwrap_or_else(|| "root".to_owned())
}

/// Translation of names to files and back.
#[derive(Clone, Debug)]
pub struct FileNames {
    /// Empty if no directory is known; then only names of this machine's files are valid.
    pub root: PathBuf,
    /// Name of the user, as in Hadoop.
    pub user: String,
    pub default: DefaultSystem,
}

impl FileNames {
    /// Translation for this process.
    ///
    /// # Errors
    /// No directory for `hdfs:` where names without a scheme are in it.
    pub fn new(default: DefaultSystem) -> anyhow::Result<Self> {
        let named = std::env::var_os(ROOT_VARIABLE).filter(|root| !root.is_empty()).map(PathBuf::from);
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
        let data = || std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
        let root = match named.or_else(|| data().map(|data| data.join("gristmill/hdfs"))) {
            Some(root) => std::path::absolute(root)?,
            None if default == DefaultSystem::Local => PathBuf::new(),
            None => return Err(no_root()),
        };
        Ok(Self { root, user: user_of_environment(), default })
    }

    /// Returns the same with another system for names without a scheme.
    pub fn with_default(&self, default: DefaultSystem) -> Self {
        Self { default, ..self.clone() }
    }

    /// Directory of `hdfs:///`, if one is known.
    pub fn known_root(&self) -> Option<&Path> {
        Some(&*self.root).filter(|root| !root.as_os_str().is_empty())
    }

    /// Directory of the user in `hdfs:`, whether it exists or not.
    pub fn home(&self) -> PathBuf {
        self.root.join("user").join(&self.user)
    }

    /// Returns the file of a name. A slash at the end is ignored, also behind a link.
    ///
    /// # Errors
    /// An unknown scheme.
    pub fn local(&self, name: &str) -> anyhow::Result<PathBuf> {
        let Some((scheme, rest)) = scheme_of(name) else {
            return match self.default {
                DefaultSystem::Hdfs => self.below_root(name),
                DefaultSystem::Local => {
                    let path = std::path::absolute(if name.is_empty() { "." } else { name })?;
                    Ok(path.components().collect())
                }
            };
        };
        let (machine, path) = machine_and_path(rest);
        match scheme {
            "hdfs" | "viewfs" => self.below_root(path),
            "file" if is_this(machine) => Ok(Path::new(path).components().collect()),
            // The first slash of a directory may be missing.
            "file" => Err(usage(format!(
                "Wrong FS: {name}, expected: file:///: `{machine}' is in the place of a machine, and only files of this \
                 one are read"
            ))),
            _ => Err(usage(format!(
                "No FileSystem for scheme \"{scheme}\": {name} is not supported; available: hdfs: and file:, and for -input s3:, gs:, az:, http: and https:"
            ))),
        }
    }

    /// Returns the pattern of a name with wildcards. Only the typed part is a pattern, not the names of its parent
    /// directories.
    ///
    /// # Errors
    /// As [`FileNames::local`], and a working directory that does not exist.
    pub fn pattern(&self, name: &str) -> anyhow::Result<PathBuf> {
        if scheme_of(name).is_none() && self.default == DefaultSystem::Local && !name.starts_with('/') {
            let within = escaped(&std::env::current_dir()?);
            return Ok(within.join(name).components().collect());
        }
        let user = escaped(Path::new(&self.user)).to_string_lossy().into_owned();
        Self { root: escaped(&self.root), user, default: self.default }.local(name)
    }

    /// Returns the file of a name in `hdfs:`; `..` ends at its root.
    fn below_root(&self, name: &str) -> anyhow::Result<PathBuf> {
        let mut path = self.known_root().ok_or_else(no_root)?.to_owned();
        let begin = if name.starts_with('/') { String::new() } else { format!("/user/{}/", self.user) };
        let mut depth = 0;
        for component in Path::new(&(begin + name)).components() {
            match component {
                Component::Normal(name) => {
                    path.push(name);
                    depth += 1;
                }
                Component::ParentDir if 0 < depth => {
                    path.pop();
                    depth -= 1;
                }
                _ => {}
            }
        }
        Ok(path)
    }

    /// Returns the URI of a file.
    pub fn uri(&self, path: &Path) -> String {
        match self.known_root().and_then(|root| path.strip_prefix(root).ok()) {
            Some(below) => format!("hdfs:///{}", below.display()),
            None => format!("file://{}", path.display()),
        }
    }

    /// Returns a path as Hadoop lists results for this name: without a scheme if the name has none, and
    /// relative if the name is.
    pub fn as_typed(&self, name: &str, path: &Path) -> String {
        let below =
            |directory: &Path| path.strip_prefix(directory).ok().map(|below| below.display().to_string());
        match scheme_of(name) {
            Some(_) => None,
            None if name.starts_with('/') => below(&self.root).map(|below| format!("/{below}")),
            None => below(&self.home()).filter(|below| !below.is_empty()),
        }
        .unwrap_or_else(|| self.uri(path))
    }
}

fn no_root() -> anyhow::Error {
    usage(format!("no directory for hdfs: is known, as HOME is not set: name one in {ROOT_VARIABLE}"))
}

/// Splits the text behind a scheme into machine and path; `//MACHINE` is optional, and so is the path behind it.
fn machine_and_path(rest: &str) -> (&str, &str) {
    let Some(rest) = rest.strip_prefix("//") else { return ("", rest) };
    let (machine, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (machine, if path.is_empty() { "/" } else { path })
}

/// True if a machine behind `file:` is this one.
fn is_this(machine: &str) -> bool {
    machine.is_empty() || machine.eq_ignore_ascii_case("localhost")
}

/// Returns the pattern that only this path matches.
fn escaped(path: &Path) -> PathBuf {
    let mut escaped = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        if b"*?[{\\".contains(byte) {
            escaped.push(b'\\');
        }
        escaped.push(*byte);
    }
    PathBuf::from(OsString::from_vec(escaped))
}

/// Splits a name into its scheme and the rest behind the colon.
pub fn scheme_of(name: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = name.split_once(':')?;
    let is_scheme = scheme.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (is_scheme && rest.starts_with('/')).then_some((scheme, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(default: DefaultSystem) -> FileNames {
        FileNames { root: PathBuf::from("/data/hdfs"), user: "me".to_owned(), default }
    }

    #[test]
    fn patterns_are_what_was_typed_and_not_where_that_lies() {
        let places = FileNames {
            root: PathBuf::from("/data/h*[a]"),
            user: r"m\e".to_owned(),
            default: DefaultSystem::Hdfs,
        };
        let check = |name: &str, expected: &str| {
            assert_eq!(places.pattern(name).unwrap(), Path::new(expected), "{name}");
        };
        check("/x*", r"/data/h\*\[a]/x*");
        check("x", r"/data/h\*\[a]/user/m\\e/x");
        check("../../../x?", r"/data/h\*\[a]/x?");
        check("file:///y*", "/y*");
        let here = std::env::current_dir().unwrap();
        assert_eq!(
            places.with_default(DefaultSystem::Local).pattern("z*").unwrap(),
            escaped(&here).join("z*")
        );
    }

    #[test]
    fn names_of_hdfs_stay_below_its_root() {
        let places = places(DefaultSystem::Hdfs);
        let check = |name: &str, expected: &str| {
            assert_eq!(places.local(name).unwrap(), Path::new(expected), "{name}");
        };
        check("hdfs:///user/me/x", "/data/hdfs/user/me/x");
        check("hdfs://namenode:8020/x/", "/data/hdfs/x");
        check("hdfs://namenode", "/data/hdfs");
        check("hdfs:/x", "/data/hdfs/x");
        check("/x", "/data/hdfs/x");
        check("x", "/data/hdfs/user/me/x");
        check("", "/data/hdfs/user/me");
        check("hdfs:///../../etc/passwd", "/data/hdfs/etc/passwd");
        check("/../etc", "/data/hdfs/etc");
        check("../../../../x", "/data/hdfs/x");
        check("file:///x", "/x");
        check("a:b", "/data/hdfs/user/me/a:b");
        check("file://localhost/x", "/x");
        for wrong in ["s3://bucket/x", "file://logs/x", "file://logs", "file://logs:1/*"] {
            assert!(places.local(wrong).is_err() && places.pattern(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_are_called_by_where_they_lie() {
        let places = places(DefaultSystem::Local);
        assert_eq!(places.uri(Path::new("/data/hdfs/user/me/x")), "hdfs:///user/me/x");
        assert_eq!(places.uri(Path::new("/tmp/x")), "file:///tmp/x");
        for name in ["/tmp/x", "/tmp/x//", "file:///tmp/x/", "file:/tmp//./x/"] {
            assert_eq!(places.local(name).unwrap().as_os_str(), "/tmp/x", "{name}");
        }
    }
}
